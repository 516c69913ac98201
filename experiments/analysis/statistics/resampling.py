"""Intervals from drawing whole clusters: rows that are not independent are drawn together.

A chain's perturbed and control items are one cluster, and so are an item's answers under several
models. The paper draws examples (C2-Faith, App. A): where a cluster has one row of a kind the two
are the same; where a number is a difference between conditions, drawing clusters keeps what its
rows have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import spearmanr

from faithscope.experiments.analysis.statistics import ranks, stats
from faithscope.experiments.analysis.statistics.stats import NOTHING, Estimate

Clusters = Sequence[str] | np.ndarray
"""(rows,) the cluster of every row: a chain, an item."""
_AT_ONCE = 200


@dataclass(frozen=True)
class Bootstrap:
    """Seed and number of resamples of every bootstrap interval."""

    seed: int = 0
    resamples: int = stats.RESAMPLES
    """Number of bootstrap resamples."""


def weights(clusters: int, how: Bootstrap) -> Iterator[Float[np.ndarray, "draws clusters"]]:
    """How often each cluster is drawn, draw by draw, some draws at a time."""
    drawn = _drawn(clusters, how)
    for first in range(0, how.resamples, _AT_ONCE):
        yield drawn[first : first + _AT_ONCE]


@lru_cache(maxsize=2)
def _drawn(clusters: int, how: Bootstrap) -> Float[np.ndarray, "draws clusters"]:
    """Counts as floats, for products; the same for every number of the same many clusters.

    Of fewer than `stats.FEWEST` clusters they are NaN: there is no interval then.
    """
    if clusters < stats.FEWEST:
        return np.full((how.resamples, clusters), np.nan, dtype=np.float32)
    rng = np.random.default_rng(how.seed)
    drawn = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=how.resamples)
    weights = drawn.astype(np.float32)
    weights.flags.writeable = False
    return weights


def ratios(
    clusters: Clusters,
    of: Mapping[str, tuple[np.ndarray, np.ndarray]],
    *,
    minus: Mapping[str, tuple[str, str]] | None = None,
    how: Bootstrap,
) -> dict[str, Estimate]:
    """Sums over rows divided by sums over rows, with percentile intervals from drawing clusters.

    Args:
        of: name -> (rows,) what is summed above the line, and below it.
        minus: name -> two of the names: the first ratio minus the second, in the same draws.

    Returns:
        The estimates; `n` is the sum below the line, the smaller of two for a difference. NaN
        where that is zero.
    """
    minus = minus or {}
    names = list(of)
    n, codes = _coded(clusters)
    if not n:
        return dict.fromkeys([*names, *minus], NOTHING)
    sums = np.stack(
        [
            np.bincount(codes, weights=np.asarray(x, dtype=float), minlength=n)
            for name in names
            for x in of[name]
        ],
        axis=1,
    )
    totals = np.concatenate([w.astype(float) @ sums for w in weights(n, how)])
    values, draws = _divided(sums.sum(axis=0)[None])[0], _divided(totals)
    below = sums.sum(axis=0)[1::2]
    place = {name: i for i, name in enumerate(names)}
    estimates = {
        name: _estimate(float(values[i]), draws[:, i], int(below[i])) for name, i in place.items()
    }
    for name, (first, second) in minus.items():
        i, j = place[first], place[second]
        at = float(values[i] - values[j])
        estimates[name] = _estimate(at, draws[:, i] - draws[:, j], int(min(below[i], below[j])))
    return estimates


def means(
    clusters: Clusters,
    of: Mapping[str, np.ndarray],
    *,
    minus: Mapping[str, tuple[str, str]] | None = None,
    how: Bootstrap,
) -> dict[str, Estimate]:
    """`ratios` of values to their number; NaN is a value that is not there."""
    there = {name: ~np.isnan(np.asarray(x, dtype=float)) for name, x in of.items()}
    summed = {name: (np.where(there[name], x, 0), there[name]) for name, x in of.items()}
    return ratios(clusters, summed, minus=minus, how=how)


def auroc(
    clusters: Clusters,
    positive: Bool[np.ndarray, " rows"],
    score: Float[np.ndarray, " rows"],
    how: Bootstrap,
    minus: Float[np.ndarray, " rows"] | None = None,
    strata: np.ndarray | None = None,
) -> Estimate:
    """Area under the ROC curve, ties counting half; its interval from drawing clusters.

    Args:
        minus: another score of the same rows, whose area is taken off, in the same draws.
        strata: (rows,) where given, only pairs of rows of one stratum count: the areas of the
            strata, weighted by their pairs. NaN where no stratum has rows of both kinds.
    """
    pairs = _pairs(positive, np.zeros(len(positive)) if strata is None else strata)
    if not pairs:
        return Estimate(math.nan, math.nan, math.nan, len(positive))
    n, codes = _coded(clusters)
    value, draws = 0.0, np.zeros(how.resamples)
    for sign, of in ((1, score), (-1, minus)):
        if of is None:
            continue
        wins = [((of[a][:, None] > of[b]) + 0.5 * (of[a][:, None] == of[b])) for a, b in pairs]
        value += sign * sum(w.sum() for w in wins) / sum(w.size for w in wins)
        draws += sign * _drawn_area(wins, pairs, codes, n, how)
    return _estimate(float(value), draws, len(positive))


def _pairs(positive: np.ndarray, strata: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places of the positive and of the other rows of every stratum that has both."""
    sides = (
        [np.flatnonzero((strata == stratum) & kind) for kind in (positive, ~positive)]
        for stratum in np.unique(strata)
    )
    return [(high, low) for high, low in sides if len(high) and len(low)]


