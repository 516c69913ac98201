"""Accuracy against faithfulness, with model and task held fixed (RFEval, §5 A4, Figure 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pandas as pd
import scipy
import statsmodels.api as sm
from statsmodels.stats.weightstats import DescrStatsW

from faithscope.experiments.analysis.cells import Count, Lines, Mean
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import CONFIDENCE, Estimate, percentiles
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import columns, numbers
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.tables.faithfulness import leading
from faithscope.experiments.studies.rfeval.tables.frames import CONDITION, READER, REASON, included

TOO_FEW, NO_DIFFERENCE = "too few cells", "the effects leave no difference"


def by_condition(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs that count, once for each of the two outputs: `condition`, and `right` for its
    answer."""
    counting = included(pairs)
    of_outputs = [counting.assign(condition=c, right=counting[f"{c}_right"]) for c in CONDITIONS]
    return pd.concat(of_outputs).sort_index(kind="stable")


ACCURACY = Table(
    "rf_accuracy",
    "pairs",
    (READER, "model", "task", CONDITION),
    (
        Count("n", meaning="Pairs that count."),
        Count(
            "n_without_answer",
            lambda pairs: pairs["right"].isna(),
            "without an answer",
            "Pairs that count whose answer is known neither right nor wrong: in RF, not in "
            "accuracy.",
        ),
        Mean(
            "accuracy",
            "right",
            meaning="Share of right answers, of the pairs that count and whose answer is known.",
        ),
        Mean("rf", label="RF", meaning="Share of the pairs that count with RF = 1."),
    ),
    prepare=by_condition,
)
"""Accuracy and RF of the same pairs that count, a row per reader, model, task and condition."""


def leading_cells(pairs: pd.DataFrame) -> pd.DataFrame:
    """The rows of `ACCURACY` that have both numbers, for the models that are compared."""
    return ACCURACY.make(leading(pairs)).dropna(subset=["accuracy", "rf"])


