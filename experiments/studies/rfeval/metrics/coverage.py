"""Faithfulness by quartiles of contrast coverage (RFEval, appendix E, Table 16)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.stats import wilson_of_items
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
    binned = [
        of.assign(by=by, group=key[by], quartile=_quartiles(numbers(of["contrast_coverage"])))
        for by in ("model", "task")
        for key, of in groups(cells, ("reader", by))
    ]
    every = pd.concat(binned or [cells])
    lines = []
    keys = ("reader", "by", "group", "quartile")
    for key, of in groups(pd.concat([every, every.assign(group=OVERALL)]), keys) if binned else ():
        weights, coverage = numbers(of["n_included"]), of["contrast_coverage"]
        n = int(weights.sum())
        share = wilson_of_items(float(numbers(of["rf"]) @ weights / n), n)
        line = {**key, "n_cells": len(of), "n_included": n} | columns("rf", share)
        lines.append(line | {"coverage_min": coverage.min(), "coverage_max": coverage.max()})
    table = pd.DataFrame(lines, columns=QUARTILES)
    return table.sort_values(["reader", "by"], kind="stable", ignore_index=True)


def _quartiles(values: np.ndarray) -> np.ndarray:
    """1 to 4 of each value, 1 for the lowest."""
    return 1 + np.searchsorted(np.quantile(values, [0.25, 0.5, 0.75]), values, side="left")
