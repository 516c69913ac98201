"""The branches of an edit over all records of a row: arrays with a place for each branch.

Rows over steps count hundreds of thousands of branches, and a loop over them would take most of
the time of a report. The order is that of the records, and within one that of its list.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from faithscope.experiments.analysis import cells
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.records import Record, Records, once
from faithscope.experiments.analysis.statistics.stats import (
    Estimate,
    over,
    percentiles,
    resampled_totals,
)
from faithscope.experiments.analysis.tables import Number, Numbers, Share
from faithscope.experiments.analysis.tidy import columns
from faithscope.experiments.studies.slrc.tables.outcomes import ANSWERS, answers, flips, redundancy


@dataclass(frozen=True)
class Ragged:
    """A list of each record, end to end."""

    values: Float[np.ndarray, " b"]
    """All lists end to end, with NaN for None."""
    lengths: Int[np.ndarray, " records"]

    @classmethod
    def of(cls, lists: Sequence[Sequence[Any] | None]) -> Ragged:
        """Numbers, or yes and no as 1 and 0; None counts as an empty list."""
        present = [values or () for values in lists]
        flat = np.array(list(itertools.chain.from_iterable(present)), dtype=float)
        return cls(flat, np.fromiter(map(len, present), dtype=np.int64, count=len(present)))

    @property
    def record(self) -> Int[np.ndarray, " b"]:
        """The record that each value is of, by its place."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def at(self) -> Int[np.ndarray, " b"]:
        """The place of each value in the list of its record."""
        starts = np.cumsum(self.lengths) - self.lengths
        return np.arange(len(self.values)) - np.repeat(starts, self.lengths)

    def take(self, records: Int[np.ndarray, " chosen"]) -> Ragged:
        """The lists of some records, in that order."""
        starts, lengths = (np.cumsum(self.lengths) - self.lengths)[records], self.lengths[records]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Ragged(self.values[np.repeat(starts, lengths) + within], lengths)

    def filled(self, like: Ragged) -> Float[np.ndarray, " b"]:
        """The values in the places of `like`, NaN for a record that has none.

        Raises:
            ValueError: a record has some, and another number of them.
        """
        there = self.lengths > 0
        if (self.lengths[there] != like.lengths[there]).any():
            raise ValueError("two lists of one record, a value per branch, differ in length")
        values = np.full(len(like.values), np.nan)
        values[np.repeat(there, like.lengths)] = self.values
        return values


def flips_of(same: Sequence[Record], edit: str) -> Ragged:
    """`outcomes.flips` of all records: 1 where the branch changed the answer, NaN without one."""
    make = lambda: Ragged.of([flips(r, edit) for r in same])  # noqa: E731
    return once(same, ("flips", edit), make)


def measure_of(same: Sequence[Record], edit: str, measure: str) -> Float[np.ndarray, " b"]:
    """A number of each branch of `flips_of`, as `margin`, `tv` or `log_odds`; NaN without one."""
    values = Ragged.of([r.get(f"{ANSWERS[edit]}_{measure}") for r in same])
    return values.filled(flips_of(same, edit))


def close_of(same: Sequence[Record], edit: str) -> Float[np.ndarray, " b"]:
    """`outcomes.within_floor` of all records: of flips of known margin whether it lies within the
    noise floor of their record, NaN of all other branches."""
    flipped = flips_of(same, edit)
    floors = np.array([r.get("noise_floor") for r in same], dtype=float)[flipped.record]
    margin = measure_of(same, edit, "margin")
    known = (flipped.values == 1) & ~np.isnan(margin) & ~np.isnan(floors)
    return np.where(known, margin <= floors, np.nan)


