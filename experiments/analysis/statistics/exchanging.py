"""Permutation tests that exchange whole questions: many scores of the same rows against one label.

The rows of a question (the traces of all models) stay together, and only questions with rows in the
same strata are exchanged, so that differences between strata do not count as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

from faithscope.experiments.analysis.statistics.resampling import Clusters
from faithscope.experiments.analysis.statistics.stats import over

EXCHANGES = 20_000
"""Number of permutations of a p-value. The least p, 1e-4, survives a correction for 2,000 pairs if
four pairs reach it."""
ROUNDING = 1e-9
"""Tolerance for float noise in a sum of ranks."""
CELLS = 4_000_000
"""Largest number of values in one block of permutations."""


def permutations(
    clusters: Clusters,
    strata: Int[np.ndarray, " rows"],
    seed: int,
    width: int,
    exchanges: int | None = None,
) -> Iterator[Int[np.ndarray, "rows draws"]]:
    """Yields permutations of rows in blocks; each exchanges whole clusters that have equal numbers
    of rows in the same strata.

    Args:
        width: number of values that the caller computes per row and permutation.
        exchanges: number of permutations; None for `EXCHANGES`.
    """
    exchanges = EXCHANGES if exchanges is None else exchanges
    names = np.asarray(clusters, dtype=str)
    rng = np.random.default_rng(seed)
    at_once = max(1, CELLS // max(1, len(names) * width))
    blocks = _exchangeable(names, strata)
    for first in range(0, exchanges, at_once):
        draws = min(at_once, exchanges - first)
        places = np.repeat(np.arange(len(names))[:, None], draws, axis=1)
        for block in blocks:
            order = np.repeat(np.arange(len(block))[:, None], draws, axis=1)
            # (clusters, rows of each, draws)
            places[block] = np.swapaxes(block[rng.permuted(order, axis=0)], 1, 2)
        yield places


def _exchangeable(clusters: np.ndarray, strata: np.ndarray) -> list[np.ndarray]:
    """Sets of exchangeable clusters, which have equal numbers of rows in the same strata: each set
    as (clusters, rows of each) row indices, stratum by stratum."""
    alike: dict[tuple[int, ...], list[np.ndarray]] = {}
    for cluster in np.unique(clusters):
        rows = np.flatnonzero(clusters == cluster)
        rows = rows[np.argsort(strata[rows], kind="stable")]
        alike.setdefault(tuple(strata[rows].tolist()), []).append(rows)
    return [np.stack(block) for block in alike.values() if len(block) > 1]


def exchangeable(clusters: Clusters, strata: Int[np.ndarray, " rows"]) -> float:
    """Share of the rows whose cluster can be exchanged with another one."""
    blocks = _exchangeable(np.asarray(clusters, dtype=str), strata)
    return sum(block.size for block in blocks) / max(1, len(strata))


@dataclass(frozen=True)
class Exchanged:
    """p-values of scores, for the null hypothesis that the label is independent of them inside
    strata.

    NaN if the score or the label does not vary inside any stratum.
    """

    highest: Float[np.ndarray, " scores"]
    """Share of permutations whose maximum over all scores reaches this score's statistic (Westfall
    and Young's single step): corrected for the choice among scores."""
    low: Float[np.ndarray, " scores"]
    """Share of permutations with as low a statistic of the score itself; uncorrected."""
    high: Float[np.ndarray, " scores"]
    """Share of permutations with as high a statistic of the score itself; uncorrected."""


def exchange_test(
    scores: Float[np.ndarray, "rows scores"],
    positive: Bool[np.ndarray, " rows"],
    strata: np.ndarray,
    clusters: Clusters,
    seed: int,
) -> Exchanged:
    """Tests scores against a label, all in the same permutations, by Wilcoxon's rank sum inside
    strata.

    Labels are exchanged between clusters. The statistic of a score is its rank sum over the
    positive rows of every stratum, standardised by expectation and standard deviation for the
    number of positive rows that have a score, corrected for ties. This puts scores with few values
    or with gaps on the same scale as others. Gaps (NaN) are not permuted.
    """
    codes = np.unique(strata, return_inverse=True)[1]
    there = ~np.isnan(scores)
    centred, unit = np.zeros(scores.shape), []
    members = [codes == stratum for stratum in np.unique(codes)]
    for here in members:
        ranks = scipy.stats.rankdata(scores[here], axis=0, nan_policy="omit")
        n = there[here].sum(axis=0)
        centred[here] = np.where(there[here], ranks - (n + 1) / 2, 0.0)
        unit.append(np.nan_to_num(over((centred[here] ** 2).sum(axis=0), n * (n - 1.0))))

    def statistic(labels: Float[np.ndarray, "draws rows"]) -> Float[np.ndarray, "draws scores"]:
        variance = np.zeros((len(labels), scores.shape[1]))
        for here, of_one in zip(members, unit, strict=True):
            n_positive = labels[:, here] @ there[here].astype(float)
            variance += n_positive * (there[here].sum(axis=0) - n_positive) * of_one
        spread = np.sqrt(variance)
        return over(labels @ centred, np.where(spread > ROUNDING, spread, 0))

    (observed,) = statistic(positive.astype(float)[None])
    highest, low, high = (np.ones(scores.shape[1]) for _ in range(3))
    for places in permutations(clusters, codes, seed, 1 + scores.shape[1] // 4):
        drawn = np.nan_to_num(statistic(positive[places].T.astype(float)))
        most = drawn.max(axis=1, initial=-np.inf)
        highest += (most[:, None] >= observed - ROUNDING).sum(axis=0)
        low += (drawn <= observed + ROUNDING).sum(axis=0)
        high += (drawn >= observed - ROUNDING).sum(axis=0)
    p = np.stack([highest, low, high]) / (EXCHANGES + 1)
    return Exchanged(*np.where(np.isnan(observed), np.nan, p))
