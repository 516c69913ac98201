"""Basic statistics of tables: estimates with intervals, differences, the bootstrap, agreement.

Steps of one item are not independent of each other. The unit of an interval is the item, or what
else is drawn as a whole: shares have Wilson intervals of an effective number of independent
outcomes (`clustered_shares`), other statistics a bootstrap that draws whole items. Draws that do
not vary give no interval, since that all items at hand agree does not make all items agree.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Float, Int, Num

CONFIDENCE = 0.95
RESAMPLES = 1000
FEWEST = 5
"""Least number of items for a bootstrap interval; draws from fewer repeat themselves. Shares have
Wilson intervals whatever their number of outcomes."""
ROUNDING = 1e-9
"""Difference below which draws of a bootstrap count as equal."""


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
    z = float(scipy.stats.norm.ppf(0.5 + confidence / 2))
    items = np.where(items > 0, items, np.nan)
    spread = 1 + z * z / items
    centre = (value + z * z / (2 * items)) / spread
    half = z / spread * np.sqrt(value * (1 - value) / items + z * z / (4 * items * items))
    # at 0 and 1 one bound is the share itself, whatever rounding leaves
    low = np.where(value > 0, np.maximum(0.0, centre - half), 0.0 * value)
    high = np.where(value < 1, np.minimum(1.0, centre + half), value)
    return low, high


def clustered_shares(
    ones: Float[np.ndarray, " rows"],
    weights: Float[np.ndarray, " rows"],
    clusters: Int[np.ndarray, " rows"],
    groups: Int[np.ndarray, " rows"],
    n: int,
    confidence: float = CONFIDENCE,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares of outcomes in groups of rows, with the ends of their Wilson intervals for as many
    independent outcomes as the clusters tell as much as; each (groups,), NaN of no rows.

    The effective number of outcomes is p (1 - p) over the variance of the share between clusters
    (linearised, as of a ratio of sums), adjusted for the degrees of freedom of that variance (Korn
    and Graubard, Survey Methodology 24, 1998) and never more than the number of rows. It is the
    number of clusters where all outcomes agree, so that they say nothing about that variance.

    Args:
        ones: 1 for an outcome that is counted, 0 for another.
        weights: weight of each outcome, such as the inverse of its probability to be drawn.
        clusters: number of each row's cluster, the unit that is drawn as a whole.
        groups: number of each row's group, from 0.
        n: number of groups.
    """
    pairs, of_rows = np.unique(
        groups * (int(clusters.max(initial=0)) + 1) + clusters, return_inverse=True
    )
    of_pairs = np.zeros(len(pairs), dtype=int)
    of_pairs[of_rows] = groups
    rows, units = (np.bincount(x, minlength=n).astype(float) for x in (groups, of_pairs))
    below = np.bincount(groups, weights=weights, minlength=n)
    value = over(np.bincount(groups, weights=weights * ones, minlength=n), below)
    left = np.bincount(of_rows, weights=weights * (ones - value[groups]), minlength=len(pairs))
    between = np.bincount(of_pairs, weights=left**2, minlength=n)
    free = np.maximum(units - 1, 1)
    variance = over(between, below**2) * units / free
    # of single rows of one weight this is the plain Wilson interval
    alike = over(below**2, np.bincount(groups, weights**2, n))
    plain = (units == rows) & (alike > rows * (1 - ROUNDING))
    fewer = (
        scipy.stats.norm.ppf((1 + confidence) / 2) / scipy.stats.t.ppf((1 + confidence) / 2, free)
    ) ** 2
    effective = np.minimum(over(value * (1 - value), variance) * fewer, rows)
    unknown = plain | np.isnan(effective) | (units < 2)
    effective = np.where(unknown, np.minimum(units, alike), effective)
    return value, *wilson_bounds(value, effective, confidence)


