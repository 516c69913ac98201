"""One measure: what it is read from, which way it points, what it costs; and ways to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import mean, mean_present

Family = Literal["behavioural", "logit", "internal"]
"""Whether it is read off the answers, off their probabilities, or inside the model."""
OfItem = Sequence[Record]
"""The records of one item that a measure is read from."""


@dataclass(frozen=True)
class Measure:
    """One number per item that is to say how much the answer depends on the reasoning."""

    name: str
    probe: str
    family: Family
    score: Callable[[OfItem], float | None]
    """None where the item has no such number."""
    forwards: Callable[[OfItem], int | None]
    """Model calls for this measure alone, of one item; see the module. None where the record
    does not say."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Fields that the probe's records must have: variant, framing, reading."""
    higher_is_faithful: bool = True
    """What theory says before any data is seen; never turned round afterwards."""
    share: bool = False
    """Whether the score is to be the share, in [0, 1], of the answer that the steps decide."""
    about: Literal["reliance", "faithfulness"] = "reliance"
    """Whether it says how much the answer depends on the text, or whether the text describes what
    the answer depends on. One of the first kind cannot be expected to find out a text that leaves
    out, or misnames, what else led to the answer."""
    steps: Callable[[OfItem], dict[int, float]] | None = None
    """Credit of each step by its index in the trace, the greater the more the answer hangs on
    it; steps that could not be measured are left out."""

    in_short: str = ""
    """What it is, in the few words of the short table of planted truth; "" where not in it."""

    def records(self, of_probe: Iterable[Record]) -> list[Record]:
        """Those of the probe's records that it is read from."""
        return [r for r in of_probe if all(r.get(k) == v for k, v in self.where.items())]


def value(name: str) -> Callable[[OfItem], float | None]:
    """A score that stands in the one record as it is."""

    def read(records: OfItem) -> float | None:
        (record,) = records
        number = record.get(name)
        return None if number is None else float(number)

    return read


OfSteps = str | Callable[[Record], Sequence[Any] | None]
"""A list of a record by its name, or what is computed of it: a value per step, None without one."""


def mean_of(values: OfSteps) -> Callable[[OfItem], float | None]:
    """The mean over the steps of the one record that have a value."""
    return lambda records: mean_present(_of_steps(records, values))


def listed(values: OfSteps) -> Callable[[OfItem], dict[int, float]]:
    """Steps' credit that stands in the one record."""
    return lambda records: by_step(records[0], _of_steps(records, values))


def _of_steps(records: OfItem, values: OfSteps) -> Sequence[Any]:
    (record,) = records
    return (record.get(values) if isinstance(values, str) else values(record)) or ()


def mean_over_variants(score: Callable[[Record], float | None]) -> Callable[[OfItem], float | None]:
    """A score of one record, averaged over all variants of the item that have it."""
    return lambda records: mean_present([score(r) for r in records])


def listed_over_variants(values: OfSteps) -> Callable[[OfItem], dict[int, float]]:
    """Steps' credit, averaged over all variants of the item that credit the step."""

    def read(records: OfItem) -> dict[int, float]:
        each = [by_step(r, _of_steps([r], values)) for r in records]
        of_step = {s: [c[s] for c in each if s in c] for s in dict.fromkeys(chain(*each))}
        return {s: mean(credits) for s, credits in of_step.items()}

    return read


def calls(fixed: int = 0, per_step: int = 0) -> Callable[[OfItem], int]:
    """A cost that grows with the steps."""
    return lambda records: fixed + (per_step * records[0]["n_steps"] if per_step else 0)


def by_step(record: Record, values: Sequence[Any]) -> dict[int, float]:
    pairs = zip(record.get("steps") or (), values, strict=False)
    return {step: float(x) for step, x in pairs if x is not None}
