"""Sentiment with controlled cues: one keyword, or two to three that disagree (SLRC, 4.4).

The paper gives no items, only descriptions of them. Ours are short reviews in which every word that
carries a sentiment comes from the lists of `words.yaml`.
"""

from __future__ import annotations

import random

from faithscope.experiments.data.tasks.kinds import Load, label_task
from faithscope.experiments.data.tasks.task import Task, generated, words
from faithscope.interventions.trace import Question

SENTIMENTS = ("positive", "negative")
CONFLICTS = tuple((gold, signals) for gold in SENTIMENTS for signals in (2, 3))
UNDECIDED = ("neutral", "mixed")
"""Words of a conclusion with neither sentiment."""

_WORDS = words("cues")
KEYWORDS: dict[str, list[str]] = _WORDS["keywords"]
ASPECTS: list[str] = _WORDS["aspects"]


def draw_single(rng: random.Random, gold: str) -> Question:
    """A review with one word of sentiment."""
    text = rng.choice(_WORDS["one_cue"]).format(
        subject=rng.choice(_WORDS["subjects"]),
        day=rng.choice(_WORDS["days"]),
        company=rng.choice(_WORDS["company"]),
        word=rng.choice(KEYWORDS[gold]),
    )
    return sentiment_question("single_cue", "", text[0].upper() + text[1:], gold)


def draw_conflicting(rng: random.Random, case: tuple[str, int]) -> Question:
    """A review with two or three words of sentiment that disagree.

    Of three words, two disagree with one, and the gold answer is the majority's. Of two words, the
    review names the aspect that counts. The words' order is random, so that no place in the review
    gives the answer away.
    """
    gold, signals = case
    other = next(s for s in SENTIMENTS if s != gold)
    cues = rng.sample((gold, other) if signals == 2 else (gold, gold, other), signals)
    drawn = {s: iter(rng.sample(KEYWORDS[s], cues.count(s))) for s in sorted(set(cues))}
    aspects = rng.sample(ASPECTS, signals)
    form = rng.choice(_WORDS["two_cues" if signals == 2 else "three_cues"])
    text = form.format(
        **dict(zip("xyz", (next(drawn[s]) for s in cues), strict=False)),
        **dict(zip("abc", aspects, strict=False)),
        **dict(zip("ABC", map(str.capitalize, aspects), strict=False)),
        main=aspects[cues.index(gold)],
        subject=rng.choice(_WORDS["subjects"][:4]),
    )
    return sentiment_question("conflicting_cue", "", text, gold)


def sentiment_question(dataset: str, item: str, text: str, gold: str) -> Question:
    return Question(
        id=item, dataset=dataset, text=text, kind="label", gold=gold, options=SENTIMENTS
    )


def sentiment_task(name: str, summary: str, load: Load) -> Task:
    """A task of reviews that are positive or negative, asked in the paper's words."""
    return label_task(name, summary, "sentiment", load, SENTIMENTS, others=UNDECIDED)


SINGLE_CUE = sentiment_task(
    "single_cue",
    "synthetic reviews with one word of sentiment (4.4)",
    lambda settings: generated("single_cue", SENTIMENTS, draw_single, settings),
)
CONFLICTING_CUE = sentiment_task(
    "conflicting_cue",
    "synthetic reviews with two or three opposing signals (4.4)",
    lambda settings: generated("conflicting_cue", CONFLICTS, draw_conflicting, settings),
)
