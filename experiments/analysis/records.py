"""Stored records as analyses read them, and what tells one from another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faithscope.experiments.config.api import API

Record = Mapping[str, Any]
"""One flat record, as stored."""
Place = tuple[str, str, str]
"""(model, task, item): what a trace, and all that was measured on it, is about."""


def has_tokens(trace: Record) -> bool:
    """Whether the ids of a trace are its model's tokens: behind an API they are characters."""
    return not trace["model"].startswith(API)


def place_of(record: Record) -> Place:
    return record["model"], record["task"], str(record["item"])
