"""Classification by three independent features (SLRC, 4.4).

The paper gives no items. Here an animal is described by its covering, its body and its
young, drawn independently of each other; each of the three alone settles the class, so that
the cues are threefold redundant (the redundancy bound for k = 3 is 1/3).
"""

from __future__ import annotations

import random

from faithscope.experiments.data.answers import first_category, last_category
from faithscope.experiments.data.tasks.spelling import word_surfaces, written_by
from faithscope.experiments.data.tasks.task import LoadSettings, generated, wordings
from faithscope.interventions.trace import Question

_ARTICLE = {"mammal": "a", "bird": "a", "fish": "a", "insect": "an"}
CLASSES = tuple(_ARTICLE)
FEATURES: dict[str, dict[str, tuple[str, ...]]] = {
    "mammal": {
        "covering": (
            "has a thick coat of fur",
            "is covered in short brown hair",
            "grows a woolly winter coat",
            "has soft grey fur",
        ),
        "body": (
            "has a muzzle with long whiskers",
            "has molars and canine teeth",
            "has udders between its hind legs",
            "has external ears and a furry tail",
        ),
        "young": (
            "feeds its young with milk",
            "nurses its cubs for months",
            "suckles its newborn",
            "gives milk to its litter of pups",
        ),
    },
    "bird": {
        "covering": (
            "is covered in feathers",
            "has glossy black plumage",
            "moults its feathers every summer",
            "has waterproof plumage",
        ),
        "body": (
            "has a curved beak",
            "has a long yellow bill",
            "has two feathered wings and a beak",
            "pecks at seeds with its short beak",
        ),
        "young": (
            "sits on its eggs in a nest until the chicks hatch",
            "feeds its chicks in the nest",
            "raises its nestlings in a tree",
            "warms its hard-shelled eggs under its feathers",
        ),
    },
    "fish": {
        "covering": (
            "has wet silvery scales and fins",
            "is covered in slippery scales and has a tail fin",
            "has shimmering scales along its fins",
            "has thin scales from its gills to its tail fin",
        ),
        "body": (
            "breathes through gills",
            "has gills on both sides of its head",
            "steers with its dorsal fin and breathes with gills",
            "has a swim bladder and fins",
        ),
        "young": (
            "spawns thousands of eggs in the water",
            "lays its spawn between water plants",
            "leaves its fry to swim off in a shoal",
            "releases its roe into the river",
        ),
    },
    "insect": {
        "covering": (
            "has a hard exoskeleton with six legs",
            "has a shiny shell over its six-legged body",
            "has a chitin armour and two antennae",
            "has hard wing cases over its exoskeleton",
        ),
        "body": (
            "has six legs and two antennae",
            "has compound eyes and antennae",
            "has a thorax between head and abdomen",
            "has six jointed legs",
        ),
        "young": (
            "begins life as a larva",
            "turns from a caterpillar into a pupa",
            "hatches as a grub and later pupates",
            "leaves its larvae in a hive",
        ),
    },
}
_FRAMES = (
    "This animal {0}, {1}, and {2}.",
    "The animal we watched {0}. It {1}. It also {2}.",
    "A visitor describes an animal that {0}, that {1}, and that {2}.",
    "According to the field notes, the animal {0}; it {1}; and it {2}.",
)


def draw(rng: random.Random, gold: str) -> Question:
    """An animal with one feature of each kind, in random order."""
    features = [rng.choice(phrases) for phrases in FEATURES[gold].values()]
    text = rng.choice(_FRAMES).format(*rng.sample(features, len(features)))
    return Question(
        id="", dataset="multi_feature", text=text, kind="label", gold=gold, options=CLASSES
    )


def load(settings: LoadSettings) -> tuple[Question, ...]:
    return generated("multi_feature", CLASSES, draw, settings)


MULTI_FEATURE = wordings()["animal"].task(
    name="multi_feature",
    summary="synthetic animals, classified by three independent features (4.4)",
    kind="label",
    load=load,
    parse=lambda text, question: last_category(text, CLASSES),
    parse_continuation=lambda text, question: first_category(text, CLASSES),
    labels=lambda question, trace: word_surfaces(CLASSES, written_by(trace), _ARTICLE),
    options=CLASSES,
)
