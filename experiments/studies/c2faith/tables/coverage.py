"""Coverage scoring (C2-Faith, §4.2 and §5.3, Table 3, Figure 3), on the paper's scale and finer.

Two truths to hold a score against: the score of a reference judge that saw what was removed,
as in the paper, and the share of the middle steps that is still there, which is known of every
item and asks no judge. Rank correlation is given with both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import (
    Boot,
    Lines,
    Mean,
    Numbers,
    Values,
    rows_known,
    values_of,
)
from faithscope.experiments.analysis.columns import Column, described, estimates
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, spearman
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import columns, keep, numbers
from faithscope.experiments.studies.c2faith.tables.frames import (
    COUNTS,
    JUDGED,
    LEVEL,
    REFERENCE_JUDGE,
    SCALE,
    SHARE_KEPT,
    WAY,
    counted,
    counts,
    maximum,
    sorted_within,
)

INFLATED = 0.75
"""Share of the maximum from which a score counts as inflated: the paper's 3 on 0-4."""
OF = (*WAY, "scale", "reference_judge")
"""Names of the columns that coverage tables are grouped by; `BY` declares them."""
BY = (*WAY, SCALE, REFERENCE_JUDGE)


def tops(judged: pd.DataFrame) -> np.ndarray:
    """(rows,) the best score of each row's scale."""
    return numbers(judged["scale"].map(maximum))


def share_of_scale(judged: pd.DataFrame) -> np.ndarray:
    """(rows,) the score as a share of the best one."""
    return numbers(judged["score"]) / tops(judged)


def share_kept(judged: pd.DataFrame) -> np.ndarray:
    """(rows,) the share of the middle steps that is still there."""
    return 1 - numbers(judged["n_removed"]) / numbers(judged["n_middle"])


def with_levels_rising(coverage: pd.DataFrame) -> pd.DataFrame:
    """The frame with the deletion levels of every way of judging in rising order."""
    return sorted_within(coverage, OF, coverage["level"])


def _error(judged: pd.DataFrame) -> np.ndarray:
    return numbers(judged["score"]) - numbers(judged["reference"])


def _distance(judged: pd.DataFrame) -> np.ndarray:
    return np.abs(_error(judged))


def _is_inflated(judged: pd.DataFrame) -> np.ndarray:
    return numbers(judged["score"]) >= INFLATED * tops(judged)


def _correlation(column: Column, x: str, truth: Values, p: Column | None = None) -> Numbers:
    def compute(judged: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
        known = keep(judged, rows_known("score", x)(judged))
        values, truths = values_of(known, x), values_of(known, truth)
        there = ~np.isnan(truths)
        rho, p_value = spearman(how.units(known, "chain")[there], values[there], truths[there], how)
        return columns(column.name, rho) | ({p.name: p_value} if p else {})

    return Numbers((column, *([p] if p else [])), compute)


def _spread(judged: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    scores = numbers(judged["score"].dropna())
    return {"sd": float(scores.std()) if len(scores) else math.nan}


def _inflated_from(judged: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    return {"inflated_from": INFLATED * tops(judged)[0]}


_N_REFERENCE, _SPREAD, _FROM, _P, _P_KEPT = described(
    n_reference=(
        "with a reference score",
        "Items with a score that have a reference score: bias and MAE are of them.",
    ),
    sd="Standard deviation of the score over items.",
    inflated_from=("inflated from", "The least score that counts as inflated."),
    spearman_p="p of the rank correlation with the reference.",
    spearman_kept_p="p of the rank correlation with the share kept.",
)
_RHO, _RHO_KEPT, _RHO_EXPECTED = estimates(
    spearman="Rank correlation with the reference.",
    spearman_kept="Rank correlation with the share of steps kept; within a level that varies by "
    "rounding alone.",
    expected_spearman_kept="Rank correlation of the expected score with the share kept.",
)
_OF_SCALE = ("mean, share of the scale", "Mean score over the maximum of the scale, 0 to 1.")
_EXPECTED = ("expected score", "Mean score under the probabilities of the scored reading.")
_REFERENCE = "Mean reference score, of the items with a score."
_INFLATION = "Scores of three quarters of the maximum and more."
COVERAGE = Table(
    "c2_coverage",
    "coverage",
    (*BY, LEVEL),
    (
        *counts(JUDGED),
        counted(_N_REFERENCE, rows_known("score", "reference")),
        Boot("mean", "score", "chain", JUDGED, meaning="Mean score."),
        Numbers((_SPREAD,), _spread),
        Boot("mean_share", share_of_scale, "chain", JUDGED, *_OF_SCALE),
        Mean("share_kept", share_kept, JUDGED, SHARE_KEPT.label, SHARE_KEPT.meaning),
        Boot("reference_mean", "reference", "chain", JUDGED, meaning=_REFERENCE),
        Boot("bias", _error, "chain", JUDGED, meaning="Mean of score − reference."),
        Boot("mae", _distance, "chain", JUDGED, "MAE", "Mean of |score − reference|."),
        Boot("inflation", _is_inflated, "chain", JUDGED, meaning=_INFLATION),
        Numbers((_FROM,), _inflated_from),
        _correlation(_RHO, "score", "reference", _P),
        _correlation(_RHO_KEPT, "score", share_kept, _P_KEPT),
        Mean("expected_mean", "expected", JUDGED, *_EXPECTED),
        _correlation(_RHO_EXPECTED, "expected", share_kept),
    ),
    prepare=with_levels_rising,
)
"""Coverage scores by each judge, reading, prompt and scale, at each deletion level (Table 3).

Bias and MAE are over the `n_reference` items that have a score and a reference. The rank
correlation with the share kept varies within a level by rounding alone (ceil of d times the
number of steps), so it is small even for a good judge: see `POOLED`. Intervals are from drawing
chains.
"""
POOLED = replace(COVERAGE, name="c2_coverage_pooled", by=BY, prepare=None)
"""Coverage scores over all deletion levels together.

A chain has an item per level, so chains are drawn and no p-value is given.
"""


def _score_shares(judged: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    scores = numbers(judged["score"].dropna())
    counts = {"n": len(scores), "n_without_verdict": len(judged) - len(scores)}
    for value, times in zip(*np.unique(scores, return_counts=True), strict=True):
        yield counts | {"score": value, "share": times / len(scores)}
    if not len(scores):
        yield counts


_SCORE, _SHARE = described(
    score="The score that was given.", share="Share of the items that have this score."
)
SCORES = Table(
    "c2_coverage_scores",
    "coverage",
    (*BY, LEVEL),
    prepare=with_levels_rising,
    lines=[Lines((_SCORE, *COUNTS, _SHARE), _score_shares)],
)
"""The share of every score that was given, by level (Figure 3a)."""
