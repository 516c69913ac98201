"""Data -> traces -> probes -> tables and figures; the `faithscope` command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from interp.sources import register_scheme

if TYPE_CHECKING:
    from experiments.tables.frames import Run, load_run
    from experiments.traces import make_trace, make_traces, score_answer

__all__ = ["Run", "load_run", "make_trace", "make_traces", "score_answer"]


def _planted(name: str) -> Path:
    from experiments.planted import verified_path

    return verified_path(name)


register_scheme("planted", _planted)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'experiments' has no attribute {name!r}")
    from importlib import import_module

    home = "tables.frames" if name in ("Run", "load_run") else "traces"
    return getattr(import_module(f"experiments.{home}"), name)
