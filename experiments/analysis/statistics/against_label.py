"""Statistics of scores and flags against a yes-or-no label of items.

Judges, detectors, measures and monitors are all evaluated here. AUROC and average precision take a
score, which should be higher if the label is true; κ, AC2, accuracy and F1 take flags.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from faithscope.experiments.analysis.statistics.agreement import ac2, kappa
from faithscope.experiments.analysis.statistics.areas import area
from faithscope.experiments.analysis.statistics.raters import saturated
from faithscope.experiments.analysis.statistics.resampling import (
    Bootstrap,
    Clusters,
    weights,
)
from faithscope.experiments.analysis.statistics.stats import (
    Estimate,
    clustered_share,
    over,
    percentiles,
    resampled_totals,
)

OF_SCORES = ("auroc", "pooled", "average_precision")
"""Statistics of scores: AUROC over pairs of items inside one stratum, AUROC over all pairs, and the
average precision for the items whose label is true."""
OF_FLAGS = ("kappa", "ac2", "accuracy", "f1", "f1_of_rest", "g_mean_squared")
"""Statistics of flags: Cohen's κ, Gwet's AC2 (AC1 with two classes), the share of flags that equal
the label, F1 of the class of true labels and of the other class, and sensitivity times specificity.
"""
SATURATED = "saturated"
"""Statistic: whether nearly all labels and flags are the same (`raters.saturated`)."""
Totals = Callable[[Int[np.ndarray, "clusters 4"], Bootstrap], np.ndarray]
"""Computes from the counts of clusters their sums over the drawn clusters, (draws, 4)."""


def drawn_together(counts: Int[np.ndarray, "clusters 4"], how: Bootstrap) -> np.ndarray:
    """Sums over clusters in the same draws as the intervals of AUROC and means."""
    return np.concatenate([w.astype(float) @ counts for w in weights(len(counts), how)])


def drawn_by_one(counts: Int[np.ndarray, "clusters 4"], how: Bootstrap) -> np.ndarray:
    """Sums over clusters drawn one by one: the same distribution by other random numbers."""
    return resampled_totals(counts, np.random.default_rng(how.seed), how.resamples)


def against_label(
    statistics: Collection[str],
    label: Bool[np.ndarray, " items"],
    clusters: Clusters,
    how: Bootstrap,
    *,
    score: Float[np.ndarray, " items"] | None = None,
    flag: Float[np.ndarray, " items"] | None = None,
    strata: np.ndarray | None = None,
    totals: Totals = drawn_together,
) -> dict[str, Any]:
    """Statistics of scores or flags against a label, each over the items with the needed values.

    Args:
        statistics: names from `OF_SCORES`, `OF_FLAGS` and `SATURATED`.
        clusters: the units drawn for intervals, such as questions or chains.
        score: NaN for an item without a score.
        flag: 1 or 0, NaN for an item without a flag.
        strata: the groups inside which `auroc` compares items; by default one group.

    Returns:
        Name -> `Estimate`, without an interval for fewer than `stats.FEWEST` clusters; average
        precision is a number, and `saturated` true or false, or None without items. All others are
        NaN if undefined.
    """
    from sklearn.metrics import average_precision_score

    names = np.asarray(clusters, dtype=str)
    result: dict[str, Any] = {}
    if score is not None:
        known = ~np.isnan(score)
        of = (names[known], label[known], score[known])
        inside = None if strata is None else strata[known]
        if "auroc" in statistics:
            result["auroc"] = area(*of, inside).estimate()
        if "pooled" in statistics:
            one = "auroc" in result and (inside is None or len(set(inside)) == 1)
            result["pooled"] = result["auroc"] if one else area(*of).estimate()
        if "average_precision" in statistics:
            both = 0 < of[1].sum() < len(of[1])
            result["average_precision"] = (
                float(average_precision_score(of[1], of[2])) if both else math.nan
            )
    if flag is not None:
        known = ~np.isnan(flag)
        said, true = flag[known] == 1, label[known]
        if SATURATED in statistics:
            result[SATURATED] = saturated(said.tolist(), true.tolist()) if len(said) else None
        if wanted := [name for name in OF_FLAGS if name in statistics]:
            estimates = _of_flags(true, said, names[known], how, totals)
            result |= {name: estimates[name] for name in wanted}
    return result


def _of_flags(
    label: np.ndarray, flag: np.ndarray, clusters: np.ndarray, how: Bootstrap, totals: Totals
) -> dict[str, Estimate]:
    n = len(label)
    if not n:
        return dict.fromkeys(OF_FLAGS, Estimate(math.nan, math.nan, math.nan, 0))
    kinds = np.stack([label & flag, ~label & flag, label & ~flag, ~label & ~flag], axis=1)
    names, codes = np.unique(clusters, return_inverse=True)
    counts = np.zeros((len(names), 4), dtype=np.int64)
    np.add.at(counts, codes, kinds.astype(int))
    values, drawn = agreement_of(counts.sum(axis=0)), agreement_of(totals(counts, how))
    found = {s: Estimate(float(values[s]), *percentiles(drawn[s], len(names)), n) for s in OF_FLAGS}
    return found | {"accuracy": clustered_share((label == flag).astype(float), codes)}


def agreement_of(counts: np.ndarray) -> dict[str, np.ndarray]:
    """The statistics `OF_FLAGS` from (…, 4) counts of items: true and flagged, false and flagged,
    true and not flagged, false and not flagged; NaN if undefined."""
    both, wrongly, missed, neither = (counts[..., i].astype(float) for i in range(4))
    n = both + wrongly + missed + neither
    crossed = (both, both + wrongly, both + missed, n)
    return {
        "kappa": kappa(*crossed),
        "ac2": ac2(*crossed),
        "accuracy": over(both + neither, n),
        "f1": over(2 * both, 2 * both + wrongly + missed),
        "f1_of_rest": over(2 * neither, 2 * neither + wrongly + missed),
        "g_mean_squared": over(both, both + missed) * over(neither, neither + wrongly),
    }
