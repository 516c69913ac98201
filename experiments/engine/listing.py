"""Tables as aligned plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def total(table: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """The last row of a table, with the sum of every column from the third on."""
    return ("total", "", *(sum(row[i] for row in table) for i in range(2, len(table[0]))))


def columns(table: Sequence[Sequence[Any]]) -> list[str]:
    """The lines of an aligned table, one per row; the first two columns are names, all others
    numbers."""
    widths = [max(len(str(row[i])) for row in table) for i in range(len(table[0]))]
    return [
        "  ".join(
            str(cell).rjust(width) if i > 1 else str(cell).ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
