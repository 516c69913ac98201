"""An open model's own stance after each part of its output, by the log-probs of the options.

The stance reader that asks the model itself: its context is cut after r′, after its reasoning,
after its explanation, and where its answer ends; there the reasoning is closed and a cue put, and
every option is scored. It says what the model would answer there, not what the part says: where the
two differ, that is what is to be seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faithscope.experiments.studies.rfeval.asks import Condition
from faithscope.experiments.studies.rfeval.inside.config import CUE
from faithscope.experiments.studies.rfeval.inside.layout import layout
from faithscope.experiments.studies.rfeval.inside.tracing import option_labels, scored_after
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stances import Naming, stance_of_letter
from faithscope.experiments.studies.rfeval.subjects.injection import Forced
from faithscope.probes.graded import label_mass, log_distribution, top
from faithscope.probes.settings import Execution

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_OPTIONS = "no_options"
"""Why an item has no scored stances: there are no options whose log-probs could be read."""
LOG_PROBS = "log_probs"
"""The name of this reader."""


@dataclass(frozen=True)
class ScoredStance:
    """What the model would answer after a part of its output."""

    part: str
    """`none` (before any reasoning), `r_prime`, `r`, `e` or `a`."""
    stance: str
    """Of the likeliest option; of equals the first."""
    probabilities: tuple[float, ...]
    """Of the options in order, as shares of one another."""
    mass: float
    """What all options together have of the model's probability there."""


def scored_stances(
    model: Model,
    item: Item,
    start: Forced,
    generated: Sequence[int],
    naming: Naming = "letters",
    execution: Execution = "auto",
) -> list[ScoredStance]:
    """The model's stance after each part of one output, all in one packed call.

    None of an item without options (`NO_OPTIONS`): a free answer has no labels to score.

    Raises:
        FloatingPointError: a log-prob is NaN, naming the item.
    """
    if not item.options:
        return []
    ends = layout(model, start, generated).after_parts
    labels = option_labels(model, item, naming, CUE, "letters")
    log_probs = scored_after(model, labels, list(ends.values()), execution)
    stances = []
    for part, of_part in zip(ends, log_probs, strict=True):
        what = f"item {item.id!r}, after {part}"
        shares = log_distribution(of_part, list(item.letters), what=what)
        stance = stance_of_letter(item, top(shares), naming)
        probabilities = tuple(math.exp(x) for x in shares.values())
        stances.append(ScoredStance(part, stance, probabilities, label_mass(of_part)))
    return stances


def scored_readings(
    model: str, item: Item, scored: Mapping[Condition, Sequence[ScoredStance]]
) -> list[dict[str, Any]]:
    """The stances as rows of `metrics.frames.READINGS`, to be held against other readers'.

    What the model would say before any reasoning is no part of an output and not among them.
    """
    key = {"reader": LOG_PROBS, "model": model, "task": item.task, "item": item.id}
    return [
        key | {"part": f"{condition}_{one.part}", "stance": one.stance}
        for condition, stances in scored.items()
        for one in stances
        if one.part != "none"
    ]
