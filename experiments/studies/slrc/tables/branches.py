"""Branches of an edit over many records, as arrays with one value per branch.

Tables about steps count hundreds of thousands of branches; looping over them in Python would take
most of a report's time. Branches are in the order of the records, then of each record's list.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Num

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.aggregates import Number, Numbers, Share
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import inclusion_of
from faithscope.experiments.analysis.records import Record, Records, once
from faithscope.experiments.analysis.statistics.stats import (
    Estimate,
    over,
    percentiles,
    resampled_totals,
)
from faithscope.experiments.analysis.tidy import columns, mean_weighted
from faithscope.experiments.studies.slrc.tables.outcomes import (
    ANSWERS,
    NOT_OF_STEPS,
    answers,
    flips,
    redundancy,
)


@dataclass(frozen=True)
class Ragged:
    """One list per record, concatenated in a flat array."""

    values: Float[np.ndarray, " b"]
    """Values of all lists, concatenated, with NaN for None."""
    lengths: Int[np.ndarray, " records"]

    @classmethod
    def of(cls, lists: Sequence[Sequence[Any] | None]) -> Ragged:
        """Builds the array from lists of numbers or booleans (as 1 and 0); None counts as an empty
        list."""
        present = [values or () for values in lists]
        flat = np.array(list(itertools.chain.from_iterable(present)), dtype=float)
        return cls(flat, np.fromiter(map(len, present), dtype=np.int64, count=len(present)))

    @property
    def record(self) -> Int[np.ndarray, " b"]:
        """Index of the record that each value belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def at(self) -> Int[np.ndarray, " b"]:
        """Index of each value within the list of its record."""
        starts = np.cumsum(self.lengths) - self.lengths
        return np.arange(len(self.values)) - np.repeat(starts, self.lengths)

    def take(self, records: Int[np.ndarray, " chosen"]) -> Ragged:
        """The lists of the chosen records, in the given order."""
        starts, lengths = (np.cumsum(self.lengths) - self.lengths)[records], self.lengths[records]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Ragged(self.values[np.repeat(starts, lengths) + within], lengths)

    def filled(self, like: Ragged) -> Float[np.ndarray, " b"]:
        """Values aligned with `like`, NaN for a record whose list is empty.

        Raises:
            ValueError: a record has values, but not as many as in `like`.
        """
        there = self.lengths > 0
        if (self.lengths[there] != like.lengths[there]).any():
            raise ValueError("two lists of one record, a value per branch, differ in length")
        values = np.full(len(like.values), np.nan)
        values[np.repeat(there, like.lengths)] = self.values
        return values


def flips_of(same: Sequence[Record], edit: str) -> Ragged:
    """`outcomes.flips` of all records: 1 where the branch changed the answer, NaN where there is
    none."""
    make = lambda: Ragged.of([flips(r, edit) for r in same])  # noqa: E731
    return once(same, ("flips", edit), make)


def weights_of(same: Sequence[Record], edit: str) -> Float[np.ndarray, " b"] | None:
    """Weight of each branch of `flips_of`, the inverse of the probability with which its step was
    drawn to be edited (1 for a step that was not); None if every step of all records is edited, so
    that all branches count alike."""
    if edit in NOT_OF_STEPS or all(inclusion_of(r) is None for r in same):
        return None
    flipped = flips_of(same, edit)
    has_branches = zip(same, flipped.lengths, strict=True)
    drawn = Ragged.of([inclusion_of(r) if n else None for r, n in has_branches])
    probabilities = drawn.filled(flipped)
    return 1 / np.where(np.isnan(probabilities), 1, probabilities)


def weights_known(edit: str) -> Callable[[Sequence[Record]], np.ndarray | None]:
    """Function from records to the weights of an edit's branches of known outcome; None if all
    count alike."""

    def of(same: Sequence[Record]) -> np.ndarray | None:
        weights = weights_of(same, edit)
        return None if weights is None else unlike(weights[~np.isnan(flips_of(same, edit).values)])

    return of


def unlike(weights: Float[np.ndarray, " b"]) -> Float[np.ndarray, " b"] | None:
    """The weights, or None if they are all alike."""
    return weights if len(weights) and np.ptp(weights) else None


def measure_of(same: Sequence[Record], edit: str, measure: str) -> Float[np.ndarray, " b"]:
    """A number such as `margin`, `tv` or `log_odds` per branch of `flips_of`; NaN where there is
    none."""
    values = Ragged.of([r.get(f"{ANSWERS[edit]}_{measure}") for r in same])
    return values.filled(flips_of(same, edit))


def close_of(same: Sequence[Record], edit: str) -> Float[np.ndarray, " b"]:
    """Whether each flip of known margin is within the noise floor of its record; NaN for all other
    branches (`outcomes.within_floor`)."""
    flipped = flips_of(same, edit)
    floors = np.array([r.get("noise_floor") for r in same], dtype=float)[flipped.record]
    margin = measure_of(same, edit, "margin")
    known = (flipped.values == 1) & ~np.isnan(margin) & ~np.isnan(floors)
    return np.where(known, margin <= floors, np.nan)


