"""Frames and results of a training run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import pandas as pd

from faithscope.experiments.analysis.run import Frame, Run
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.studies.training.config import METHODS, TrainConfig
from faithscope.experiments.studies.training.stages import BATTERY, MEASURING, TRAINING
from faithscope.experiments.studies.training.tables import (
    BESIDE,
    BOUND,
    COUNTED,
    MEASURED,
    STEP,
    TABLES,
)
from faithscope.experiments.studies.training.units import ADAPTERS

_METHOD = {"method": "what the model was trained for; `start` is before training"}
_SCORES = {"measure": "measures", "family": "families", "value": "values", "missing": "missing"}
"""Column of the frame -> list in a record with an entry for each measure."""


def _scores(record: Record) -> Iterator[Mapping[str, Any]]:
    for score in zip(*(record[name] for name in _SCORES.values()), strict=True):
        row = {**record, "method": record["variant"], **dict(zip(_SCORES, score, strict=True))}
        of = dict(zip(record["measures"], record["values"], strict=True))
        yield row | {name: of[name] for name in BESIDE}


def _with_method(record: Record) -> Iterator[Mapping[str, Any]]:
    yield {**record, "method": record["variant"]}


FRAMES = (
    Frame(
        "training",
        "A row per step of a training: rewards, guards and the bound.",
        _METHOD
        | {"step": "number of the step, from 0"}
        | {c.name: c.meaning for c in (*STEP, *COUNTED, *BOUND)},
        _with_method,
        (TRAINING,),
    ),
    Frame(
        "battery",
        "A row per adapter of a planted model: what its answer follows after training.",
        _METHOD | {c.name: c.meaning for c in MEASURED},
        _with_method,
        (BATTERY,),
    ),
    Frame(
        "measured",
        "A row per adapter, trace and measure, by the run that measured the adapter; `start` is "
        "before training.",
        _METHOD
        | {
            "measure": "name of the measure",
            "family": "what it is read off; `trace` for what became of the chains themselves",
            "value": "the score; NaN where it is missing",
            "missing": "why there is no value; empty where there is one",
            "trained_on": "whether the adapters of the model are trained on the question",
        }
        | {name: f"`{name}` of the same trace" for name in BESIDE},
        _scores,
        (MEASURING,),
    ),
)


@dataclass(frozen=True)
class Results:
    """What a training run came to."""

    run: Run

    @cached_property
    def config(self) -> TrainConfig:
        """The resolved config of the run."""
        return cast(TrainConfig, self.run.config)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables of the run, by file name; methods stand in the order of `METHODS`."""
        how = self.run.bootstrap(self.config.seed, self.config.report.bootstrap)
        frames = {frame.name: _in_order(getattr(self.run, frame.name)) for frame in FRAMES}
        return make_tables(TABLES, frames, how)

    @property
    def adapters(self) -> list[str]:
        """Folders of the finished adapters, in order, as `model.name` takes them."""
        folder = self.run.path / ADAPTERS
        return sorted(str(p.parent) for p in folder.rglob("adapter_config.json"))


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sort_values(
        ["model", "method", "seed"],
        kind="stable",
        key=lambda of: of.map(list(METHODS).index) if of.name == "method" else of,
    )
