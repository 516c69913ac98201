"""Classification by three independent features (SLRC, 4.4).

The paper gives no items. Here an animal is described by its covering, its body and its
young, drawn independently of each other; each of the three alone settles the class, so that
the cues are threefold redundant (the redundancy bound for k = 3 is 1/3).
"""

from __future__ import annotations

import random

from faithscope.experiments.data.tasks.kinds import label_task
from faithscope.experiments.data.tasks.task import generated, words
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


MULTI_FEATURE = label_task(
    "multi_feature",
    "synthetic animals, classified by three independent features (4.4)",
    "animal",
    lambda settings: generated("multi_feature", CLASSES, draw, settings),
    CLASSES,
    categories=True,
    articles=_ARTICLE,
)