def both_known(
    one: Ragged, other: Ragged
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"], Int[np.ndarray, " b"]]:
    """Pairs of known values at the same place of the same record, and the index of each pair in
    `one`."""
    left = one.at < other.lengths[one.record]
    right = other.at < one.lengths[other.record]
    a, b = one.values[left], other.values[right]
    known = ~np.isnan(a) & ~np.isnan(b)
    return a[known], b[known], np.flatnonzero(left)[known]


def per_record(
    values: Float[np.ndarray, " b"],
    record: Int[np.ndarray, " b"],
    records: int,
    weights: Float[np.ndarray, " b"] | None = None,
) -> tuple[Num[np.ndarray, " records"], Num[np.ndarray, " records"]]:
    """Per record, the number of values that are 1 and the number of known values; or the sums of
    the weights of both."""
    known = ~np.isnan(values)
    if weights is not None:
        of = values[known] * weights[known], weights[known]
        ones, every = (np.bincount(record[known], weights=w, minlength=records) for w in of)
        return ones, every
    ones = np.bincount(record[known], weights=values[known], minlength=records)
    return ones.astype(np.int64), np.bincount(record[known], minlength=records)


def outcomes_of(values: Float[np.ndarray, " b"]) -> list[bool]:
    """Drops unknown (NaN) outcomes and returns the others as booleans."""
    return (values[~np.isnan(values)] == 1).tolist()


def numbers_of(values: Float[np.ndarray, " b"]) -> list[float]:
    """Drops unknown (NaN) numbers."""
    return values[~np.isnan(values)].tolist()


def differing(same: Sequence[Record], edit: str) -> Ragged:
    """Whether each branch of `flips_of` gives another answer than the model wrote originally."""
    flipped = flips_of(same, edit)
    otherwise = Ragged.of(
        [[answer != r["original"] for answer in answers(r, edit)] for r in same]
    ).filled(flipped)
    return Ragged(np.where(np.isnan(flipped.values), np.nan, otherwise), flipped.lengths)


def keep_flips(held: Records, edit: str, flipped: Ragged) -> None:
    """Sets the result of `flips_of` for records on which it has not been called yet."""
    held.once(("flips", edit), lambda: flipped)


def necessary(same: Sequence[Record]) -> list[bool]:
    """Whether each removal of a step changed the answer, over all records."""
    return outcomes_of(flips_of(same, "remove").values)


def sufficient(same: Sequence[Record]) -> list[bool]:
    """Whether each step kept alone gave the same answer, over all records."""
    return outcomes_of(1 - flips_of(same, "keep_only").values)


OF_REMOVAL = weights_known("remove")
"""Function from records to the weights of the removals of `necessary`; None if all count alike."""
NECESSITY = Share(
    "necessity",
    necessary,
    meaning="Share of the steps whose removal changes the answer (§4.1).",
    weights=OF_REMOVAL,
)
SUFFICIENCY = Share(
    "sufficiency",
    sufficient,
    meaning="Share of the steps that, kept alone, lead to the same answer (§4.1).",
    weights=weights_known("keep_only"),
)


def step_counts(same: Sequence[Record]) -> Num[np.ndarray, "records 4"]:
    """Counts per record: removals that changed the answer, removals, steps that alone gave the same
    answer, and steps kept alone; estimates of these counts where a sample of the steps is
    edited."""
    removed, alone = (flips_of(same, edit) for edit in ("remove", "keep_only"))
    weights = [weights_of(same, edit) for edit in ("remove", "keep_only")]
    of_removed = per_record(removed.values, removed.record, len(same), weights[0])
    of_alone = per_record(1 - alone.values, alone.record, len(same), weights[1])
    return np.stack([*of_removed, *of_alone], axis=1)


def slrc_of_counts(totals: Num[np.ndarray, "draws 4"]) -> np.ndarray:
    """SLRC of each row of `step_counts`; NaN where necessity or sufficiency is undefined."""
    return over(totals[:, 0], totals[:, 1]) * (1 - over(totals[:, 2], totals[:, 3]))


def _capacity(same: Sequence[Record], how: aggregates.Analysis) -> dict[str, float]:
    counts = step_counts(same)
    total = counts.sum(axis=0, keepdims=True)
    value, low, high = float(slrc_of_counts(total)[0]), math.nan, math.nan
    if not math.isnan(value):
        # A bootstrap draw without any removal, or without any step kept alone, gives NaN.
        rng = np.random.default_rng(how.seed)
        draws = slrc_of_counts(resampled_totals(counts, rng, how.resamples))
        low, high = percentiles(draws)
    return columns("slrc", Estimate(value, low, high, len(same)))


SLRC = Column(
    "slrc", "SLRC", "Necessity × (1 − sufficiency), of these aggregates (§4.2).", interval=True
)
CAPACITY = Numbers((SLRC,), _capacity)
"""SLRC of the aggregates, with a percentile interval from resampling items."""


def _routes(same: Sequence[Record]) -> float:
    share = mean_weighted(necessary(same), OF_REMOVAL(same))
    return redundancy(math.nan if share is None else share)


REDUNDANCY_BOUND = Number("redundancy_bound", _routes, "routes implied", "1 / necessity (§3.3).")
