"""Measures whether a language model uses the chain of thought it writes.

What a notebook needs stands here; the rooms are `faithscope.interp` (one open model),
`.interventions` (one reasoning trace), `.probes` (one measure per file) and `.experiments` (runs).
Names are imported when first used: torch and transformers take seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope import _rooms  # noqa: F401, must be first: it finds the others
from faithscope.interp.errors import UserError
from faithscope.interp.schemes import Scheme, register_scheme
from faithscope.interventions.trace import Trace as _Trace

if TYPE_CHECKING:
    from faithscope import plot
    from faithscope.experiments.analysis.exports.hub_dataset import push, to_dataset
    from faithscope.experiments.analysis.run import Run, load_run
    from faithscope.experiments.data.traces import (
        TraceSettings,
        make_trace,
        make_traces,
        score_answer,
    )
    from faithscope.experiments.engine.traces.interactive import (
        given_traces,
        inject,
        measure,
        questions,
    )
    from faithscope.experiments.studies.compare.api import compare
    from faithscope.interp.directions import Direction, load_directions, save_directions
    from faithscope.interp.loading import load, load_language, wrap
    from faithscope.interp.model import Model

_HOMES = {
    "Direction": "interp.directions",
    "Model": "interp.model",
    "Run": "experiments.analysis.run",
    "TraceSettings": "experiments.data.traces",
    "compare": "experiments.studies.compare.api",
    "given_traces": "experiments.engine.traces.interactive",
    "inject": "experiments.engine.traces.interactive",
    "load": "interp.loading",
    "load_directions": "interp.directions",
    "load_language": "interp.loading",
    "load_run": "experiments.analysis.run",
    "make_trace": "experiments.data.traces",
    "make_traces": "experiments.data.traces",
    "measure": "experiments.engine.traces.interactive",
    "push": "experiments.analysis.exports.hub_dataset",
    "questions": "experiments.engine.traces.interactive",
    "save_directions": "interp.directions",
    "score_answer": "experiments.data.traces",
    "to_dataset": "experiments.analysis.exports.hub_dataset",
    "wrap": "interp.loading",
}

__all__ = [
    "Direction",
    "Model",
    "Run",
    "TraceSettings",
    "UserError",
    "compare",
    "given_traces",
    "inject",
    "load",
    "load_directions",
    "load_language",
    "load_run",
    "make_trace",
    "make_traces",
    "measure",
    "plot",
    "push",
    "questions",
    "save_directions",
    "score_answer",
    "to_dataset",
    "wrap",
]


def _planted(name: str) -> Path:
    from faithscope.experiments.data.planted.verification import verified_path

    return verified_path(name)


def _plants() -> dict[str, str]:
    from faithscope.experiments.data.planted.plants import PLANTS

    return {name: plant.summary for name, plant in PLANTS.items()}


register_scheme("planted", Scheme(_planted, _plants))


def _drawn(trace: _Trace, records: Sequence[dict[str, Any]] = ()) -> str:
    from faithscope.experiments.studies.slrc.drawing import html

    return html(trace, records)


_Trace.drawing = _drawn


def __getattr__(name: str) -> Any:
    if name == "plot":
        return import_module("faithscope.plot")
    if name not in _HOMES:
        raise AttributeError(f"module 'faithscope' has no attribute {name!r}")
    return getattr(import_module(f"faithscope.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, "experiments", "interp", "interventions", "probes"})
