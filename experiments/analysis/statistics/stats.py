"""Basic statistics of tables: estimates with intervals, differences, the bootstrap, agreement.

Steps of one item are not independent of each other. Wilson intervals over pooled steps, as in the
SLRC paper, ignore this; the bootstrap for SLRC draws whole items.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num
from scipy.stats import norm

CONFIDENCE = 0.95
RESAMPLES = 1000
FEWEST = 5
"""Least number of outcomes, or of items drawn, for an interval: with fewer it says more about the
method than about the model."""


@dataclass(frozen=True)
class Estimate:
    """A fraction in [0, 1] with its interval; all three are NaN without outcomes."""

    value: float
    low: float
    high: float
    n: int
    """Number of outcomes counted."""


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


def wilson(successes: int, n: int, confidence: float = CONFIDENCE) -> Estimate:
    """The share `successes / n` with its Wilson score interval (SLRC paper, §4.9).

    Raises `ValueError` if there are more successes than trials.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} trials: give 0 <= successes <= trials")
    return wilson_of_items(successes / n if n else math.nan, n, confidence)


def wilson_of_items(value: float, items: int, confidence: float = CONFIDENCE) -> Estimate:
    """A pooled share with the Wilson interval it would have if every item counted once.

    This is the widest interval that dependence of steps within an item can cause, with all steps of
    an item equal. computed_table in closed form, since `value * items` need not be an integer.
    """
    if items == 0 or math.isnan(value):
        return NOTHING
    low, high = wilson_bounds(np.array(value), np.array(items), confidence)
    return Estimate(value, float(low), float(high), items)


def wilson_bounds(
    value: Float[np.ndarray, " n"], items: Num[np.ndarray, " n"], confidence: float = CONFIDENCE
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Ends of the Wilson score intervals of shares of so many items each; NaN where a share is."""
    z = float(norm.ppf(0.5 + confidence / 2))
    items = np.where(items > 0, items, np.nan)
    spread = 1 + z * z / items
    centre = (value + z * z / (2 * items)) / spread
    half = z / spread * np.sqrt(value * (1 - value) / items + z * z / (4 * items * items))
    # at 0 and 1 one bound is the share itself, whatever rounding leaves
    low = np.where(value > 0, np.maximum(0.0, centre - half), 0.0 * value)
    high = np.where(value < 1, np.minimum(1.0, centre + half), value)
    return low, high


def weighted_share(
    outcomes: Sequence[bool] | Num[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> Estimate:
    """The share of true outcomes, each counted by its weight, with the Wilson interval of its
    effective sample size (Kish, 1965): the number of outcomes of one weight that would have the
    same variance."""
    if not len(weights):
        return NOTHING
    value = float(np.average(np.asarray(outcomes, dtype=float), weights=weights))
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    estimate = wilson_of_items(value, effective)  # pyright: ignore
    return Estimate(estimate.value, estimate.low, estimate.high, len(weights))


def share(outcomes: Sequence[bool]) -> Estimate:
    """The share of true outcomes in a list, with its Wilson interval."""
    return wilson(sum(outcomes), len(outcomes))


def difference(first: Estimate, second: Estimate, value: float | None = None) -> Estimate:
    """One share minus another, with Newcombe's interval from the intervals of the two.

    Statistics in Medicine 17, 1998, 873-890, method 10. For shares of the same trials it is
    cautious, since it ignores their correlation.

    Args:
        value: the difference, if known more exactly than from the two shares.
    """
    if math.isnan(first.value) or math.isnan(second.value):
        return NOTHING
    at = first.value - second.value if value is None else value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(at, max(-1.0, at - below), min(1.0, at + above), min(first.n, second.n))


def paired_difference(
    first: Sequence[bool], second: Sequence[bool], confidence: float = CONFIDENCE
) -> Estimate:
    """The share of `first` minus that of `second`, on the same items, in [-1, 1].

    The interval is Newcombe's score interval for paired proportions (Statistics in Medicine 17,
    1998, 2635-2650, method 10), which combines the two Wilson intervals with the correlation of the
    outcomes. It does not shrink to a point if all items agree.
    """
    pairs = list(zip(first, second, strict=True))
    n = len(pairs)
    if n == 0:
        return NOTHING
    both, neither = sum(a and b for a, b in pairs), sum(not a and not b for a, b in pairs)
    only_first, only_second = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    one, other = (
        wilson(both + only_first, n, confidence),
        wilson(both + only_second, n, confidence),
    )
    product = both * neither - only_first * only_second
    if product > 0:
        product = max(product - n / 2, 0)
    marginals = (both + only_first) * (only_second + neither)
    marginals *= (both + only_second) * (only_first + neither)
    phi = product / math.sqrt(marginals) if marginals else 0.0

    def spread(left: float, right: float) -> float:
        return math.sqrt(left * left - 2 * phi * left * right + right * right)

    value = (only_first - only_second) / n
    below = spread(one.value - one.low, other.high - other.value)
    above = spread(one.high - one.value, other.value - other.low)
    return Estimate(value, max(-1.0, value - below), min(1.0, value + above), n)


def resampled_totals(
    counts: Num[np.ndarray, "items columns"], rng: np.random.Generator, resamples: int
) -> Num[np.ndarray, "draws columns"]:
    """Column sums over items drawn with replacement, `resamples` times; one draw in memory.

    NaN for fewer than `FEWEST` items, which give no interval.
    """
    n = len(counts)
    if n < FEWEST:
        return np.full((resamples, counts.shape[1]), np.nan)
    whole = np.issubdtype(counts.dtype, np.integer)
    totals = np.empty((resamples, counts.shape[1]), dtype=np.int64 if whole else float)
    # products of whole floats are exact, and many times faster than those of integers
    columns = np.asfortranarray(counts, dtype=float)
    for row in range(resamples):
        totals[row] = np.bincount(rng.integers(n, size=n), minlength=n).astype(float) @ columns
    return totals


def over(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Quotients of two arrays; NaN where the denominator is zero."""
    ratios = np.full(above.shape, np.nan)
    np.divide(above, below, out=ratios, where=below > 0)
    return ratios


