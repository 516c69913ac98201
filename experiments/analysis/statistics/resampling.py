"""Cluster bootstrap: intervals from drawing whole clusters of rows that are not independent.

A chain's perturbed and control items are one cluster, and so are an item's answers under several
models. C2-Faith (App. A) draws examples instead: the two agree if a cluster has one row per
condition; for a difference between conditions, drawing clusters keeps the rows of a cluster
paired.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd
import scipy
from jaxtyping import Float, Int

from faithscope.experiments.analysis.statistics import ranks, stats
from faithscope.experiments.analysis.statistics.stats import NOTHING, Estimate

Clusters = Sequence[str] | np.ndarray
"""(rows,) the cluster of every row, such as its chain or item."""
_AT_ONCE = 200
_MOST_NUMBERS = 10_000_000
"""Most draws, and most draws times clusters, that a matrix product takes at once."""


@dataclass(frozen=True)
class Bootstrap:
    """Seed and number of resamples of every bootstrap interval, and the units that are drawn."""

    seed: int = 0
    resamples: int = stats.RESAMPLES
    """Number of bootstrap resamples."""
    of_items: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict, kw_only=True, compare=False
    )
    """Data set -> item -> group of items that are not independent; other items are groups of their
    own."""

    def units(self, frame: pd.DataFrame, items: str = "item") -> np.ndarray:
        """The unit of each row that is drawn as a whole: the group of its item.

        Args:
            items: column of the items' ids, or of other clusters, which stay as they are; in a
                frame without it every row is a unit.
        """
        if items not in frame:
            return np.arange(len(frame))
        names = frame[items].to_numpy()
        if not self.of_items:
            return names
        if "dataset" in frame:
            pairs = zip(frame["dataset"], names, strict=True)
            return np.array([self.of_items.get(d, {}).get(str(n), str(n)) for d, n in pairs], str)
        return np.array([self._of_any.get(str(name), str(name)) for name in names], dtype=str)

    @cached_property
    def _of_any(self) -> dict[str, str]:
        """Item -> its group, for ids that one data set alone has."""
        n = Counter(item for of in self.of_items.values() for item in of)
        return {i: g for of in self.of_items.values() for i, g in of.items() if n[i] == 1}


def weights(
    clusters: int, how: Bootstrap, *, one_by_one: bool = False
) -> Iterator[Float[np.ndarray, "draws clusters"]]:
    """Yields blocks of draws: how often each draw takes each cluster.

    Args:
        one_by_one: draws by the random numbers of `stats.bootstrapped`, which takes a list of
            items; the distribution is the same.
    """
    at_once = _at_once(clusters)
    drawn = _drawn(clusters, Bootstrap(how.seed, how.resamples), one_by_one)
    for first in range(0, how.resamples, at_once):
        block = drawn[first : first + at_once].astype(np.float32)
        # too few clusters give no interval
        yield block if clusters >= stats.FEWEST else np.full_like(block, np.nan)


def _at_once(clusters: int) -> int:
    return max(1, min(_AT_ONCE, _MOST_NUMBERS // max(1, clusters)))


@lru_cache(maxsize=2)
def _drawn(clusters: int, how: Bootstrap, one_by_one: bool) -> Int[np.ndarray, "draws clusters"]:
    """How often each draw takes each cluster; cached, since many numbers are of equally many.

    Counts are bytes: of 256 clusters or more, one is drawn 256 times with probability 1e-507.
    """
    rng = np.random.default_rng(how.seed)
    drawn = np.empty((how.resamples, clusters), dtype=np.uint8)
    shares, at_once = np.full(clusters, 1 / clusters), _at_once(clusters)
    for block in (drawn[i : i + at_once] for i in range(0, how.resamples, at_once)):
        block[:] = (
            [np.bincount(rng.integers(clusters, size=clusters), minlength=clusters) for _ in block]
            if one_by_one
            else rng.multinomial(clusters, shares, size=len(block))
        )
    drawn.flags.writeable = False
    return drawn


def ratios(
    clusters: Clusters,
    of: Mapping[str, tuple[np.ndarray, np.ndarray]],
    *,
    minus: Mapping[str, tuple[str, str]] | None = None,
    how: Bootstrap,
) -> dict[str, Estimate]:
    """Ratios of sums over rows, with percentile intervals of a cluster bootstrap.

    Shares have Wilson intervals (`stats.clustered_shares`), and their differences Newcombe's.

    Args:
        of: name -> (rows,) summands of the numerator and of the denominator. It is a share if both
            are yes or no (`stats.yes_or_no`) and no numerator exceeds its denominator.
        minus: name of a difference -> names of two ratios, subtracted within the same draws.

    Returns:
        The estimates; `n` is the denominator, the smaller of two for a difference. NaN if it is
        zero.
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
    below, there = sums.sum(axis=0)[1::2], (sums[:, 1::2] > 0).sum(axis=0)
    place = {name: i for i, name in enumerate(names)}
    estimates = {
        name: _estimate(float(values[i]), draws[:, i], int(below[i]), int(there[i]))
        for name, i in place.items()
    }
    shares = {name for name, pair in of.items() if _is_share(*pair)}
    for name in shares:
        estimates[name] = _share(*of[name], codes)
    for name, (first, second) in minus.items():
        i, j = place[first], place[second]
        at, of_less = float(values[i] - values[j]), int(min(below[i], below[j]))
        drawn = draws[:, i] - draws[:, j]
        estimates[name] = _estimate(at, drawn, of_less, int(min(there[i], there[j])))
        if {first, second} <= shares:
            of_both = (estimates[first], estimates[second])
            estimates[name] = stats.difference(
                *of_both, at, _correlation(sums[:, 2 * i : 2 * i + 2], sums[:, 2 * j : 2 * j + 2])
            )
    return estimates


