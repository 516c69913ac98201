"""Tiny language models whose use of their own reasoning is known by construction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from faithscope.experiments.data.planted.data import ANSWER_CUE, parse_answer
from faithscope.experiments.data.planted.questions import questions
from faithscope.experiments.data.planted.shipped import NAMES, path

if TYPE_CHECKING:
    from faithscope.experiments.data.planted.flips import flip_table
    from faithscope.experiments.data.planted.verification import verified_path, verify

__all__ = [
    "ANSWER_CUE",
    "NAMES",
    "flip_table",
    "parse_answer",
    "path",
    "questions",
    "verified_path",
    "verify",
]


def __getattr__(name: str) -> Any:
    """What loads models, and with them torch, is imported when it is first asked for."""
    if name == "flip_table":
        from faithscope.experiments.data.planted.flips import flip_table

        return flip_table
    if name in ("verify", "verified_path"):
        from faithscope.experiments.data.planted import verification

        return getattr(verification, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
