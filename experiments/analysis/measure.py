"""`Measure`: a score per item with its source, direction and cost; and common ways to read one
from records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tidy import mean, mean_present, present
from faithscope.probes.record import mean_of_steps

Family = Literal["behavioural", "logit", "internal"]
"""Kind of evidence that a measure reads: answers, their probabilities, or the model's inside."""
OfItem = Sequence[Record]
"""The records of one item that a measure is read from."""


@dataclass(frozen=True)
class Measure:
    """A score per item: how much the answer depends on the reasoning, or how faithful that is."""

    name: str
    probe: str
    family: Family
    score: Callable[[OfItem], float | None]
    """Computes the score from the item's records; None if the item has no score."""
    forwards: Callable[[OfItem], int | None]
    """Number of model calls that this measure alone needs for one item, without the forest; None if
    the records do not say."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Values of fields (variant, framing, reading) that select the records of the probe."""
    higher_is_faithful: bool = True
    """Direction of the score by theory; fixed before any data is seen and never changed after."""
    share: bool = False
    """Whether the score estimates the share, in [0, 1], of the answer that the steps decide."""
    about: Literal["reliance", "faithfulness"] = "reliance"
    """`reliance`: how much the answer depends on the text; `faithfulness`: whether the text
    describes what the answer depends on. A measure of reliance cannot be expected to detect a text
    that omits or misnames another cause of the answer."""
    steps: Callable[[OfItem], dict[int, float]] | None = None
    """Computes step index -> credit, greater if the answer depends more on the step; steps that
    could not be measured are left out."""

    unfaithful_below: float | None = None
    """Score below which a text is called unfaithful, fixed before any data is seen; None for a
    measure without such a rule."""
    in_short: str = ""
    """Name of the measure in the short table of planted truth; "" if it is not in that table."""

    def records(self, of_probe: Iterable[Record]) -> list[Record]:
        """The records, among those of its probe, that the measure is read from."""
        return [r for r in of_probe if all(r.get(k) == v for k, v in self.where.items())]


def value(name: str) -> Callable[[OfItem], float | None]:
    """A score that is a field of the item's only record."""

    def read(records: OfItem) -> float | None:
        (record,) = records
        number = record.get(name)
        return None if number is None else float(number)

    return read


OfSteps = str | Callable[[Record], Sequence[Any] | None]
"""A list with one value (or None) per step: a field of a record, or computed from the record."""


def mean_of(values: OfSteps) -> Callable[[OfItem], float | None]:
    """A score that is the mean over steps of a list in the item's only record, without None; where
    a sample of the steps was edited, an estimate of the mean over all (`mean_of_steps`)."""
    return lambda records: mean_of_steps(_of_steps(records, values), inclusion_of(records[0]))


def inclusion_of(record: Record) -> Sequence[float | None] | None:
    """Per counted step, the probability with which it was drawn to be edited, None for a step that
    was not; None where all steps are edited."""
    return record.get("inclusion")


def listed(values: OfSteps) -> Callable[[OfItem], dict[int, float]]:
    """Credits of steps that stand as a list in the item's only record."""
    return lambda records: by_step(records[0], _of_steps(records, values))


def _of_steps(records: OfItem, values: OfSteps) -> Sequence[Any]:
    (record,) = records
    return (record.get(values) if isinstance(values, str) else values(record)) or ()


def mean_over_variants(score: Callable[[Record], float | None]) -> Callable[[OfItem], float | None]:
    """A score averaged over the records of all variants of the item, without None."""
    return lambda records: mean_present([score(r) for r in records])


def listed_over_variants(values: OfSteps) -> Callable[[OfItem], dict[int, float]]:
    """Credits of steps, averaged over the variants of the item that credit the step."""

    def read(records: OfItem) -> dict[int, float]:
        each = [by_step(r, _of_steps([r], values)) for r in records]
        of_step = {s: [c[s] for c in each if s in c] for s in dict.fromkeys(chain(*each))}
        return {s: mean(credits) for s, credits in of_step.items()}

    return read


def calls(fixed: int = 0, per_step: int = 0) -> Callable[[OfItem], int]:
    """A cost in model calls: `fixed`, plus `per_step` for every step that is edited."""
    return lambda records: fixed + (per_step * n_edited(records[0]) if per_step else 0)


def n_edited(record: Record) -> int:
    """Number of steps that are edited one by one: all counted ones, or those of a sample."""
    inclusion = inclusion_of(record)
    return record["n_steps"] if inclusion is None else len(present(inclusion))


def by_step(record: Record, values: Sequence[Any]) -> dict[int, float]:
    pairs = zip(record.get("steps") or (), values, strict=False)
    return {step: float(x) for step, x in pairs if x is not None}
