"""Sentiment with controlled cues: one keyword, or two to three that disagree (SLRC, 4.4).

The paper gives no items, only these descriptions. Ours are short reviews in which every
word that carries a sentiment comes from the lists below.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from faithscope.experiments.data.answers import first_label, last_label
from faithscope.experiments.data.tasks.spelling import word_surfaces, written_by
from faithscope.experiments.data.tasks.task import LoadSettings, Task, generated, wordings
from faithscope.interventions.trace import Question

SENTIMENTS = ("positive", "negative")
CONFLICTS = tuple((gold, signals) for gold in SENTIMENTS for signals in (2, 3))
UNDECIDED = ("neutral", "mixed")
"""Words that conclude, but with neither sentiment."""

KEYWORDS = {
    "positive": (
        "wonderful",
        "brilliant",
        "delightful",
        "excellent",
        "superb",
        "fantastic",
        "captivating",
        "enjoyable",
        "outstanding",
        "charming",
        "beautiful",
        "impressive",
    ),
    "negative": (
        "terrible",
        "dreadful",
        "boring",
        "awful",
        "disappointing",
        "horrible",
        "tedious",
        "unbearable",
        "dull",
        "annoying",
        "atrocious",
        "unpleasant",
    ),
}
ASPECTS = (
    "acting",
    "story",
    "music",
    "dialogue",
    "editing",
    "camera work",
    "ending",
    "pacing",
    "script",
    "sound design",
    "lead performance",
    "set design",
)
_SUBJECTS = ("movie", "film", "documentary", "play", "concert", "opera", "exhibition", "ballet")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_COMPANY = ("my sister", "a colleague", "my neighbour", "two friends", "my parents", "our class")
_ONE_CUE = (
    "I saw the {subject} on {day} with {company}, and it was {word}.",
    "On {day} {company} took me to the {subject}. It was {word}.",
    "The {subject} that {company} and I went to on {day} was {word}.",
    "We went to the {subject} on {day}, {company} and I. I found it {word}.",
    "It was {day} when I got to know the {subject} through {company}: {word} from start to finish.",
    "My note on the {subject} from {day}, written for {company}: {word}.",
)
_TWO_CUES = (
    "The {a} was {x}, but the {b} was {y}. What counts for me is the {main}.",
    "In this {subject}, the {a} was {x} and the {b} was {y}. I judge a {subject} by its {main}.",
    "{A}: {x}. {B}: {y}. The {main} is what decides it for me.",
    "While the {a} was {x}, the {b} was {y}, and of the two only the {main} matters to me.",
)
_THREE_CUES = (
    "The {a} was {x}, the {b} was {y}, and the {c} was {z}.",
    "In this {subject}, the {a} was {x}. The {b} was {y}. The {c} was {z}.",
    "{A}: {x}. {B}: {y}. {C}: {z}.",
    "I thought the {a} was {x} and the {b} was {y}, while the {c} was {z}.",
)


def draw_single(rng: random.Random, gold: str) -> Question:
    """A review with one word of sentiment."""
    text = rng.choice(_ONE_CUE).format(
        subject=rng.choice(_SUBJECTS),
        day=rng.choice(_DAYS),
        company=rng.choice(_COMPANY),
        word=rng.choice(KEYWORDS[gold]),
    )
    return sentiment_question("single_cue", "", text[0].upper() + text[1:], gold)


def draw_conflicting(rng: random.Random, case: tuple[str, int]) -> Question:
    """A review with so many words of sentiment that disagree.

    Three: two against one, and the gold answer is what the majority says. Two: one against
    one, and the review names the aspect that counts. Which comes first is random, so that
    no place in the review gives the answer away.
    """
    gold, signals = case
    other = next(s for s in SENTIMENTS if s != gold)
    said = rng.sample((gold, other) if signals == 2 else (gold, gold, other), signals)
    words = _words(rng, said)
    aspects = rng.sample(ASPECTS, signals)
    form = rng.choice(_TWO_CUES if signals == 2 else _THREE_CUES)
    text = form.format(
        **dict(zip("xyz", words, strict=False)),
        **dict(zip("abc", aspects, strict=False)),
        **dict(zip("ABC", map(str.capitalize, aspects), strict=False)),
        main=aspects[said.index(gold)],
        subject=rng.choice(_SUBJECTS[:4]),
    )
    return sentiment_question("conflicting_cue", "", text, gold)


def _words(rng: random.Random, said: Sequence[str]) -> list[str]:
    """A different word for each sentiment said."""
    drawn = {s: iter(rng.sample(KEYWORDS[s], said.count(s))) for s in sorted(set(said))}
    return [next(drawn[s]) for s in said]


def sentiment_question(dataset: str, item: str, text: str, gold: str) -> Question:
    return Question(
        id=item, dataset=dataset, text=text, kind="label", gold=gold, options=SENTIMENTS
    )


def sentiment_task(
    name: str, summary: str, load: Callable[[LoadSettings], Iterable[Question]]
) -> Task:
    """A task of reviews that are positive or negative, asked in the paper's words."""
    return wordings()["sentiment"].task(
        name=name,
        summary=summary,
        kind="label",
        load=load,
        parse=lambda text, question: last_label(text, SENTIMENTS, UNDECIDED),
        parse_continuation=lambda text, question: first_label(text, SENTIMENTS, UNDECIDED),
        labels=lambda question, trace: word_surfaces(SENTIMENTS, written_by(trace)),
        options=SENTIMENTS,
    )


def load_single(settings: LoadSettings) -> tuple[Question, ...]:
    return generated("single_cue", SENTIMENTS, draw_single, settings)


def load_conflicting(settings: LoadSettings) -> tuple[Question, ...]:
    return generated("conflicting_cue", CONFLICTS, draw_conflicting, settings)


SINGLE_CUE = sentiment_task(
    "single_cue", "synthetic reviews with one word of sentiment (4.4)", load_single
)
CONFLICTING_CUE = sentiment_task(
    "conflicting_cue",
    "synthetic reviews with two or three opposing signals (4.4)",
    load_conflicting,
)