def both_known(
    one: Ragged, other: Ragged
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"], Int[np.ndarray, " b"]]:
    """The pairs of values at one place of one record, both known, and the record of each pair."""
    left = one.at < other.lengths[one.record]
    right = other.at < one.lengths[other.record]
    a, b = one.values[left], other.values[right]
    known = ~np.isnan(a) & ~np.isnan(b)
    return a[known], b[known], one.record[left][known]


def per_record(
    values: Float[np.ndarray, " b"], record: Int[np.ndarray, " b"], records: int
) -> tuple[Int[np.ndarray, " records"], Int[np.ndarray, " records"]]:
    """Number of values of each record that are 1, and number that are known."""
    known = ~np.isnan(values)
    ones = np.bincount(record[known], weights=values[known], minlength=records)
    return ones.astype(np.int64), np.bincount(record[known], minlength=records)


def outcomes_of(values: Float[np.ndarray, " b"]) -> list[bool]:
    """Drops unknown (NaN) outcomes and returns the others as booleans."""
    return (values[~np.isnan(values)] == 1).tolist()


def numbers_of(values: Float[np.ndarray, " b"]) -> list[float]:
    """Drops unknown (NaN) numbers."""
    return values[~np.isnan(values)].tolist()


def differing(same: Sequence[Record], edit: str) -> Ragged:
    """Whether every branch of `flips_of` answers otherwise than the model itself did."""
    flipped = flips_of(same, edit)
    otherwise = Ragged.of(
        [[answer != r["original"] for answer in answers(r, edit)] for r in same]
    ).filled(flipped)
    return Ragged(np.where(np.isnan(flipped.values), np.nan, otherwise), flipped.lengths)


def keep_flips(held: Records, edit: str, flipped: Ragged) -> None:
    """Let `flips_of` say this of records of which nothing has been asked yet."""
    held.once(("flips", edit), lambda: flipped)


def necessary(same: Sequence[Record]) -> list[bool]:
    """Whether each removal of a step changed the answer."""
    return outcomes_of(flips_of(same, "remove").values)


def sufficient(same: Sequence[Record]) -> list[bool]:
    """Whether each step kept alone gave the answer back."""
    return outcomes_of(1 - flips_of(same, "keep_only").values)


NECESSITY = Share(
    "necessity", necessary, meaning="Share of the steps whose removal changes the answer (§4.1)."
)
SUFFICIENCY = Share(
    "sufficiency",
    sufficient,
    meaning="Share of the steps that, kept alone, lead to the same answer (§4.1).",
)


def step_counts(same: Sequence[Record]) -> Int[np.ndarray, "records 4"]:
    """Counts of each record: removals that changed the answer, removals, steps that alone gave it
    back, steps kept alone."""
    removed, alone = (flips_of(same, edit) for edit in ("remove", "keep_only"))
    of_removed = per_record(removed.values, removed.record, len(same))
    of_alone = per_record(1 - alone.values, alone.record, len(same))
    return np.stack([*of_removed, *of_alone], axis=1)


def slrc_of_counts(totals: Int[np.ndarray, "draws 4"]) -> np.ndarray:
    """SLRC of each row of `step_counts`; NaN where either measure was never taken."""
    return over(totals[:, 0], totals[:, 1]) * (1 - over(totals[:, 2], totals[:, 3]))


def _capacity(same: Sequence[Record], how: cells.Analysis) -> dict[str, float]:
    counts = step_counts(same)
    total = counts.sum(axis=0, keepdims=True)
    value, low, high = float(slrc_of_counts(total)[0]), math.nan, math.nan
    if not math.isnan(value):
        # a draw that misses every item with a removal, or with a step alone, says nothing
        rng = np.random.default_rng(how.seed)
        draws = slrc_of_counts(resampled_totals(counts, rng, how.resamples))
        low, high = percentiles(draws)
    return columns("slrc", Estimate(value, low, high, len(same)))


SLRC = Column(
    "slrc", "SLRC", "Necessity × (1 − sufficiency), of these aggregates (§4.2).", interval=True
)
CAPACITY = Numbers((SLRC,), _capacity)
"""SLRC of the aggregates; its percentile interval draws items with replacement."""


def _routes(same: Sequence[Record]) -> float:
    changed = necessary(same)
    return redundancy(sum(changed) / len(changed) if changed else math.nan)


REDUNDANCY_BOUND = Number("redundancy_bound", _routes, "routes implied", "1 / necessity (§3.3).")
