"""Schemes of model names (`SCHEME:REST`) that other packages register. Cheap to import."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Scheme:
    """A scheme of models that are named `SCHEME:REST`."""

    locate: Callable[[str], Path]
    """Function from a `REST` to the folder of its weights."""
    models: Callable[[], Mapping[str, str]]
    """Function that returns every `REST` with one line that describes it."""


SCHEMES: dict[str, Scheme] = {}


def register_scheme(scheme: str, entry: Scheme) -> None:
    """Let `scheme:REST` name the folder that `entry.locate(REST)` gives."""
    SCHEMES[scheme] = entry
