"""Faithfulness by quartiles of contrast coverage (RFEval, appendix E, Table 16)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.stats import wilson_of_items
from faithscope.experiments.analysis.tidy import columns, groups, keep, numbers, with_interval
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL

QUARTILES = ["reader", "by", "group", "quartile", "n_cells", "n_included"]
QUARTILES += [*with_interval("rf"), "coverage_min", "coverage_max"]


def coverage_quartiles(rf: pd.DataFrame) -> pd.DataFrame:
    """RF of the cells (model, task) binned by their coverage, weighted by included pairs.

    `by` is `model`: the tasks of each model are binned; or `task`: the models of each task. The
    group `overall` pools the bins of all groups. Bin edges are the quartiles of the group's own
    coverages (linear interpolation), an edge belonging to the lower bin.

    Args:
        rf: what `faithfulness.rf_table` gave; cells without an included pair are passed over.
    """
    cells = keep(rf, (rf["model"] != OVERALL) & (rf["task"] != OVERALL) & (rf["n_included"] > 0))
    made = []
    for by in ("model", "task"):
        binned = []
        for key, of in groups(cells, ("reader", by)):
            quartile = quartiles_of(of["contrast_coverage"].to_numpy(float))
            binned.append(of.assign(quartile=quartile, group=key[by]))
        if not binned:
            continue
        every = pd.concat(binned)
        pooled = pd.concat([every, every.assign(group=OVERALL)])
        for key, of in groups(pooled, ("reader", "group", "quartile")):
            made.append(key | {"by": by} | _bin(of))
    frame = pd.DataFrame(made, columns=QUARTILES)
    return frame.sort_values(["reader", "by"], kind="stable", ignore_index=True)


def quartiles_of(values: np.ndarray) -> np.ndarray:
    """1 to 4 of each value, 1 for the lowest."""
    edges = np.quantile(values, [0.25, 0.5, 0.75])
    return 1 + np.searchsorted(edges, values, side="left")


def _bin(of: pd.DataFrame) -> dict[str, Any]:
    weights = numbers(of["n_included"])
    n = int(weights.sum())
    value = float(numbers(of["rf"]) @ weights / n)
    about = {"n_cells": len(of), "n_included": n}
    about |= columns("rf", wilson_of_items(value, n))
    coverage = of["contrast_coverage"]
    return about | {"coverage_min": coverage.min(), "coverage_max": coverage.max()}