def clustered_means(
    values: Float[np.ndarray, " rows"],
    clusters: Int[np.ndarray, " rows"],
    groups: Int[np.ndarray, " rows"],
    n: int,
    confidence: float = CONFIDENCE,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, in groups of rows, of values between 0 and 1, with the ends of their score intervals;
    each (groups,), NaN of no rows.

    Of values that are 0 or 1 this is Wilson's interval of as many outcomes as clusters. Of others
    the variance between clusters, with the quantile of Student's t, takes the place of p (1 - p),
    and never more than the greatest that values up to the largest (for the lower end), or from the
    smallest (for the upper end), can have. Values that are all alike have an interval, too: of
    what was not drawn, any part may lie at 0 or 1. How often it leaves out the truth is simulated
    (`docs/conclusions.md`).

    Args:
        values: none is NaN.
        clusters: number of each row's cluster, the unit that is drawn as a whole.
        groups: number of each row's group, from 0.
        n: number of groups.
    """
    pairs, of_rows = np.unique(
        groups * (int(clusters.max(initial=0)) + 1) + clusters, return_inverse=True
    )
    of_pairs = np.zeros(len(pairs), dtype=int)
    of_pairs[of_rows] = groups
    size, total = np.bincount(of_rows), np.bincount(of_rows, values)
    units, rows = (np.bincount(x, minlength=n).astype(float) for x in (of_pairs, groups))
    value = over(np.bincount(groups, values, n), rows)
    between = np.bincount(of_pairs, (total - size * value[of_pairs]) ** 2, n)
    free = np.maximum(units - 1, 1)
    z = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    wider = (scipy.stats.t.ppf((1 + confidence) / 2, free) / z) ** 2
    # of clusters of unlike sizes as many as tell as much (Kish)
    count = over(rows**2, np.bincount(of_pairs, size.astype(float) ** 2, n))
    variance = over(between, rows**2) * units / free * wider * count
    variance[units < 2] = np.inf
    most = np.full(n, -np.inf)
    least = np.full(n, np.inf)
    np.maximum.at(most, of_pairs, total / size)
    np.minimum.at(least, of_pairs, total / size)
    low = _lower_end(value, variance, most, count, z)
    high = 1 - _lower_end(1 - value, variance, 1 - least, count, z)
    # at 0 and 1 one bound is the mean itself, whatever rounding leaves
    return value, np.where(value > 0, low, value), np.where(value < 1, high, value)


def _lower_end(
    mean: np.ndarray, variance: np.ndarray, most: np.ndarray, n: np.ndarray, z: float
) -> np.ndarray:
    """Lower end of the score interval of means of n values from 0 to `most`; NaN of no values."""
    known = n > 0
    mean, most, n = (np.where(known, x, np.nan) for x in (mean, most, n))
    spread = np.clip(variance, 0, np.maximum(mean * (most - mean), 0))
    half = z * np.sqrt(n * spread + (most * z / 2) ** 2)
    return np.clip((n * mean + most * z * z / 2 - half) / (n + z * z), 0, mean)


def clustered_share(
    ones: Float[np.ndarray, " rows"],
    clusters: Int[np.ndarray, " rows"],
    weights: Float[np.ndarray, " rows"] | None = None,
) -> Estimate:
    """`clustered_shares` of one group of rows, which weigh alike if `weights` is not given."""
    n = len(ones)
    weights, group = np.ones(n) if weights is None else weights, np.zeros(n, dtype=int)
    ends = clustered_shares(ones, weights, clusters, group, 1)
    value, low, high = (float(end[0]) for end in ends)
    return Estimate(value, low, high, n)


def share(outcomes: Sequence[bool], units: Iterable[Hashable] | None = None) -> Estimate:
    """The share of true outcomes in a list, with its Wilson interval.

    Args:
        units: unit of each outcome, the unit of the interval; by default each is one.
    """
    if units is None or not len(outcomes):
        return wilson(sum(outcomes), len(outcomes))
    return clustered_share(np.asarray(outcomes, dtype=float), codes_of(units))


def difference(
    first: Estimate, second: Estimate, value: float | None = None, correlation: float = 0.0
) -> Estimate:
    """One share minus another, with Newcombe's interval from the intervals of the two.

    Statistics in Medicine 17, 1998, 873-890, method 10; with a correlation as Zou (Psychological
    Methods 12, 2007) extends it. For shares of the same trials it is cautious without one.

    Args:
        value: the difference, if known more exactly than from the two shares.
        correlation: correlation of the two estimates.
    """
    if math.isnan(first.value) or math.isnan(second.value):
        return NOTHING
    at = first.value - second.value if value is None else value

    def spread(left: float, right: float) -> float:
        return math.sqrt(max(0.0, left * left - 2 * correlation * left * right + right * right))

    below = spread(first.value - first.low, second.high - second.value)
    above = spread(first.high - first.value, second.value - second.low)
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
    return difference(one, other, (only_first - only_second) / n, phi)


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


def tail(n: int, confidence: float = CONFIDENCE) -> float:
    """Share of bootstrap draws on either side of an interval from so many drawn items.

    Draws from n items vary less than samples of n items do, and by an unknown spread; the tails
    are those of Student's t with n - 1 degrees of freedom, of the variance over n - 1 (expanded
    percentiles; Hesterberg, The American Statistician 69, 2015, section 5.3).
    """
    if n < FEWEST:
        return math.nan
    return float(
        scipy.stats.norm.cdf(
            -math.sqrt(n / (n - 1)) * scipy.stats.t.ppf((1 + confidence) / 2, n - 1)
        )
    )


def widened(n: int, tests: int, confidence: float = CONFIDENCE) -> float:
    """How many times as wide Student's interval of a mean of n values is if it counts so many tests
    (Bonferroni); 1 for fewer than two values."""
    if n < 2:
        return 1.0
    single, all_ = (scipy.stats.t.ppf(1 - (1 - confidence) / 2 / k, n - 1) for k in (1, tests))
    return float(all_ / single)


def percentiles(draws: np.ndarray, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The ends of a bootstrap's percentile interval; NaN draws are left out.

    Both are NaN where the draws do not vary, or come from fewer than `FEWEST` items.

    Args:
        draws: the statistic in every draw.
        n: number of items, or of other clusters, that are drawn.
    """
    low, high = percentiles_of(np.reshape(draws, (-1, 1)), n, confidence)
    return float(low[0]), float(high[0])


