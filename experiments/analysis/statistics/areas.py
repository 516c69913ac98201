"""Areas under the ROC curve: their intervals, and tests that one is not far behind another.

An area is the Mann-Whitney statistic. Its interval is Newcombe's (Statistics in Medicine 25, 2006,
559-573, method 5), which has a width at 0 and 1, too: the areas that are z standard errors away,
where the standard error is that of the area in question (Hanley and McNeil, Radiology 143, 1982,
with (m + n) / 2 - 1 for either sample's size less one). Where DeLong's variance of the area at
hand, taken between clusters (Obuchowski, Biometrics 53, 1997), is greater, all of these are scaled
up to it. The interval of a difference combines those of both areas with their correlation (Zou,
Psychological Methods 12, 2007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Bool, Float

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Clusters
from faithscope.experiments.analysis.statistics.stats import CONFIDENCE, Estimate, difference

FARTHEST = 8.0
"""Number of standard errors beyond which a p-value is not told from 0."""


@dataclass(frozen=True)
class Area:
    """An area under the ROC curve, over pairs of a positive and another row in one stratum."""

    value: float
    """NaN if no stratum has rows of both kinds."""
    n: int
    """Number of rows."""
    sizes: Float[np.ndarray, "strata 2"]
    """Number of positive and of other rows of every stratum that has both."""
    influence: Float[np.ndarray, " clusters"]
    """By how much each cluster moves the area; the sum of squares is DeLong's variance."""
    units: int
    """Number of clusters with rows of the rarer kind."""
    inflation: float = 1.0
    """By how much more the area varies than that of scores which do not depend on the labels of
    other rows, as scores in cross-validation do; the variance is multiplied by it."""

    def bounds(self, z: float) -> tuple[float, float]:
        """The areas below and above this one that are z standard errors away from it; NaN for
        fewer than `stats.FEWEST` clusters."""
        if math.isnan(self.value) or len(self.influence) < stats.FEWEST:
            return math.nan, math.nan
        scale = self._scale

        def beyond(area: float) -> float:
            return abs(self.value - area) - z * math.sqrt(scale * self._variance(area))

        # at 0 and 1 no area has a standard error, so the end itself is no answer
        at = min(max(self.value, stats.ROUNDING), 1 - stats.ROUNDING)
        if beyond(at) >= 0:
            return self.value, self.value
        low = 0.0 if self.value <= 0 else float(scipy.optimize.brentq(beyond, 0.0, at))  # pyright: ignore
        high = 1.0 if self.value >= 1 else float(scipy.optimize.brentq(beyond, at, 1.0))  # pyright: ignore
        return low, high

    def estimate(self, confidence: float = CONFIDENCE) -> Estimate:
        z = float(scipy.stats.norm.ppf((1 + confidence) / 2))
        return Estimate(self.value, *self.bounds(z), self.n)

    def _variance(self, area: float) -> float:
        """Variance of an area of this value in samples of these sizes of independent rows."""
        pairs = self.sizes.prod(axis=1)
        spread = (1 - area) / (2 - area) + area / (1 + area)
        alike = 1 + (self.sizes.mean(axis=1) - 1) * spread
        return float(area * (1 - area) * (pairs * alike).sum() / pairs.sum() ** 2)

    def spread(self, area: float = 0.5) -> float:
        """Standard error of an area of this value, between clusters."""
        return math.sqrt(self._scale * self._variance(area))

    @property
    def _scale(self) -> float:
        return self.inflation * self._clustering

    @property
    def _clustering(self) -> float:
        found, expected = float((self.influence**2).sum()), self._variance(self.value)
        if expected > 0 and found > 0:
            return max(1.0, found / expected)
        # rows of a cluster that all agree tell as much as one
        return self.n / len(self.influence)