def _is_share(above: np.ndarray, below: np.ndarray) -> bool:
    above, below = np.asarray(above), np.asarray(below)
    whole = all(x.dtype == bool or set(np.unique(x).tolist()) <= {0, 1} for x in (above, below))
    return whole and stats.yes_or_no(above) and bool((above <= below).all())


def _share(above: np.ndarray, below: np.ndarray, codes: np.ndarray) -> Estimate:
    rows = np.asarray(below, dtype=bool)
    return stats.clustered_share(np.asarray(above, dtype=float)[rows], codes[rows])


def _correlation(
    first: Float[np.ndarray, "clusters two"], second: Float[np.ndarray, "clusters two"]
) -> float:
    """Correlation of two ratios of sums over the same clusters (linearised); 0 where a ratio does
    not vary between clusters."""
    one, other = (
        above - below * over_all
        for (above, below), over_all in (
            (x.T, stats.over(*x.sum(axis=0)[:, None])) for x in (first, second)
        )
    )
    spread = math.sqrt(float((one @ one) * (other @ other)))
    return float(one @ other) / spread if spread > stats.ROUNDING else 0.0


def means(
    clusters: Clusters,
    of: Mapping[str, np.ndarray],
    *,
    minus: Mapping[str, tuple[str, str]] | None = None,
    how: Bootstrap,
) -> dict[str, Estimate]:
    """Means of values over rows, as `ratios`; NaN is a missing value."""
    there = {name: ~np.isnan(np.asarray(x, dtype=float)) for name, x in of.items()}
    summed = {
        name: (x if there[name].all() else np.where(there[name], x, 0), there[name])
        for name, x in of.items()
    }
    return ratios(clusters, summed, minus=minus, how=how)


def paired_difference(frame: pd.DataFrame, first: str, second: str, how: Bootstrap) -> Estimate:
    """The share of rows in which one column is 1 minus that of another, as of
    `stats.paired_difference`, where items of a group are not independent."""
    of = {name: (frame[name] == 1).to_numpy(dtype=bool) for name in (first, second)}
    units = how.units(frame)
    if stats.of_units(units) is None:
        return stats.paired_difference(*(x.tolist() for x in of.values()))
    return means(units, of, minus={"": (first, second)}, how=how)[""]


