"""Groups of models: the mean of every group, as in the last row of the paper's Table 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.branches import (
    CAPACITY,
    NECESSITY,
    SUFFICIENCY,
    step_counts,
)
from faithscope.experiments.studies.slrc.tables.outcomes import FRAMING, WAYS, is_variant

OF_GROUPS = (NECESSITY, SUFFICIENCY, CAPACITY)


def _of_groups(records: Sequence[Record], how: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    ways: dict[tuple[str, ...], dict[str, Sequence[Record]]] = {}
    for way, same in WAYS.of(records):
        if not is_variant(way["task"]):
            key = (way["task"], way["framing"], way["reading"])
            ways.setdefault(key, {})[way["model"]] = same
    for name, models in how.groups.items():
        for (task, framing, reading), of_models in sorted(ways.items()):
            members = [of_models[m] for m in models if m in of_models]
            if members:
                key = {"group": name, "task": task, "framing": framing, "reading": reading}
                yield key | {"n_models": len(members)} | _means(members, how)


def _means(members: Sequence[Sequence[Record]], how: SlrcAnalysis) -> dict[str, Any]:
    counts = [step_counts(same) for same in members]
    rng = np.random.default_rng(how.seed)
    values = _scores([c.sum(axis=0, keepdims=True) for c in counts])
    draws = _scores([stats.resampled_totals(c, rng, how.resamples) for c in counts])
    row: dict[str, Any] = {"n": sum(map(len, members))}
    for cell, (value,), of_draws in zip(OF_GROUPS, values, draws, strict=True):
        estimate = Estimate(float(value), *stats.percentiles(of_draws), row["n"])
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
        *aggregates.COUNTED.columns,
        *(c for cell in OF_GROUPS for c in cell.columns),
    ),
    aggregates.RECORDS,
    _of_groups,
    caption="Groups of models, each model counting once",
)
"""Mean necessity and sufficiency over the models of every group that `report.groups` names, and the
SLRC of these means.

The intervals are percentiles of a bootstrap over the items of every model, and ignore that other
models might have been chosen. The paper's row of small models fits SLRC of the means: .08 × (1 −
.76) = .019 and .55 × (1 − .14) = .473.
"""