def _drawn_area(
    wins: list[np.ndarray],
    pairs: list[tuple[np.ndarray, np.ndarray]],
    codes: np.ndarray,
    n: int,
    how: Bootstrap,
) -> Float[np.ndarray, " draws"]:
    single = [w.astype(np.float32) for w in wins]
    draws = []
    for w in weights(n, how):
        won, counted = np.zeros(len(w)), np.zeros(len(w))
        for of, rows in zip(single, pairs, strict=True):
            high, low = (w[:, codes[side]] for side in rows)
            won += np.einsum("dn,dn->d", high @ of, low, dtype=np.float64)
            counted += high.sum(axis=1, dtype=np.float64) * low.sum(axis=1, dtype=np.float64)
        draws.append(stats.over(won, counted))
    return np.concatenate(draws)


def spearman(
    clusters: Clusters,
    x: Float[np.ndarray, " rows"],
    y: Float[np.ndarray, " rows"],
    how: Bootstrap,
) -> tuple[Estimate, float]:
    """Spearman's rho with its interval from drawing clusters, and the p-value against rho = 0.

    NaN where one of the two does not vary or there are fewer than three rows. The p-value takes
    rows for independent: NaN where a cluster has several.
    """
    n, codes = _coded(clusters)
    if len(x) < ranks.FEWEST or not np.ptp(x) or not np.ptp(y):
        return Estimate(math.nan, math.nan, math.nan, len(x)), math.nan
    correlation = spearmanr(x, y)
    value, p = float(correlation.statistic), float(correlation.pvalue)  # pyright: ignore
    draws = [_rho(x, y, w.astype(float)[:, codes]) for w in weights(n, how)]
    several = n < len(x)
    return _estimate(value, np.concatenate(draws), len(x)), math.nan if several else p


def _rho(
    x: Float[np.ndarray, " rows"],
    y: Float[np.ndarray, " rows"],
    times: Float[np.ndarray, "draws rows"],
) -> Float[np.ndarray, " draws"]:
    """Spearman's rho with every row taken so many times: Pearson's of the middle ranks."""
    n = times.sum(axis=1, keepdims=True)
    left, right = (middle_ranks(v, times) - (n + 1) / 2 for v in (x, y))
    spread = np.sqrt((times * left**2).sum(axis=1) * (times * right**2).sum(axis=1))
    return stats.over((times * left * right).sum(axis=1), spread)


def middle_ranks(
    values: Float[np.ndarray, " rows"], times: Float[np.ndarray, "draws rows"]
) -> Float[np.ndarray, "draws rows"]:
    """The ranks of values of which each is there so many times; ties share their middle."""
    order = np.argsort(values, kind="stable")
    _, first, codes = np.unique(values[order], return_index=True, return_inverse=True)
    counts = np.add.reduceat(times[:, order], first, axis=1)
    middle_ranks = np.empty_like(times)
    middle_ranks[:, order] = (np.cumsum(counts, axis=1) - (counts - 1) / 2)[:, codes]
    return middle_ranks


def _coded(clusters: Clusters) -> tuple[int, np.ndarray]:
    """How many clusters there are, and (rows,) the number of every row's."""
    names, codes = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    return len(names), codes


def _divided(totals: Float[np.ndarray, "draws twice"]) -> Float[np.ndarray, "draws names"]:
    return stats.over(totals[:, 0::2], totals[:, 1::2])


def _estimate(value: float, draws: np.ndarray, n: int) -> Estimate:
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan, n)
    return Estimate(value, *stats.percentiles(draws), n)
