"""Names of models that other packages give: `SCHEME:REST`. Cheap to import, without libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Scheme:
    """Models that are named `SCHEME:REST`."""

    locate: Callable[[str], Path]
    """Gives the folder of a `REST`."""
    models: Callable[[], Mapping[str, str]]
    """Gives every `REST` with a line on what it is."""


SCHEMES: dict[str, Scheme] = {}


def register_scheme(scheme: str, entry: Scheme) -> None:
    """Let `scheme:REST` name the folder that `entry.locate(REST)` gives."""
    SCHEMES[scheme] = entry
