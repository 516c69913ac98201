"""How much of a model's probability the labels of a scored reading have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.records import Record, place_of
from faithscope.experiments.analysis.statistics.stats import mean_of_items
from faithscope.experiments.analysis.tidy import columns, with_interval
from faithscope.probes import PROBES

LOW = "low_label_mass"
"""Why a scored reading does not count: nearly all of the probability goes to no label."""
SCORED = tuple(name for name, probe in PROBES.items() if probe.reads_labels)


def without_low_mass(records: Iterable[Record], least: float) -> list[Record]:
    """Marks those as excluded (`LOW`) whose labels have less; what they hold stays.

    Raw numbers lie in the run folder: another threshold needs no new run.
    """
    return [
        {**r, "excluded": LOW}
        if r["probe"] in SCORED and not r.get("excluded") and _is_below(r, least)
        else r
        for r in records
    ]


def label_mass_table(records: Iterable[Record]) -> pd.DataFrame:
    """A row per scored record: what its labels have together after the unedited reasoning.

    Of `direct`, of the reply to its prompt. Items that are left out for it are here, too.
    """
    kept = [r for r in records if r["probe"] in SCORED and _mass(r) is not None]
    kept.sort(key=lambda r: (place_of(r), SCORED.index(r["probe"]), r["variant"]))
    rows = [
        {"model": r["model"], "task": r["task"]}
        | {name: r[name] for name in ("probe", "variant", "item", "label_mass")}
        | {"left_out": r.get("excluded") == LOW}
        for r in kept
    ]
    names = ["model", "task", "probe", "variant", "item", "label_mass", "left_out"]
    return pd.DataFrame(rows, columns=names)


def _mass_of(same: Sequence[Record], analysis: kit.Analysis) -> dict[str, float | int]:
    estimate = mean_of_items(map(_mass, same), seed=analysis.seed, resamples=analysis.resamples)
    return columns("label_mass", estimate) | {"label_mass_n": estimate.n}


LABEL_MASS = kit.Stat((*with_interval("label_mass"), "label_mass_n"), _mass_of)
"""Mean `label_mass` of the items that were scored, and how many they are."""


def _is_below(record: Record, least: float) -> bool:
    mass = _mass(record)
    return mass is not None and mass < least


def _mass(record: Record) -> float | None:
    return record.get("label_mass")
