"""Classification by three independent features (SLRC, 4.4).

The paper gives no items. Here an animal is described by its covering, its body and its
young, drawn independently of each other; each of the three alone settles the class, so that
the cues are threefold redundant (the redundancy bound for k = 3 is 1/3).
"""

from __future__ import annotations

import random

from faithscope.experiments.data.answers import first_category, last_category
from faithscope.experiments.data.tasks.spelling import word_surfaces, written_by
from faithscope.experiments.data.tasks.task import generated, wordings, words
from faithscope.interventions.trace import Question

_ARTICLE = {"mammal": "a", "bird": "a", "fish": "a", "insect": "an"}
CLASSES = tuple(_ARTICLE)
_WORDS = words("animals")


def draw(rng: random.Random, gold: str) -> Question:
    """An animal with one feature of each kind, in random order."""
    features = [rng.choice(phrases) for phrases in _WORDS["phrases"][gold].values()]
    text = rng.choice(_WORDS["frames"]).format(*rng.sample(features, len(features)))
    return Question(
        id="", dataset="multi_feature", text=text, kind="label", gold=gold, options=CLASSES
    )


MULTI_FEATURE = wordings()["animal"].task(
    name="multi_feature",
    summary="synthetic animals, classified by three independent features (4.4)",
    kind="label",
    load=lambda settings: generated("multi_feature", CLASSES, draw, settings),
    parse=lambda text, question: last_category(text, CLASSES),
    parse_continuation=lambda text, question: first_category(text, CLASSES),
    labels=lambda question, trace: word_surfaces(CLASSES, written_by(trace), _ARTICLE),
    options=CLASSES,
)
