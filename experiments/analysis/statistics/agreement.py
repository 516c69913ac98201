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
import scipy
from jaxtyping import Bool, Float, Int

from faithscope.experiments.analysis.statistics.exchanging import (
    EXCHANGES,
    ROUNDING,
    exchangeable,
    permutations,
)
from faithscope.experiments.analysis.statistics.resampling import (
    Bootstrap,
    Clusters,
    middle_ranks,
    weights,
)
from faithscope.experiments.analysis.statistics.stats import CONFIDENCE, over, percentiles_of

Matrix = Float[np.ndarray, "measures measures"]
FEWEST = 5
"""Least number of rows for comparing two measures."""
EXCHANGEABLE = 0.8
"""Least share of rows that can be exchanged, for an interval: the others would count as certain."""
KEPT = 16_000_000
"""Largest number of exchanged correlations that are held at once."""
FARTHEST, HALVINGS = 9.0, 60
"""Farthest Fisher's z of an interval's end, and steps by which an end is found."""
DRIFTS = 2.0
"""Number of standard errors beyond which scores are said to change along the order of items."""
DECIMALS = 9
"""Number of decimals in which ranks are compared."""
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


@dataclass(frozen=True)
class Within(Pairs):
    """Correlations within strata; the interval leaves out 0 where p is at most 1 - `CONFIDENCE`,
    and nowhere else."""

    p: Matrix
    strata: Int[np.ndarray, "measures measures"]
    """Number of strata in which both measures vary."""


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
    values: Float[np.ndarray, "rows measures"], strata: np.ndarray, clusters: Clusters, seed: int
) -> Within:
    """Correlation of every two measures within strata, with a test and an interval that do not
    disagree.

    The ranks of two measures are taken inside each stratum, over the rows that have both, as shares
    of its rows. A stratum in which either measure does not vary is left out of numerator and
    denominator.

    `EXCHANGES` times, values of one measure are exchanged between whole clusters that have rows in
    the same strata. This keeps dependence within clusters and differences between strata. p-values
    are two-sided, for the null hypothesis that measures are independent inside each stratum, and
    counted as scipy's `permutation_test` does. The least p is 2 / (`EXCHANGES` + 1), and greater if
    there are so few clusters that exchanges repeat.

    The interval holds the correlations that the same exchanges would not reject at 1 -
    `CONFIDENCE`, as distances in Fisher's z whose spread grows with the correlation in question as
    Bonett and Wright (Psychometrika 65, 2000) say of ranks. Where Student's interval of z from the
    influence of every cluster is wider (as for scores of few values), its ends are taken, but not
    across 0: the interval leaves out 0 where p is at most .05, and nowhere else. There is no
    interval where ranks are the same or reversed, where fewer than `FEWEST` rows differ from the
    commonest score of their stratum, or where less than `EXCHANGEABLE` of the rows can be
    exchanged.
    """
    codes = np.unique(strata, return_inverse=True)[1]
    names = np.asarray(clusters, dtype=str)
    n = values.shape[1]
    found = {name: np.full((n, n), np.nan) for name in ("value", "low", "high", "p", "strata")}
    for rows, left, right in _blocks(values):
        a, b = (_Ranked.of(values[rows][:, side], codes[rows]) for side in (left, right))
        width = max(1, KEPT // (EXCHANGES * len(left)))
        parts = [
            _tested(a, b.some(slice(at, at + width)), names[rows], seed)
            for at in range(0, len(right), width)
        ]
        for name, of in zip(found, np.concatenate(parts, axis=2), strict=True):
            found[name][np.ix_(left, right)], found[name][np.ix_(right, left)] = of, of.T
    used = np.nan_to_num(found.pop("strata")).astype(int)
    return Within(**found, strata=used)


@dataclass(frozen=True)
class _Ranked:
    """Some measures, ranked inside strata."""

    ranks: Float[np.ndarray, "rows measures"]
    """Ranks as shares of the rows of a stratum, minus their mean there."""
    strata: Int[np.ndarray, " rows"]
    spread: Float[np.ndarray, "strata measures"]
    """Sum of the squares of ranks."""

    @classmethod
    def of(cls, values: Float[np.ndarray, "rows measures"], strata: np.ndarray) -> _Ranked:
        ranks, codes = centred_ranks(values, strata), np.unique(strata, return_inverse=True)[1]
        member = codes == np.arange(codes.max(initial=0) + 1)[:, None]
        return cls(ranks, codes, member.astype(float) @ ranks**2)

    @property
    def varies(self) -> Float[np.ndarray, "strata measures"]:
        """1 where a measure varies in a stratum, else 0."""
        return (self.spread > ROUNDING).astype(float)

    @property
    def differing(self) -> Int[np.ndarray, " measures"]:
        """Number of rows whose rank is not the commonest of their stratum."""
        strata = [self.ranks[self.strata == i].round(DECIMALS) for i in range(len(self.spread))]
        most = [[np.unique(x, return_counts=True)[1].max() for x in of.T] for of in strata]
        return len(self.ranks) - np.sum(most, axis=0)

    def some(self, measures: slice) -> _Ranked:
        return _Ranked(self.ranks[:, measures], self.strata, self.spread[:, measures])


def _tested(
    a: _Ranked, b: _Ranked, clusters: np.ndarray, seed: int
) -> Float[np.ndarray, "5 left right"]:
    """Correlations of two sides' measures, ends of their intervals, p-values, and the numbers of
    strata in which both vary."""
    spread = a.spread.T @ b.varies, a.varies.T @ b.spread
    scale, shape = np.sqrt(spread[0] * spread[1]), (a.ranks.shape[1], -1, b.ranks.shape[1])
    drawn, at = np.empty((EXCHANGES, *scale.shape)), 0
    for places in permutations(clusters, a.strata, seed, scale.shape[1]):
        of = (a.ranks.T @ b.ranks[places].reshape(len(places), -1)).reshape(shape)
        drawn[at : at + of.shape[1]] = np.moveaxis(of, 1, 0)
        at += of.shape[1]
    observed, known = a.ranks.T @ b.ranks, scale > ROUNDING
    at_most = (drawn <= observed + ROUNDING).sum(axis=0)
    at_least = (drawn >= observed - ROUNDING).sum(axis=0)
    p = np.minimum(1.0, 2 * (np.minimum(at_most, at_least) + 1) / (EXCHANGES + 1))
    tail = int((1 - CONFIDENCE) / 2 * (EXCHANGES + 1))
    drawn.partition((tail - 1, EXCHANGES - tail), axis=0)
    quantiles = drawn[tail - 1] - ROUNDING, drawn[EXCHANGES - tail] + ROUNDING
    rho = over(observed, scale)
    ends = _not_rejected(rho, *(over(quantile, scale) for quantile in quantiles))
    ends = _widened(ends, rho, _influence(a, b, rho, spread, clusters))
    few = np.minimum.outer(a.differing, b.differing) < FEWEST
    if exchangeable(clusters, a.strata) < EXCHANGEABLE:
        few[:] = True
    ends = np.where(few | (np.abs(rho) > 1 - ROUNDING), np.nan, ends)
    return np.where(known, np.stack([rho, *ends, p, a.varies.T @ b.varies]), np.nan)


def _not_rejected(rho: np.ndarray, at_most: np.ndarray, at_least: np.ndarray) -> np.ndarray:
    """Ends of the interval of correlations, from both quantiles of those of exchanged rows."""
    ends = []
    for quantile, sign in ((at_least, 1), (-at_most, -1)):
        with np.errstate(divide="ignore", invalid="ignore"):
            z, far = np.arctanh(sign * rho), np.arctanh(np.clip(quantile, -1, 1))
            # the end is below the estimate: halve the span that holds it
            low, high = np.full(rho.shape, -FARTHEST), np.minimum(z, FARTHEST)
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                inside = z - middle <= np.sqrt(1 + np.tanh(middle) ** 2 / 2) * far
                low, high = np.where(inside, low, middle), np.where(inside, middle, high)
        ends.append(sign * np.tanh(high))
    return np.stack(ends)


def _influence(
    a: _Ranked,
    b: _Ranked,
    rho: np.ndarray,
    spread: tuple[np.ndarray, np.ndarray],
    clusters: np.ndarray,
) -> Float[np.ndarray, "clusters left right"]:
    """By how much each cluster moves a correlation; the sum of squares is its variance."""
    codes = np.unique(clusters, return_inverse=True)[1]
    left, right = a.ranks[:, :, None], b.ranks[:, None, :]
    both = (np.where(x > 0, x, np.nan) for x in spread)
    of_a, of_b = (1 / x for x in both)
    moved = left * right * np.sqrt(of_a * of_b)
    moved -= rho / 2 * left**2 * b.varies[b.strata][:, None, :] * of_a
    moved -= rho / 2 * right**2 * a.varies[a.strata][:, :, None] * of_b
    order = np.argsort(codes, kind="stable")
    first = np.searchsorted(codes[order], np.arange(codes.max() + 1))
    return np.add.reduceat(moved[order], first)


def _widened(ends: np.ndarray, rho: np.ndarray, influence: np.ndarray) -> np.ndarray:
    """Ends of intervals, taken out to those of Student's interval of Fisher's z where these are
    wider, but not across 0."""
    n = len(influence)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt((influence**2).sum(axis=0) * n / (n - 1)) / (1 - rho**2)
        far = scipy.stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * error
        low, high = np.tanh(np.arctanh(rho) - far), np.tanh(np.arctanh(rho) + far)
    low = np.where((ends[0] > 0) & (low <= 0), ends[0], np.fmin(ends[0], low))
    high = np.where((ends[1] < 0) & (high >= 0), ends[1], np.fmax(ends[1], high))
    return np.stack([low, high])


def centred_ranks(
    values: Float[np.ndarray, "rows measures"], strata: np.ndarray
) -> Float[np.ndarray, "rows measures"]:
    """Ranks inside each stratum as shares of its rows, minus their mean there."""
    ranks = pd.DataFrame(values).groupby(strata).rank(pct=True)
    return (ranks - ranks.groupby(strata).transform("mean")).to_numpy()


def drifting(
    values: Float[np.ndarray, "rows measures"], strata: np.ndarray, clusters: Clusters
) -> Bool[np.ndarray, " measures"]:
    """Whether each measure changes along the order of the rows inside strata: its rank correlation
    with the place of a cluster, which is that of its first row, is beyond two standard errors of as
    many independent rows as there are clusters."""
    codes = pd.factorize(np.asarray(clusters, dtype=str))[0]
    place = centred_ranks(codes[:, None].astype(float), strata)
    ranks = centred_ranks(values, strata)
    known = ~np.isnan(ranks)
    of_place = np.where(known, place, 0)
    spread = np.sqrt(np.nansum(ranks**2, axis=0) * (of_place**2).sum(axis=0))
    rho = over((np.nan_to_num(ranks) * of_place).sum(axis=0), spread)
    units = np.array([len(np.unique(codes[rows])) for rows in known.T])
    return np.abs(rho) * np.sqrt(np.maximum(units - 1, 0)) > DRIFTS


def same_ranks(values: Float[np.ndarray, "rows measures"], strata: np.ndarray) -> list[bytes]:
    """A key per measure, equal for measures that have scores of the same rows and rank them alike
    inside each stratum: any test of ranks within strata is the same of them."""
    ranks = centred_ranks(values, strata).round(DECIMALS) + 0.0
    return [column.tobytes() for column in ranks.T.copy()]


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
