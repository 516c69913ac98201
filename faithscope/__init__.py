"""Measures whether a language model uses the chain of thought it writes.

What a notebook needs stands here; the rooms are `faithscope.interp` (one open model),
`.interventions` (one reasoning trace), `.probes` (one measure per file) and `.experiments` (runs).
Names are imported when first used: torch and transformers take seconds.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.interp.errors import UserError
from faithscope.interp.schemes import register_scheme

if TYPE_CHECKING:
    from faithscope.experiments.c2faith.frames import C2Run
    from faithscope.experiments.interactive import measure, questions
    from faithscope.experiments.rfeval.frames import RfRun
    from faithscope.experiments.tables.frames import Run, load_run
    from faithscope.experiments.traces import make_trace, make_traces, score_answer
    from faithscope.interp.loading import load, load_language, wrap
    from faithscope.interp.model import Model

_HOMES = {
    "C2Run": "experiments.c2faith.frames",
    "Model": "interp.model",
    "RfRun": "experiments.rfeval.frames",
    "Run": "experiments.tables.frames",
    "load": "interp.loading",
    "load_language": "interp.loading",
    "load_run": "experiments.tables.frames",
    "make_trace": "experiments.traces",
    "make_traces": "experiments.traces",
    "measure": "experiments.interactive",
    "questions": "experiments.interactive",
    "score_answer": "experiments.traces",
    "wrap": "interp.loading",
}

__all__ = [
    "C2Run",
    "Model",
    "RfRun",
    "Run",
    "UserError",
    "load",
    "load_language",
    "load_run",
    "make_trace",
    "make_traces",
    "measure",
    "questions",
    "score_answer",
    "wrap",
]


def _planted(name: str) -> Path:
    from faithscope.experiments.planted import verified_path

    return verified_path(name)


register_scheme("planted", _planted)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'faithscope' has no attribute {name!r}")
    return getattr(import_module(f"faithscope.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
