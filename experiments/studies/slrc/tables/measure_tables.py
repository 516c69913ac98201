"""All measures of a run side by side: their means, and how they rank the same items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.item_tables import Analysis
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics.stats import over
from faithscope.experiments.analysis.tidy import (
    columns,
    distinct,
    mean,
    present,
    where,
    with_interval,
)
from faithscope.experiments.studies.slrc.tables.measures import MEASURES, all_scores

LEAST_ITEMS = 5
"""Fewer items than this are not correlated."""


def measures_table(records: Iterable[Record], analysis: Analysis) -> pd.DataFrame:
    """A row per model, task and measure: the mean score over the items that have one.

    With percentile bootstrap intervals over items. `higher_is_faithful` is the direction that
    theory gives the measure, `forwards` the mean model calls of an item for it alone.
    """
    scores = all_scores(records)
    found = []
    for pair in sorted(distinct(scores, "model", "task"), key=lambda p: (p["model"], p["task"])):
        of_pair = where(scores, **pair)
        wide = _by_item(of_pair)
        values = wide.to_numpy(dtype=float)
        drawn = analysis.estimates(values, _means)
        there = (~np.isnan(values)).sum(axis=0).tolist()
        for name, n, estimate in zip(map(str, wide.columns), there, drawn, strict=True):
            row: dict[str, Any] = pair | {"measure": name}
            row |= {"family": MEASURES[name].family, "n": n}
            row |= columns("score", estimate)
            row |= {"higher_is_faithful": MEASURES[name].higher_is_faithful}
            found.append(row | {"forwards": mean_forwards(of_pair, name)})
    names = ["model", "task", "measure", "family", "n", *with_interval("score")]
    return pd.DataFrame(found, columns=[*names, "higher_is_faithful", "forwards"])


def measure_correlations_table(
    records: Iterable[Record], analysis: Analysis | None = None
) -> pd.DataFrame:
    """A row per model and pair of measures: Spearman's rank correlation over items.

    Over the items of all tasks of a model that have both scores, so that differences between
    tasks count in. Scores are as measured, whatever way they point. A pair of which one
    score never varies, or that fewer than `LEAST_ITEMS` items have, has no row.
    """
    found = []
    scores = all_scores(records)
    for model in sorted(set(scores["model"])):
        wide = _by_item(where(scores, model=model))
        rho = wide.corr(method="spearman", min_periods=LEAST_ITEMS).to_numpy()
        there = wide.notna().to_numpy().astype(int)
        both = there.T @ there
        found += [
            {
                "model": model,
                "measure": wide.columns[i],
                "other": wide.columns[j],
                "n": int(both[i, j]),
                "spearman": float(rho[i, j]),
            }
            for i, j in zip(*np.triu_indices(len(rho), 1), strict=True)
            if not np.isnan(rho[i, j])
        ]
    return pd.DataFrame(found, columns=["model", "measure", "other", "n", "spearman"])


def mean_forwards(scores: pd.DataFrame, measure: str) -> float:
    """Mean model calls of an item for a measure alone; NaN where no record says them."""
    return mean(present(where(scores, measure=measure)["forwards"].tolist()))


def _by_item(scores: pd.DataFrame) -> pd.DataFrame:
    """A row per task and item, a column per measure in the order of the registry."""
    wide = scores.pivot(index=["task", "item"], columns="measure", values="score")
    return wide.reindex(columns=[name for name in MEASURES if name in wide.columns])


def _means(values: np.ndarray) -> np.ndarray:
    """NaN where a draw has no item with a score."""
    return over(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))
