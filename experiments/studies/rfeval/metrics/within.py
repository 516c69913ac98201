"""How well a score tells two kinds apart, among what is comparable."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit, logit
from scipy.stats import mannwhitneyu, norm

from faithscope.experiments.analysis.statistics.stats import CONFIDENCE, Estimate, wilson


def auroc_within(
    clusters: np.ndarray,
    strata: np.ndarray,
    positive: Bool[np.ndarray, " rows"],
    score: Float[np.ndarray, " rows"],
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Area under the ROC curve over pairs of rows of one stratum, ties counting half.

    The areas of the strata weighted by their pairs of a positive and a negative row; with one
    stratum, the plain area. Its variance is DeLong's (1988) with the components of a cluster added
    up first (Obuchowski 1997), the interval normal in log-odds. Where every pair agrees there is no
    variance to go by: then the interval is Wilson's, of as many trials as the rarer kind has
    clusters. Where no pair differs there is none either: the area is .5, its bounds NaN.

    Args:
        clusters: (rows,) rows of one are not independent: those of one item.
        strata: (rows,) pairs are of rows that are equal here.

    Returns:
        NaN where no stratum has rows of both kinds; `n` is the number of rows.
    """
    won, pairs = np.zeros(len(score)), np.zeros(len(score))
    for stratum in np.unique(strata):
        high, low = (np.flatnonzero((strata == stratum) & k) for k in (positive, ~positive))
        if len(high) and len(low):
            won[high] = _beaten(score[high], score[low])
            won[low] = _beaten(-score[low], -score[high])
            pairs[high], pairs[low] = len(low), len(high)
    whole = pairs.sum() / 2
    if not whole:
        return Estimate(math.nan, math.nan, math.nan, len(score))
    area = float(won.sum() / 2 / whole)
    distinct, codes = np.unique(clusters, return_inverse=True)
    if area in (0.0, 1.0):
        fewest = min(len(np.unique(codes[(pairs > 0) & k])) for k in (positive, ~positive))
        bounds = wilson(round(area * fewest), fewest, confidence)
        return Estimate(area, bounds.low, bounds.high, len(score))
    moved = np.bincount(codes, weights=(won - area * pairs) / whole)
    spread = math.sqrt(float((moved**2).sum()) * len(distinct) / max(1, len(distinct) - 1))
    if not spread:
        return Estimate(area, math.nan, math.nan, len(score))
    reach = float(norm.ppf(0.5 + confidence / 2)) * spread / (area * (1 - area))
    low, high = (float(expit(logit(area) + side * reach)) for side in (-1, 1))
    return Estimate(area, low, high, len(score))


def rank_sum_p(one: np.ndarray, other: np.ndarray) -> float:
    """Two-sided p-value of the Mann-Whitney test; NaN where a side is empty or nothing varies."""
    if not len(one) or not len(other) or not np.ptp(np.concatenate([one, other])):
        return math.nan
    return float(mannwhitneyu(one, other, alternative="two-sided").pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction, as statsmodels' `multipletests`, which empties the interpreter's heap at
    every call: of thousands it takes minutes."""
    p = np.asarray(p_values, float)
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(adjusted, 1)
    return corrected.tolist()


def _beaten(scores: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Per score, how many of the others it is greater than, ties counting half."""
    ranked = np.sort(others)
    below, upto = (np.searchsorted(ranked, scores, side=side) for side in ("left", "right"))
    return (below + upto) / 2
