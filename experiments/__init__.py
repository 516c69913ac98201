"""Data -> traces -> probes -> tables and figures; the `faithscope` command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from interp.sources import register_scheme

if TYPE_CHECKING:
    from experiments.frames import Run, load_run

__all__ = ["Run", "load_run"]


def _planted(name: str) -> Path:
    from experiments.planted import verified_path

    return verified_path(name)


register_scheme("planted", _planted)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'experiments' has no attribute {name!r}")
    from experiments import frames

    return getattr(frames, name)
