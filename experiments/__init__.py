"""Data -> traces -> probes -> tables and figures; the `faithscope` command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from faithscope.experiments import studies

if TYPE_CHECKING:
    from faithscope.experiments.studies.compare.api import compare

__all__ = ["compare", "studies"]


def __getattr__(name: str) -> Any:
    if name != "compare":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # not at the top: scikit-learn comes with it, which no other command needs at its start
    from faithscope.experiments.studies.compare.api import compare

    return compare
