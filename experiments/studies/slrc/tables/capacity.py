"""Step-Level Reasoning Capacity from necessity and sufficiency, and its bound on redundancy."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Int

from faithscope.experiments.analysis.stats import (
    CONFIDENCE,
    RESAMPLES,
    percentiles,
    resampled_totals,
)


def slrc(necessity: float, sufficiency: float) -> float:
    """Step-Level Reasoning Capacity, necessity × (1 − sufficiency), of the aggregates.

    SLRC paper, §4.2, equation 8: the text has lost the formula; this one reproduces Table 1.
    """
    return necessity * (1 - sufficiency)


def slrc_interval(
    necessary: Int[np.ndarray, " items"],
    removals: Int[np.ndarray, " items"],
    sufficient: Int[np.ndarray, " items"],
    kept_alone: Int[np.ndarray, " items"],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> tuple[float, float]:
    """Percentile bootstrap interval of SLRC, drawing items with replacement.

    The four arrays count, per item, the removals that changed the answer, the removals
    made, the steps that alone gave the answer back, and the steps kept alone. NaN twice
    where either measure was never taken.
    """
    counts = np.stack([necessary, removals, sufficient, kept_alone], axis=1).astype(np.int64)
    n = len(counts)
    if n == 0 or not counts[:, 1].any() or not counts[:, 3].any():
        return math.nan, math.nan
    totals = resampled_totals(counts, np.random.default_rng(seed), resamples)
    # A draw may miss every item that has a removal or a step alone: it says nothing.
    totals = totals[(totals[:, 1] > 0) & (totals[:, 3] > 0)]
    return percentiles(slrc_of_counts(totals), confidence)


def slrc_of_counts(totals: Int[np.ndarray, "draws 4"]) -> np.ndarray:
    """SLRC of each row (necessary, removals, sufficient, kept alone)."""
    return totals[:, 0] / totals[:, 1] * (1 - totals[:, 2] / totals[:, 3])


def redundancy(necessity: float) -> float:
    """How many independent routes to the answer would explain a necessity this low.

    The redundancy bound of the SLRC paper, §3.3: with k routes, necessity ≤ 1/k, so
    k = 1 / necessity; infinite where no step was necessary.
    """
    if math.isnan(necessity):
        return math.nan
    return 1 / necessity if necessity > 0 else math.inf
