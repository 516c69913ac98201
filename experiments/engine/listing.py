"""Plain columns for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def total(table: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """A last row that sums every column from the third."""
    return ("total", "", *(sum(row[i] for row in table) for i in range(2, len(table[0]))))


def columns(table: Sequence[Sequence[Any]]) -> list[str]:
    """A line per row; the first two columns are names, the others numbers."""
    widths = [max(len(str(row[i])) for row in table) for i in range(len(table[0]))]
    return [
        "  ".join(
            str(cell).rjust(width) if i > 1 else str(cell).ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
