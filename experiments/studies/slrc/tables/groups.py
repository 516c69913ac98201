"""Groups of models: the mean of every group, as in the last row of the paper's Table 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.record_frames import COUNTED
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns, groups, keep
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.branch_frame import (
    CAPACITY,
    NECESSITY,
    SUFFICIENCY,
    of_units,
    step_counts,
)
from faithscope.experiments.studies.slrc.tables.outcomes import FRAMING, is_variant

OF_GROUPS = (NECESSITY, SUFFICIENCY, CAPACITY)


def _of_groups(branches: pd.DataFrame, how: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    own = keep(branches, [not is_variant(task) for task in branches["task"]])
    own = own.sort_values(["task", "framing", "reading"], kind="stable")
    for name, models in how.groups.items():
        for key, of_way in groups(own, ("task", "framing", "reading")):
            of_models = {way["model"]: of for way, of in groups(of_way, ("model",))}
            members = [of_models[m] for m in models if m in of_models]
            if members:
                yield {"group": name, **key, "n_models": len(members)} | _means(members, how)


def _means(members: Sequence[pd.DataFrame], how: SlrcAnalysis) -> dict[str, Any]:
    of_items = [step_counts(of_model) for of_model in members]
    counts = [of_units(of_model, how) for of_model in of_items]
    rng = np.random.default_rng(how.seed)
    values = _scores([c.sum(axis=0, keepdims=True) for c in counts])
    draws = _scores([stats.resampled_totals(c, rng, how.resamples) for c in counts])
    row: dict[str, Any] = {"n": sum(map(len, of_items))}
    for cell, (value,), of_draws in zip(OF_GROUPS, values, draws, strict=True):
        estimate = Estimate(
            float(value), *stats.percentiles(of_draws, sum(map(len, counts))), row["n"]
        )
        row |= columns(cell.columns[0].name, estimate)
    return row


def _scores(totals: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Necessity and sufficiency, each the mean over models, and their SLRC; (draws,) each."""
    necessity, sufficiency = (
        np.mean([stats.over(t[:, i], t[:, i + 1]) for t in totals], axis=0) for i in (0, 2)
    )
    return necessity, sufficiency, necessity * (1 - sufficiency)


MODEL_GROUPS = computed_table(
    "model_groups",
    (
        Column("group", meaning="Name of the group in report.groups."),
        *(SHARED["task"], FRAMING, SHARED["reading"]),
        Column("n_models", "models", "Models of the group that were measured on the task."),
        *COUNTED.columns,
        *(c for cell in OF_GROUPS for c in cell.columns),
    ),
    "branches",
    _of_groups,
    caption="Groups of models, each model counting once",
)
"""Mean necessity and sufficiency over the models of every group that `report.groups` names, and the
SLRC of these means.

The intervals are percentiles of a bootstrap over the items of every model, and ignore that other
models might have been chosen. The paper's row of small models fits SLRC of the means: .08 × (1 −
.76) = .019 and .55 × (1 − .14) = .473.
"""
