"""Names of models that other packages give: `SCHEME:REST`. Cheap to import, without libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

SCHEMES: dict[str, Callable[[str], Path]] = {}
"""Scheme -> what gives the folder of a `REST`."""


def register_scheme(scheme: str, locate: Callable[[str], Path]) -> None:
    """Let `scheme:REST` name the folder that `locate(REST)` gives."""
    SCHEMES[scheme] = locate
