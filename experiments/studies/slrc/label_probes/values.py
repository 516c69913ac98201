"""The labels of a run's chains and steps by name, and how long chains and steps are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from faithscope.experiments.analysis.statistics.classifiers import ONE_CLASS, ONE_VALUE, TOO_FEW
from faithscope.experiments.analysis.statistics.label_probes import NO_NUMBERS, WITHIN_FOLDS
from faithscope.experiments.analysis.stored_records import Place
from faithscope.interp.hook_names import Site

UNKNOWN, NO_STEP_STATES = "no_such_label", "no_states_of_steps"
NO_SINGLE_STATE = "no_single_state"
"""Why a label is not read: the run has none of the name; the states of steps are not stored; no
place has one state of every chain."""
ANOTHER_MODEL, ANOTHER_WIDTH = "another_model", "another_width"
NO_LAYER, NO_PLACE, NO_SITE = "layer_not_stored", "place_not_stored", "site_not_stored"
"""Why a direction is not read: it is of another model, or of a width, layer, place or site that the
stored states do not have."""
NO_FILE = "directions_not_readable"
"""Why no direction is read: their file is gone, or is none."""
NO_LABEL = "label_unknown_or_rare"
"""Why a chain or step takes no part: its label is not known, or a class that too few questions
have."""
REASONS = {
    TOO_FEW: "too few items of classes that recur",
    ONE_CLASS: "fewer than 2 classes that recur",
    ONE_VALUE: "the label has one value",
    WITHIN_FOLDS: "no fold has two classes of the label, which goes with the questions",
    NO_NUMBERS: "the label has texts, which ridge regression does not read",
    UNKNOWN: "the run has no label of this name",
    NO_STEP_STATES: "states of steps were not stored",
    NO_SINGLE_STATE: "no span has one state of every chain",
    NO_LABEL: "their label is not known, or too rare",
    NO_FILE: "the file of directions cannot be read",
    ANOTHER_MODEL: "the direction is of another model",
    ANOTHER_WIDTH: "the direction has another width",
    NO_LAYER: "the direction's layer was not stored",
    NO_PLACE: "the direction's place was not stored",
    NO_SITE: "states of the direction's site were not stored",
}
"""Reason -> the reason in words."""

Level = Literal["chain", "step"]
"""Whether chains or steps have a label."""
Values = Mapping[Place, Any]
"""Place of a chain -> its label: a truth value, number or text; None without one."""
StepValues = Mapping[Place, Mapping[int, Any]]
"""Place of a chain -> index of a step -> its label."""


class Lengths(NamedTuple):
    """How long a chain is."""

    tokens: int
    """Tokens of the reasoning."""
    steps: Mapping[int, int]
    """Index of each counted step -> its tokens."""


@dataclass(frozen=True)
class RunLabels:
    """Every label of a run; values are computed when they are asked for."""

    chains: Mapping[str, Callable[[], Values]] = field(default_factory=dict)
    steps: Mapping[str, Callable[[], StepValues]] = field(default_factory=dict)
    lengths: Mapping[Place, Lengths] = field(default_factory=dict)


class FittedDirection(NamedTuple):
    """A direction that was fitted to the states of a run, for a file of directions."""

    name: str
    vector: Float[np.ndarray, " D"]
    layer: int
    site: Site
    about: Mapping[str, Any]
    """What the file says of it, in JSON's types."""


class AppliedScore(NamedTuple):
    """The score of a chain, or of one of its steps, by a direction of another run."""

    place: Place
    measure: str
    """Name of the score in comparisons."""
    value: float
    higher_is_faithful: bool
    step: int | None = None
    """Index of the step; None for the chain."""
