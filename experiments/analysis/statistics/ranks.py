"""Rank correlation of two measures of the same items, with bootstrap intervals over items."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import scipy
from jaxtyping import Float, Int

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import Estimate

Values = Float[np.ndarray, " items"]
FEWEST = 3
"""Least number of items for a correlation."""


def spearman(x: Values, y: Values, *, seed: int = 0, resamples: int = stats.RESAMPLES) -> Estimate:
    """Spearman's rho with the percentile interval of a bootstrap over items.

    NaN for fewer than `FEWEST` items, or if either measure does not vary.
    """
    if not _can(x, y):
        return Estimate(math.nan, math.nan, math.nan, len(x))
    drawn = _draws(len(x), seed, resamples)
    (rho,) = _pearson(scipy.stats.rankdata(x)[None], scipy.stats.rankdata(y)[None])
    of_draws = _pearson(
        scipy.stats.rankdata(x[drawn], axis=1), scipy.stats.rankdata(y[drawn], axis=1)
    )
    return Estimate(float(rho), *stats.percentiles(of_draws, len(x)), len(x))


def kendall(
    x: Values,
    y: Values,
    *,
    units: Sequence[Hashable] | None = None,
    seed: int = 0,
    resamples: int = stats.RESAMPLES,
) -> Estimate:
    """Kendall's tau-b with the percentile interval of a bootstrap over items, or over units of
    items.

    NaN for fewer than `FEWEST` items, or if either measure does not vary. A draw is a weight for
    each item: with the signs of all differences as matrices, tau of all draws is three matrix
    products.
    """
    n = len(x)
    if not _can(x, y):
        return Estimate(math.nan, math.nan, math.nan, n)
    codes = np.arange(n) if units is None else stats.codes_of(units)
    n_units = int(codes.max()) + 1
    drawn = _draws(n_units, seed, resamples)
    times = np.stack([np.bincount(draw, minlength=n_units) for draw in drawn])
    weights = times[:, codes].astype(np.float32)
    weights = np.concatenate([np.ones((1, n), np.float32), weights])
    left, right = (np.sign(v[:, None] - v[None]).astype(np.float32) for v in (x, y))
    agree, not_tied, nor_tied = (
        np.einsum("dn,dn->d", weights @ signs, weights, dtype=np.float64)
        for signs in (left * right, abs(left), abs(right))
    )
    tau = stats.over(agree, np.sqrt(not_tied * nor_tied))
    return Estimate(float(tau[0]), *stats.percentiles(tau[1:], n_units), n)


def rho(x: Values, y: Values) -> float:
    """Spearman's rho of at least two items, without interval; NaN if either measure is constant."""
    (correlation,) = _pearson(scipy.stats.rankdata(x)[None], scipy.stats.rankdata(y)[None])
    return float(correlation)


def _can(x: Values, y: Values) -> bool:
    return len(x) >= FEWEST and bool(np.ptp(x)) and bool(np.ptp(y))


def _draws(n: int, seed: int, resamples: int) -> Int[np.ndarray, "draws items"]:
    return np.random.default_rng(seed).integers(n, size=(resamples, n))


def _pearson(
    x: Float[np.ndarray, "draws items"], y: Float[np.ndarray, "draws items"]
) -> Float[np.ndarray, " draws"]:
    """Pearson correlation of each row of `x` with that of `y`; NaN if either row is constant."""
    x, y = (v - v.mean(axis=1, keepdims=True) for v in (x, y))
    return stats.over((x * y).sum(axis=1), np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1)))
