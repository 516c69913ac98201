"""Agreement of every two of many measures of the same items.

The bootstrap draws whole clusters of rows, once for all pairs; a pair is computed over the rows
that have both measures. Pairs that lack the same rows share their ranks, so that forty measures
cost little more than two.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from faithscope.experiments.analysis.statistics.exchanging import (
    EXCHANGES,
    ROUNDING,
    permutations,
)
from faithscope.experiments.analysis.statistics.resampling import (
    Bootstrap,
    Clusters,
    middle_ranks,
    weights,
)
from faithscope.experiments.analysis.statistics.stats import over, percentiles_of

Matrix = Float[np.ndarray, "measures measures"]
FEWEST = 5
"""Least number of rows for comparing two measures."""
Prepare = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Maps (rows, measures), (draws, rows) and the mask of rows to (draws, rows, measures)."""
Statistic = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Maps two sides as `Prepare` makes them, (draws, rows) and the mask to (draws, left, right)."""


@dataclass(frozen=True)
class Pairs:
    """A statistic with interval for every two measures; NaN where it is undefined."""

    value: Matrix
    low: Matrix
    high: Matrix


def counts(values: Float[np.ndarray, "rows measures"]) -> Int[np.ndarray, "measures measures"]:
    """Number of rows that have both measures, for every two measures."""
    there = (~np.isnan(values)).astype(int)
    return there.T @ there


def spearman(
    values: Float[np.ndarray, "rows measures"], clusters: Clusters, how: Bootstrap
) -> Pairs:
    """Spearman's rho of every two measures, with percentile intervals of a cluster bootstrap."""

    def ranked(block: np.ndarray, times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.stack([middle_ranks(column, times) for column in block.T], axis=-1)

    return _paired(values, clusters, how, ranked, _correlations)


def within(
    values: Float[np.ndarray, "rows measures"],
    strata: np.ndarray,
    clusters: Clusters,
    how: Bootstrap,
) -> tuple[Pairs, Int[np.ndarray, "measures measures"]]:
    """Correlation of every two measures within strata, and the number of strata that enter it.

    The ranks of two measures are taken inside each stratum, over the rows that have both, as shares
    of its rows. A stratum in which either measure does not vary is left out of numerator and
    denominator. The bootstrap weighs these ranks and centres them in each stratum.
    """
    codes = np.unique(strata, return_inverse=True)[1]
    n = values.shape[1]
    used = np.zeros((n, n), dtype=int)
    for rows, one, other in _blocks(values):
        for stratum in np.unique(codes[rows]):
            here = values[rows & (codes == stratum)]
            varies = here.max(axis=0) > here.min(axis=0)
            both = np.logical_and.outer(varies[one], varies[other])
            used[np.ix_(one, other)] += both
            if one != other:
                used[np.ix_(other, one)] += both.T
    return _paired(values, clusters, how, *_within(codes)), used


def within_drawn(
    values: Float[np.ndarray, "rows measures"],
    strata: np.ndarray,
    clusters: Clusters,
    how: Bootstrap,
) -> tuple[Matrix, Float[np.ndarray, "draws measures measures"]]:
    """Correlation of every two measures within strata (`within`), and its value in every draw of
    the bootstrap. Draws of the same clusters with the same seed take the same clusters, so that
    statistics of different measures may be combined draw by draw."""
    n = values.shape[1]
    whole, draws = np.full((n, n), np.nan), np.full((how.resamples, n, n), np.nan)
    codes = np.unique(strata, return_inverse=True)[1]
    for left, right, point, drawn in _draws(values, clusters, how, *_within(codes)):
        whole[np.ix_(left, right)], whole[np.ix_(right, left)] = point, point.T
        every = range(how.resamples)
        draws[np.ix_(every, left, right)] = drawn
        draws[np.ix_(every, right, left)] = drawn.transpose(0, 2, 1)
    return whole, draws


def _within(codes: np.ndarray) -> tuple[Prepare, Statistic]:
    """Ranks inside strata, and their correlation within strata, as `_draws` takes them.

    Args:
        codes: (rows,) number of the stratum of every row.
    """

    def inside(block: np.ndarray, times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.broadcast_to(_ranks_inside(block, codes[rows]), (len(times), *block.shape))

    def correlation(
        a: np.ndarray, b: np.ndarray, times: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        above, left, right = (np.zeros((len(times), a.shape[2], b.shape[2])) for _ in range(3))
        for stratum in np.unique(codes[rows]):
            here = codes[rows] == stratum
            together, of_a, of_b = _spread(a[:, here], b[:, here], times[:, here])
            both = (of_a > ROUNDING) & (of_b > ROUNDING)
            above += np.where(both, together, 0)
            left += np.where(both, of_a, 0)
            right += np.where(both, of_b, 0)
        return over(above, np.sqrt(left * right))

    return inside, correlation


def exchanged(
    values: Float[np.ndarray, "rows measures"], strata: np.ndarray, clusters: Clusters, seed: int
) -> Matrix:
    """Two-sided p-values of `within` by a permutation test, for the null hypothesis that measures
    are independent inside each stratum (counted as scipy's `permutation_test` does).

    `EXCHANGES` times, values of one measure are exchanged between whole clusters that have rows in
    the same strata. This keeps dependence within clusters and differences between strata. The least
    p is 2 / (`EXCHANGES` + 1), and greater if there are so few clusters that exchanges repeat.
    """
    codes = np.unique(strata, return_inverse=True)[1]
    names = np.asarray(clusters, dtype=str)
    p = np.full((values.shape[1],) * 2, np.nan)
    for rows, left, right in _blocks(values):
        a, b = (_ranks_inside(values[rows][:, side], codes[rows]) for side in (left, right))
        a = a - pd.DataFrame(a).groupby(codes[rows]).transform("mean").to_numpy()
        observed, at_most, at_least = a.T @ b, 0, 0
        for places in permutations(names[rows], codes[rows], seed, b.shape[1]):
            drawn = (a.T @ b[places].reshape(len(b), -1)).reshape(len(left), -1, len(right))
            at_most += (drawn <= observed[:, None] + ROUNDING).sum(axis=1)
            at_least += (drawn >= observed[:, None] - ROUNDING).sum(axis=1)
        block = np.minimum(1.0, 2 * (np.minimum(at_most, at_least) + 1) / (EXCHANGES + 1))
        p[np.ix_(left, right)], p[np.ix_(right, left)] = block, block.T
    return p


def _ranks_inside(
    values: Float[np.ndarray, "rows measures"], strata: np.ndarray
) -> Float[np.ndarray, "rows measures"]:
    """Ranks inside each stratum, as shares of its rows."""
    return pd.DataFrame(values).groupby(strata).rank(pct=True).to_numpy()


def chance_corrected(
    verdicts: Float[np.ndarray, "rows measures"], clusters: Clusters, how: Bootstrap
) -> dict[str, Pairs]:
    """Cohen's kappa, Gwet's AC2 and phi of every two columns of 0/1 verdicts (NaN = no verdict).

    With two possible verdicts all weights are equivalent, so AC2 (Gwet, British Journal of
    Mathematical and Statistical Psychology 61, 2008) equals AC1.
    """

    def same(block: np.ndarray, times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.broadcast_to(block, (len(times), *block.shape))

    statistics = {"kappa": kappa, "ac2": ac2, "phi": phi}
    return {
        name: _paired(
            verdicts, clusters, how, same, lambda a, b, w, _, of=of: of(*_crossed(a, b, w))
        )
        for name, of in statistics.items()
    }


def kappa(both: np.ndarray, left: np.ndarray, right: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Cohen's kappa from counts of rows: positive by both raters, by the left one, by the right
    one, and all rows; NaN if chance alone gives full agreement."""
    observed = over(n - left - right + 2 * both, n)
    chance = over(left * right + (n - left) * (n - right), n * n)
    return over(observed - chance, 1 - chance)


def ac2(both: np.ndarray, left: np.ndarray, right: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Gwet's AC2 from the counts that `kappa` takes; unlike kappa it stays high if nearly all
    verdicts are the same."""
    observed = over(n - left - right + 2 * both, n)
    share = over(left + right, 2 * n)
    chance = 2 * share * (1 - share)
    return over(observed - chance, 1 - chance)


def phi(both: np.ndarray, left: np.ndarray, right: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Matthews' correlation from the counts that `kappa` takes; NaN if one rater is constant."""
    spread = np.sqrt(np.maximum(left * (n - left) * right * (n - right), 0))
    return over(n * both - left * right, spread)


def _crossed(a: np.ndarray, b: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, ...]:
    weighted = a * times[..., None]
    both = np.swapaxes(weighted, 1, 2) @ b
    left, n = weighted.sum(axis=1)[:, :, None], times.sum(axis=1)[:, None, None]
    right = (b * times[..., None]).sum(axis=1)[:, None, :]
    zero = np.zeros_like(both)
    return both, left + zero, right + zero, n + zero


def _correlations(a: np.ndarray, b: np.ndarray, times: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Pearson correlations per draw, of (draws, rows, left) with (draws, rows, right)."""
    together, of_a, of_b = _spread(a, b, times)
    spread = np.sqrt(of_a * of_b)
    return over(together, np.where(spread > ROUNDING, spread, 0))


def _spread(a: np.ndarray, b: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, ...]:
    """Covariances and both variances, as sums over rows of products of deviations, per draw."""
    n = times.sum(axis=1)[:, None, None]
    w = times[..., None]
    a, b = (x - over((x * w).sum(axis=1, keepdims=True), n) for x in (a, b))
    together = np.swapaxes(a * w, 1, 2) @ b
    zero = np.zeros_like(together)
    return (
        together,
        (a * a * w).sum(axis=1)[:, :, None] + zero,
        (b * b * w).sum(axis=1)[:, None] + zero,
    )


def _paired(
    values: np.ndarray,
    clusters: Clusters,
    how: Bootstrap,
    prepare: Prepare,
    statistic: Statistic,
) -> Pairs:
    n = values.shape[1]
    units = len(set(np.asarray(clusters, dtype=str).tolist()))
    found = {name: np.full((n, n), np.nan) for name in ("value", "low", "high")}
    for left, right, point, drawn in _draws(values, clusters, how, prepare, statistic):
        ends = percentiles_of(drawn.reshape(len(drawn), -1), units)
        for name, of in zip(found, (point, *ends), strict=True):
            block = np.where(np.isnan(point), np.nan, of.reshape(point.shape))
            found[name][np.ix_(left, right)] = block
            found[name][np.ix_(right, left)] = block.T
    return Pairs(**found)


def _draws(
    values: np.ndarray,
    clusters: Clusters,
    how: Bootstrap,
    prepare: Prepare,
    statistic: Statistic,
) -> Iterator[tuple[list[int], list[int], np.ndarray, np.ndarray]]:
    """Yields (left, right, statistic of their pairs, the same in every draw) for blocks of
    measures."""
    names, codes = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    for rows, left, right in _blocks(values):
        a, b = values[rows][:, left], values[rows][:, right]
        once = np.ones((1, int(rows.sum())))
        point = statistic(prepare(a, once, rows), prepare(b, once, rows), once, rows)[0]
        drawn = [
            statistic(prepare(a, times, rows), prepare(b, times, rows), times, rows)
            for some in weights(len(names), how)
            for times in np.array_split(some.astype(float)[:, codes[rows]], 4)
            if len(times)
        ]
        yield left, right, point, np.concatenate(drawn)


def _blocks(values: np.ndarray) -> Iterator[tuple[np.ndarray, list[int], list[int]]]:
    """Yields (rows, left, right): two sets of measures of which every pair has exactly these
    rows."""
    patterns: dict[bytes, list[int]] = {}
    there = ~np.isnan(values)
    for j in range(values.shape[1]):
        patterns.setdefault(there[:, j].tobytes(), []).append(j)
    groups = list(patterns.values())
    for one, other in itertools.combinations_with_replacement(groups, 2):
        rows = there[:, one[0]] & there[:, other[0]]
        if rows.sum() >= FEWEST:
            yield rows, one, other
