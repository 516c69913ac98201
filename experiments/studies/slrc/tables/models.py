"""Every model as one row: its scores as means over its tasks, open and closed models alike.

The scores of the SLRC paper's Figure 3 (3.1), with what 3.2 holds them against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tidy import columns, with_interval
from faithscope.experiments.config.api import API
from faithscope.experiments.studies.slrc.measures.slice import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.capacity import step_counts
from faithscope.experiments.studies.slrc.tables.integrity import ris
from faithscope.experiments.studies.slrc.tables.outcomes import is_variant, measured
from faithscope.probes.framing import FRAMINGS, READINGS

SCORES = (
    "accuracy",
    "direct_accuracy",
    "slrc",
    "sycophancy",
    "error_detection",
    "false_alarm",
    "youden",
    "ris",
)


KINDS = ("necessary", "sufficient", "right", "agrees", "detected", "alarmed", "direct")
"""What is counted of an item: successes and trials of each."""
_SIZES = ("parameters", "active_parameters")
_OF_TASKS = {
    "n_sycophancy_tasks": "agrees",
    "n_error_tasks": "detected",
    "n_direct_tasks": "direct",
}


def models_table(records: Sequence[Record], analysis: SlrcAnalysis) -> pd.DataFrame:
    """A row per model, framing and reading in which its SLRC was measured.

    Every score is the mean over the tasks that measured it, each task counting once (3.1); a
    task in other words (`sst2:alternative`) is no task of its own. The intervals are percentiles
    of a bootstrap that draws the items of every task: they leave out that the tasks might have
    been others.

    Sycophancy, error detection and direct answers know no framing: each framing of a model has
    those of its reading.
    """
    records = [r for r in records if not is_variant(r["task"])]
    slrc: dict[tuple[str, str, str], list[Record]] = {}
    for r in measured(records):
        slrc.setdefault((r["model"], r["framing"], r["reading"]), []).append(r)
    asked: dict[tuple[str, str], list[Record]] = {}
    for probe in ("sycophancy", "error_detection", "direct"):
        for _, same in kit.grouped(probe).of(records):
            for r in same:
                if probe != "direct" or r["prompt"] == analysis.taxonomy.prompt:
                    asked.setdefault((r["model"], r["reading"]), []).append(r)
    found = []
    for model, framing, reading in sorted(slrc, key=_rank):
        size = analysis.sizes.get(model, {})
        found.append(
            {"model": model, "framing": framing, "reading": reading}
            | {"open": not model.startswith(API)}
            | {x: size.get(x) for x in _SIZES}
            | _row(slrc[model, framing, reading], asked.get((model, reading), []), analysis)
        )
    names = ["model", "framing", "reading", "open", "n_tasks", "n", *with_interval(*SCORES)]
    table = pd.DataFrame(found, columns=[*names, "tasks", *_OF_TASKS, *_SIZES])
    return table.astype(dict.fromkeys(_SIZES, "Int64"))


def _rank(way: tuple[str, str, str]) -> tuple[str, int, int]:
    model, framing, reading = way
    return model, FRAMINGS.index(framing), READINGS.index(reading)


def _row(slrc: list[Record], asked: list[Record], analysis: kit.Analysis) -> dict[str, Any]:
    counts = dict(sorted(_counts([*slrc, *asked]).items()))
    of_tasks = list(counts.values())
    measured_on = {
        kind: [task for task, c in counts.items() if c[:, 2 * i + 1].any()]
        for i, kind in enumerate(KINDS)
    }
    tasks = [t for t in measured_on["necessary"] if t in measured_on["sufficient"]]
    rng = np.random.default_rng(analysis.seed)
    values = _scores([c.sum(axis=0, keepdims=True) for c in of_tasks])
    drawn = _scores([stats.resampled_totals(c, rng, analysis.resamples) for c in of_tasks])
    row: dict[str, Any] = {"tasks": " ".join(tasks), "n_tasks": len(tasks), "n": len(slrc)}
    row |= {name: len(measured_on[kind]) for name, kind in _OF_TASKS.items()}
    for name in SCORES:
        bounds = stats.percentiles(drawn[name])
        row |= columns(name, Estimate(float(values[name][0]), *bounds, len(of_tasks)))
    return row


def _counts(records: Iterable[Record]) -> dict[str, np.ndarray]:
    """Of every task an array (items, counts); zeros where an item was not measured."""
    items: dict[str, dict[str, list[int]]] = {}
    for r in records:
        row = items.setdefault(r["task"], {}).setdefault(str(r["item"]), [0] * 2 * len(KINDS))
        if r["probe"] == "slrc":
            row[:6] = *step_counts(r), bool(r["correct"]), r["correct"] is not None
        elif r["probe"] == "sycophancy":
            row[6:8] = bool(r["agrees_wrong"]), 1
        elif r["probe"] == "error_detection":
            row[8:12] = bool(r["detected"]), 1, bool(r["false_alarm"]), 1
        else:
            row[12:] = bool(r["correct"]), r["correct"] is not None
    return {t: np.array([of_task[i] for i in sorted(of_task)]) for t, of_task in items.items()}


def _scores(totals: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Of totals (draws, counts) per task, the mean over tasks of each score (draws,)."""
    of_tasks = [dict(zip(KINDS, stats.over(t[:, 0::2], t[:, 1::2]).T, strict=True)) for t in totals]

    def mean(of_task: Callable[[Mapping[Any, np.ndarray]], np.ndarray]) -> np.ndarray:
        values = np.stack([of_task(shares) for shares in of_tasks])
        return stats.over(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))

    found = {
        "accuracy": mean(lambda s: s["right"]),
        "direct_accuracy": mean(lambda s: s["direct"]),
        "slrc": mean(lambda s: s["necessary"] * (1 - s["sufficient"])),
        "sycophancy": mean(lambda s: s["agrees"]),
        "error_detection": mean(lambda s: s["detected"]),
        "false_alarm": mean(lambda s: s["alarmed"]),
        "youden": mean(lambda s: s["detected"] - s["alarmed"]),
    }
    return found | {"ris": ris(found["slrc"], found["sycophancy"])}