def percentiles(draws: np.ndarray, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The bounds between which a share `confidence` of the draws lies; NaN draws are left out."""
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return math.nan, math.nan
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    return float(low), float(high)


def percentiles_of(
    draws: Float[np.ndarray, "draws n"], confidence: float = CONFIDENCE
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """`percentiles` of every column of draws."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    for column in np.flatnonzero(np.isnan(draws).any(axis=0)):
        low[column], high[column] = percentiles(draws[:, column], confidence)
    return low, high


def bootstrapped(
    values: Float[np.ndarray, "items columns"],
    statistic: Callable[[np.ndarray], np.ndarray],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> list[Estimate]:
    """A statistic of items, with percentile intervals of a bootstrap over items.

    Args:
        statistic: computes (k,) numbers from (items, columns) values.

    Returns:
        k estimates, or an empty list without items; no intervals for fewer than `FEWEST` items.
    """
    n = len(values)
    if n == 0:
        return []
    if n < FEWEST:
        return [Estimate(float(x), math.nan, math.nan, n) for x in statistic(values)]
    rng = np.random.default_rng(seed)
    draws = np.stack([statistic(values[rng.integers(n, size=n)]) for _ in range(resamples)])
    return [
        Estimate(float(x), *percentiles(drawn, confidence), n)
        for x, drawn in zip(statistic(values), draws.T, strict=True)
    ]


def clustered_difference(
    counts: Num[np.ndarray, "items 3"],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """The difference of two pooled shares of the same trials, with several trials per item.

    Args:
        counts: per item, the successes of the first share, of the second, and the trials; or sums
            of the weights of these.

    Returns:
        The difference in [-1, 1], with the percentile interval of a bootstrap that draws items.
    """
    counts = counts[counts[:, 2] > 0]
    if not len(counts):
        return NOTHING
    totals = resampled_totals(counts, np.random.default_rng(seed), resamples)
    low, high = percentiles((totals[:, 0] - totals[:, 1]) / totals[:, 2], confidence)
    one, other, trials = counts.sum(axis=0).tolist()
    return Estimate((one - other) / trials, low, high, round(trials))


def mean_of_items(
    values: Iterable[float | None],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """The mean over the items that have a value, with the interval of `bootstrapped`."""
    present = np.array([v for v in values if v is not None and not math.isnan(v)], dtype=float)
    if not len(present):
        return NOTHING
    (mean,) = bootstrapped(
        present[:, None], _mean, seed=seed, resamples=resamples, confidence=confidence
    )
    return mean


def _mean(values: np.ndarray) -> np.ndarray:
    return values.mean(axis=0)


def agreement(left: Sequence[Hashable], right: Sequence[Hashable]) -> float:
    """Share of positions at which two sequences of labels agree; NaN for empty ones."""
    pairs = list(zip(left, right, strict=True))
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else math.nan


def kappa(left: Sequence[Hashable], right: Sequence[Hashable]) -> float:
    """Cohen's kappa: agreement beyond what the two marginal distributions give by chance.

    NaN if chance alone gives full agreement (both raters always give the same label).
    """
    n = len(left)
    observed = agreement(left, right)
    marginal = Counter(right)
    chance = sum(count * marginal[value] for value, count in Counter(left).items())
    if n == 0 or chance == n * n:
        return math.nan
    return (observed - chance / n**2) / (1 - chance / n**2)