def means_of_groups(
    values: Float[np.ndarray, " rows"],
    clusters: Clusters | None,
    codes: np.ndarray,
    groups: int,
    how: Bootstrap,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`means` of every group of rows: value, ends of the interval, and number of known values, each
    (groups,). Where values are yes or no, the intervals are Wilson's, as of `ratios`.

    Groups of equally many clusters share their draws, so that one matrix product serves them all.

    Args:
        values: NaN is a missing value.
        clusters: None draws every row of known value by itself, as `stats.bootstrapped` does.
        codes: (rows,) number of each row's group, from 0.
    """
    known = ~np.isnan(values)
    if clusters is None or stats.yes_or_no(values[known]):
        clusters = None if clusters is None else np.asarray(clusters)[known]
        values, codes, known = values[known], codes[known], known[known]
    names, of_names = (
        (len(values), np.arange(len(values))) if clusters is None else _coded(clusters)
    )
    if stats.yes_or_no(values):
        once = np.ones(len(values))
        ends = stats.clustered_shares(values.astype(float), once, of_names, codes, groups)
        return *ends, np.bincount(codes, minlength=groups)
    pairs, of_rows = np.unique(codes * max(names, 1) + of_names, return_inverse=True)
    sums = np.stack(
        [
            np.bincount(of_rows, weights=x, minlength=len(pairs))
            for x in (np.where(known, values, 0), known)
        ],
        axis=1,
    )
    sizes = np.bincount(pairs // max(names, 1), minlength=groups)
    starts = np.cumsum(sizes) - sizes
    value, low, high = (np.full(groups, np.nan) for _ in range(3))
    n = np.zeros(groups, dtype=int)
    for size in np.unique(sizes[sizes > 0]).tolist():
        same = np.flatnonzero(sizes == size)
        for block in np.split(same, range(_AT_ONCE, len(same), _AT_ONCE)):
            of_block = sums[starts[block] + np.arange(size)[:, None]].reshape(size, -1)
            whole = of_block.sum(axis=0)
            value[block], n[block] = _divided(whole[None])[0], whole[1::2]
            if clusters is None:
                value[block] = of_block[:, ::2].T.copy().mean(axis=1)
            drawn = weights(size, how, one_by_one=clusters is None)
            totals = np.concatenate([w.astype(float) @ of_block for w in drawn])
            low[block], high[block] = stats.percentiles_of(_divided(totals), size)
    unknown = np.isnan(value)
    low[unknown] = high[unknown] = np.nan
    return value, low, high, n


def spearman(
    clusters: Clusters,
    x: Float[np.ndarray, " rows"],
    y: Float[np.ndarray, " rows"],
    how: Bootstrap,
) -> tuple[Estimate, float]:
    """Spearman's rho with the interval of a cluster bootstrap, and the p-value against rho = 0.

    NaN if either variable does not vary or there are fewer than three rows. The p-value assumes
    independent rows: NaN if a cluster has several.
    """
    n, codes = _coded(clusters)
    if len(x) < ranks.FEWEST or not np.ptp(x) or not np.ptp(y):
        return Estimate(math.nan, math.nan, math.nan, len(x)), math.nan
    correlation = scipy.stats.spearmanr(x, y)
    value, p = float(correlation.statistic), float(correlation.pvalue)  # pyright: ignore
    draws = [_rho(x, y, w.astype(float)[:, codes]) for w in weights(n, how)]
    several = n < len(x)
    return _estimate(value, np.concatenate(draws), len(x), n), math.nan if several else p


def _rho(
    x: Float[np.ndarray, " rows"],
    y: Float[np.ndarray, " rows"],
    times: Float[np.ndarray, "draws rows"],
) -> Float[np.ndarray, " draws"]:
    """Spearman's rho per draw, with rows repeated `times`: Pearson correlation of middle ranks."""
    n = times.sum(axis=1, keepdims=True)
    left, right = (middle_ranks(v, times) - (n + 1) / 2 for v in (x, y))
    spread = np.sqrt((times * left**2).sum(axis=1) * (times * right**2).sum(axis=1))
    return stats.over((times * left * right).sum(axis=1), spread)


def middle_ranks(
    values: Float[np.ndarray, " rows"], times: Float[np.ndarray, "draws rows"]
) -> Float[np.ndarray, "draws rows"]:
    """Ranks per draw of values repeated `times`; ties share their middle rank."""
    order = np.argsort(values, kind="stable")
    _, first, codes = np.unique(values[order], return_index=True, return_inverse=True)
    counts = np.add.reduceat(times[:, order], first, axis=1)
    middle_ranks = np.empty_like(times)
    middle_ranks[:, order] = (np.cumsum(counts, axis=1) - (counts - 1) / 2)[:, codes]
    return middle_ranks


def _coded(clusters: Clusters) -> tuple[int, np.ndarray]:
    """Number of clusters, and (rows,) the index of each row's cluster."""
    names, codes = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    return len(names), codes


def _divided(totals: Float[np.ndarray, "draws twice"]) -> Float[np.ndarray, "draws names"]:
    return stats.over(totals[:, 0::2], totals[:, 1::2])


def _estimate(value: float, draws: np.ndarray, n: int, clusters: int) -> Estimate:
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan, n)
    return Estimate(value, *stats.percentiles(draws, clusters), n)