def percentiles_of(
    draws: Float[np.ndarray, "draws n"], n: int, confidence: float = CONFIDENCE
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """`percentiles` of every column of draws."""
    out = tail(n, confidence)
    known = ~np.isnan(draws)
    varies = np.zeros(draws.shape[1], dtype=bool)
    if not math.isnan(out) and len(draws):
        filled = np.where(known, draws, np.inf), np.where(known, draws, -np.inf)
        varies = filled[1].max(axis=0) - filled[0].min(axis=0) > ROUNDING
    low, high = np.full((2, draws.shape[1]), np.nan)
    whole = varies & known.all(axis=0)
    if whole.any():
        low[whole], high[whole] = np.quantile(draws[:, whole], [out, 1 - out], axis=0)
    for column in np.flatnonzero(varies & ~whole):
        of = draws[known[:, column], column]
        low[column], high[column] = np.quantile(of, [out, 1 - out])
    return low, high


def bootstrapped(
    values: Float[np.ndarray, "items columns"],
    statistic: Callable[[np.ndarray], np.ndarray],
    *,
    units: Sequence[Hashable] | np.ndarray | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> list[Estimate]:
    """A statistic of items, with percentile intervals of a bootstrap over items.

    Args:
        statistic: computes (k,) numbers from (items, columns) values.
        units: unit of each item, of which all items are drawn together; by default each is one.

    Returns:
        k estimates, or an empty list without items; no intervals for fewer than `FEWEST` units.
    """
    rows = None if units is None else of_units(units)
    items = len(values)
    n = items if rows is None else len(rows)
    if items == 0:
        return []
    if n < FEWEST:
        return [Estimate(float(x), math.nan, math.nan, items) for x in statistic(values)]
    rng = np.random.default_rng(seed)

    def drawn_items() -> np.ndarray:
        drawn = rng.integers(n, size=n)
        return drawn if rows is None else np.concatenate([rows[i] for i in drawn])

    draws = np.stack([statistic(values[drawn_items()]) for _ in range(resamples)])
    return [
        Estimate(float(x), *percentiles(drawn, n, confidence), items)
        for x, drawn in zip(statistic(values), draws.T, strict=True)
    ]


def of_units(units: Sequence[Hashable] | np.ndarray) -> list[np.ndarray] | None:
    """The places of the items of each unit; None if each item is a unit of its own."""
    places: dict[Hashable, list[int]] = {}
    for at, unit in enumerate(units):
        places.setdefault(unit, []).append(at)
    if len(places) == len(units):
        return None
    return [np.array(at) for at in places.values()]


def mean_of_items(
    values: Iterable[float | None],
    *,
    units: Iterable[Hashable] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """The mean over the items that have a value, with the interval of `bootstrapped`, or Wilson's
    where values are yes or no."""
    values = list(values)
    pairs = zip(values, range(len(values)) if units is None else units, strict=True)
    known = [(v, unit) for v, unit in pairs if v is not None and not math.isnan(v)]
    present = np.array([v for v, _ in known])
    if not len(present):
        return NOTHING
    if yes_or_no(present):
        codes = np.array([*range(len(known))]) if units is None else codes_of(u for _, u in known)
        return clustered_share(present.astype(float), codes)
    (mean,) = bootstrapped(
        present[:, None],
        _mean,
        units=[unit for _, unit in known],
        seed=seed,
        resamples=resamples,
        confidence=confidence,
    )
    return mean


def codes_of(names: Iterable[Hashable]) -> Int[np.ndarray, " n"]:
    """The number of each name, from 0 in order of first place."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=int)


def _mean(values: np.ndarray) -> np.ndarray:
    return values.mean(axis=0)


def yes_or_no(values: np.ndarray) -> bool:
    """Whether values are outcomes of yes and no: booleans, or numbers of which some are 0, some 1,
    and none another."""
    return values.dtype == bool or set(np.unique(values).tolist()) == {0.0, 1.0}


def agreement(left: Sequence[Hashable], right: Sequence[Hashable]) -> float:
    """Share of positions at which two sequences of labels agree; NaN for empty ones."""
    if len(left) != len(right):
        raise ValueError(f"{len(left)} labels and {len(right)} of the same things")
    return sum(map(operator.eq, left, right)) / len(left) if len(left) else math.nan


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