def association(cells: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    """The rows of `ASSOCIATION` of the cells (model, task) of one reader and condition."""
    about = {"n_cells": len(cells), "n": int(numbers(cells["n"]).sum())}
    lines = _associations(cells.reset_index(drop=True), how.seed, how.resamples)
    yield from (about | line for line in lines)


ASSOCIATION_COLUMNS = (
    Column("statistic", meaning="Slope or correlation, see the documentation."),
    Column("value", meaning="The statistic.", interval=True),
    Column("p", meaning="p-value of the statistic."),
    Column("n_cells", "models × tasks", "Pairs of model and task that the number is made of."),
    Column("n", meaning="Pairs of outputs that the number is made of."),
    Column("df", "degrees of freedom", "Pairs of model and task minus what the fit estimates."),
    REASON,
)
ASSOCIATION = Table(
    "rf_accuracy_association",
    "pairs",
    (READER, CONDITION),
    lines=[Lines(ASSOCIATION_COLUMNS, association)],
    prepare=leading_cells,
)
"""Association of RF with accuracy over the cells (model, task), weighted by their pairs (Figure 6).

`slope`: of a weighted least squares fit of RF on accuracy alone. `slope_fixed_effects`: the
same with a constant for each model and each task. `pearson`, `spearman`: weighted
correlations of what the fixed effects leave of the two, Spearman's of its ranks; p from
Student's t with the degrees of freedom that the effects leave (for Pearson's the test of
the slope, exactly), intervals from drawing cells anew and fitting anew. NaN with a `reason`
where the cells are too few or do not differ.
"""
TABLES = (ACCURACY, ASSOCIATION)


def _associations(cells: pd.DataFrame, seed: int, resamples: int) -> list[dict[str, Any]]:
    x, y, weights = (cells[name].to_numpy(float) for name in ("accuracy", "rf", "n"))
    effects = _effects(cells)
    lines = [
        _slope("slope", x, y, np.ones((len(cells), 1)), weights),
        _slope("slope_fixed_effects", x, y, effects, weights),
    ]
    df = len(cells) - np.linalg.matrix_rank(effects) - 1
    left = _left_over(x, y, effects, weights) if df >= 1 else None
    bounds = _bootstrap((x, y, effects, weights), seed, resamples) if left else {}
    for name, correlation in _CORRELATIONS.items():
        line: dict[str, Any] = {"statistic": name, "df": df, "reason": ""}
        value = correlation(*left, weights) if left else math.nan
        if math.isnan(value):
            lines.append(line | {"reason": TOO_FEW if df < 1 else NO_DIFFERENCE})
            continue
        t = value * math.sqrt(df / max(1 - value * value, 1e-300))
        estimate = columns("value", Estimate(value, *bounds[name], len(cells)))
        lines.append(line | estimate | {"p": float(2 * scipy.stats.t.sf(abs(t), df))})
    return lines


def _slope(
    name: str, x: np.ndarray, y: np.ndarray, besides: np.ndarray, weights: np.ndarray
) -> dict[str, Any]:
    design = np.column_stack([x, besides])
    rank = int(np.linalg.matrix_rank(design))
    line: dict[str, Any] = {"statistic": name, "df": len(y) - rank, "reason": ""}
    if len(y) - rank < 1:
        return line | {"reason": TOO_FEW}
    if rank == np.linalg.matrix_rank(besides):
        return line | {"reason": NO_DIFFERENCE}
    fit: Any = sm.WLS(y, design, weights=cast(Any, weights)).fit()
    low, high = fit.conf_int(1 - CONFIDENCE)[0]
    estimate = Estimate(fit.params[0], low, high, len(y))
    return line | columns("value", estimate) | {"p": float(fit.pvalues[0])}


def _effects(cells: pd.DataFrame) -> np.ndarray:
    """Gives the columns of a constant, and of each model and task but the first."""
    dummies = pd.get_dummies(cells[["model", "task"]].astype(str), drop_first=True, dtype=float)
    return np.column_stack([np.ones(len(cells)), dummies.to_numpy()])


def _left_over(
    x: np.ndarray, y: np.ndarray, effects: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """What weighted least squares on the effects leaves of x and y; None where it leaves nothing.

    A column of effects may be empty, as in a draw that misses a model.
    """
    root = np.sqrt(weights)[:, None]
    both = np.column_stack([x, y])
    fitted = np.linalg.lstsq(effects * root, both * root, rcond=None)[0]
    left = both - effects @ fitted
    # values that the effects explain wholly still differ by rounding, which is no difference
    if (np.abs(left).max(axis=0) < 1e-9).any():
        return None
    return left[:, 0], left[:, 1]


def _bootstrap(
    columns: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], seed: int, resamples: int
) -> dict[str, tuple[float, float]]:
    """Intervals of both correlations, from the same draws of cells."""
    rng = np.random.default_rng(seed)
    n = len(columns[0])
    draws: dict[str, list[float]] = {name: [] for name in _CORRELATIONS}
    for _ in range(resamples):
        at = rng.integers(n, size=n)
        x, y, effects, weights = (column[at] for column in columns)
        left = _left_over(x, y, effects, weights)
        for name, correlation in _CORRELATIONS.items():
            draws[name].append(correlation(*left, weights) if left else math.nan)
    return {name: percentiles(np.array(values), n) for name, values in draws.items()}


def weighted_pearson(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """The correlation of two columns whose rows weigh differently; NaN where one is constant."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    described: Any = DescrStatsW(np.column_stack([x, y]), weights=weights)
    return float(described.corrcoef[0, 1])


def weighted_spearman(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Correlation of the ranks by `weighted_pearson`, ties at their mean."""
    return weighted_pearson(scipy.stats.rankdata(x), scipy.stats.rankdata(y), weights)


_CORRELATIONS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], float]] = {
    "pearson": weighted_pearson,
    "spearman": weighted_spearman,
}
