"""Step-Level Reasoning Capacity from necessity and sufficiency, and its bound on redundancy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Int

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics.stats import (
    Estimate,
    over,
    percentiles,
    resampled_totals,
)
from faithscope.experiments.analysis.tidy import columns, present, with_interval
from faithscope.experiments.studies.slrc.tables.outcomes import flips


def slrc(necessity: float, sufficiency: float) -> float:
    """Step-Level Reasoning Capacity, necessity × (1 − sufficiency), of the aggregates.

    SLRC paper, §4.2, equation 8: the text has lost the formula; this one reproduces Table 1.
    """
    return necessity * (1 - sufficiency)


def redundancy(necessity: float) -> float:
    """How many independent routes to the answer would explain a necessity this low.

    The redundancy bound of the SLRC paper, §3.3: with k routes, necessity ≤ 1/k, so
    k = 1 / necessity; infinite where no step was necessary.
    """
    if math.isnan(necessity):
        return math.nan
    return 1 / necessity if necessity > 0 else math.inf


def step_counts(record: Record) -> list[int]:
    """Removals that changed the answer, removals; steps that alone gave it back, steps alone."""
    removed, alone = present(flips(record, "remove")), present(flips(record, "keep_only"))
    return [sum(removed), len(removed), len(alone) - sum(alone), len(alone)]


def slrc_of_counts(totals: Int[np.ndarray, "draws 4"]) -> np.ndarray:
    """SLRC of each row of `step_counts`; NaN where either measure was never taken."""
    return over(totals[:, 0], totals[:, 1]) * (1 - over(totals[:, 2], totals[:, 3]))


def necessary(same: Sequence[Record]) -> Iterator[bool]:
    """Of every removal, whether it changed the answer."""
    return (flip for r in same for flip in present(flips(r, "remove")))


def sufficient(same: Sequence[Record]) -> Iterator[bool]:
    """Of every step kept alone, whether it gave the answer back."""
    return (not flip for r in same for flip in present(flips(r, "keep_only")))


def _capacity(same: Sequence[Record], analysis: kit.Analysis) -> dict[str, float]:
    counts = np.array([step_counts(r) for r in same], dtype=np.int64).reshape(-1, 4)
    total = counts.sum(axis=0, keepdims=True)
    value, low, high = float(slrc_of_counts(total)[0]), math.nan, math.nan
    if not math.isnan(value):
        # a draw that misses every item with a removal, or with a step alone, says nothing
        rng = np.random.default_rng(analysis.seed)
        draws = slrc_of_counts(resampled_totals(counts, rng, analysis.resamples))
        low, high = percentiles(draws)
    return columns("slrc", Estimate(value, low, high, len(same))) | {
        "redundancy_bound": redundancy(float(over(total[:, 0], total[:, 1])[0]))
    }


CAPACITY = kit.Stat(tuple(with_interval("slrc")), _capacity)
"""SLRC of the aggregates; its percentile interval draws items with replacement."""
WITH_BOUND = kit.Stat((*CAPACITY.names, "redundancy_bound"), _capacity)
