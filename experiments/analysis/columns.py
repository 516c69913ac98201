"""A column of tables, declared once: CSV header, headings, tooltip and documentation have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """What a column is called, and what stands in it."""

    name: str
    """In code and in CSV."""
    label: str = ""
    """For people; the name with spaces where empty."""
    meaning: str = ""
    """One line: how the number is made, and what it says."""
    unit: str = ""
    """Empty for a share from 0 to 1, a count, and a text."""

    @property
    def heading(self) -> str:
        label = self.label or self.name.replace("_", " ")
        return f"{label} ({self.unit})" if self.unit else label


Columns = Mapping[str, Column]
"""By name."""


def by_name(columns: Iterable[Column]) -> dict[str, Column]:
    return {column.name: column for column in columns}


def named(columns: Columns, name: str) -> Column:
    """A column that was declared, or one that has nothing but its name."""
    return columns.get(name) or Column(name)