def area(
    clusters: Clusters,
    positive: Bool[np.ndarray, " rows"],
    score: Float[np.ndarray, " rows"],
    strata: np.ndarray | None = None,
) -> Area:
    """The area under the ROC curve, ties counting half.

    Args:
        clusters: (rows,) the units that are independent, such as questions.
        strata: (rows,) if given, only pairs of rows in one stratum count: the mean area of strata,
            weighted by their numbers of pairs.
    """
    strata = np.zeros(len(positive)) if strata is None else strata
    names, codes = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)
    won, pairs, sizes = 0.0, 0, []
    influence, sides = np.zeros(len(names)), ([], [])
    for stratum in np.unique(strata):
        here = strata == stratum
        both = [np.flatnonzero(here & kind) for kind in (positive, ~positive)]
        if not all(map(len, both)):
            continue
        of = [score[rows] for rows in both]
        ranks = np.split(scipy.stats.rankdata(np.concatenate(of)), [len(of[0])])
        wins = [ranks[i] - scipy.stats.rankdata(of[i]) for i in (0, 1)]
        wins[1] = len(of[0]) - wins[1]
        for rows, mine, kind in zip(both, wins, sides, strict=True):
            m = len(rows)
            moved = (mine - mine.mean()) * math.sqrt(m / max(1, m - 1))
            influence += np.bincount(codes[rows], moved, len(names))
            kind.append(codes[rows])
        sizes.append([len(rows) for rows in both])
        won, pairs = won + float(wins[0].sum()), pairs + len(both[0]) * len(both[1])
    if not pairs:
        return Area(math.nan, len(positive), np.zeros((0, 2)), influence, 0)
    units = min(len(np.unique(np.concatenate(kind))) for kind in sides)
    sizes = np.array(sizes, dtype=float)
    return Area(won / pairs, len(positive), sizes, influence / pairs, units)


def correlation(first: Area, second: Area) -> float:
    """Correlation of two areas of the same rows; 0 where one of them does not vary."""
    spread = math.sqrt(float((first.influence**2).sum() * (second.influence**2).sum()))
    product = float((first.influence * second.influence).sum())
    return product / spread if spread > stats.ROUNDING else 0.0


def same_ranks(first: Area, second: Area) -> bool:
    """Whether no cluster tells two areas of the same rows apart, so that nothing shows how much
    their difference varies."""
    return bool(np.allclose(first.influence, second.influence, atol=stats.ROUNDING, rtol=0))


def behind(first: Area, second: Area, confidence: float = CONFIDENCE) -> Estimate:
    """The first area minus the second of the same rows; without an interval where both rank alike
    (`same_ranks`)."""
    of = first.estimate(confidence), second.estimate(confidence)
    at = difference(*of, correlation=correlation(first, second))
    if math.isnan(at.value) or not same_ranks(first, second):
        return at
    return Estimate(at.value, math.nan, math.nan, at.n)


def p_as_good(first: Area, second: Area, bound: float) -> float:
    """One-sided p-value against the hypothesis that the second area is a bound behind the first, or
    more; NaN where their difference has no interval (`behind`).

    It is that of the confidence at which the interval of the difference ends at the bound. The
    standard error is at least the one of a share `bound` of as many clusters as have rows of the
    rarer kind: a score that turns this share of these clusters round, and ranks like the other
    else, is a bound behind, and shows it only where one of them was drawn.
    """
    if math.isnan(behind(first, second).low):
        return math.nan
    at = first.value - second.value
    if at >= bound:
        return 1.0
    least = math.sqrt(bound * (1 - bound) / first.units)
    both = correlation(first, second)

    def above(z: float) -> float:
        one, other = first.bounds(z)[1] - first.value, second.value - second.bounds(z)[0]
        spread = math.sqrt(max(0.0, one * one - 2 * both * one * other + other * other))
        return at + max(spread, z * least) - bound

    if above(FARTHEST) < 0:
        return float(scipy.stats.norm.sf(FARTHEST))
    return float(scipy.stats.norm.sf(scipy.optimize.brentq(above, 0.0, FARTHEST)))  # pyright: ignore
