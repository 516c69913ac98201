"""Reader of a paper's printed cells: one CSV file per paper, a row per cell.

    table,KEY…,column,value,unit,decimals,n,section,doubt

KEY… are the paper's own key columns, which hold names as printed and are empty where a table has no
such key. A cell without a value is one whose number is lost; its `doubt` says how.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from faithscope.interp.errors import UserError, did_you_mean

T = TypeVar("T", int, float)
BEFORE, AFTER = ("table",), ("column", "value", "unit", "decimals", "n", "section", "doubt")
"""Columns before and after the key columns."""
UNITS = ("%", "pp", "", "n", "word", "hours", "dollars", "tokens")
"""Units of a cell; of `%` and `pp`, our share is multiplied by 100, and `n` is a count of cases."""


@dataclass(frozen=True)
class Cell:
    """One printed number or word."""

    table: str
    keys: Mapping[str, str]
    """Key column -> name as printed, without those that the table does not have."""
    column: str
    """The paper's heading of the measure."""
    value: float | str | None
    """The printed number, or word; None where the paper's text has lost it."""
    unit: str
    decimals: int
    """Number of printed decimals."""
    n: int | None
    """Number of cases behind the cell, if the paper gives it."""
    section: str
    doubt: str
    """Sentence that says why the cell cannot be trusted; empty where nothing speaks against it."""

    @property
    def scale(self) -> int:
        """Factor from our shares, which are fractions of 1, to the printed unit."""
        return 100 if self.unit in ("%", "pp") else 1

    @property
    def place(self) -> tuple[str, ...]:
        """What identifies the cell within its paper."""
        return (self.table, *(f"{key}={name}" for key, name in self.keys.items()), self.column)


def read_cells(path: Path) -> list[Cell]:
    """The printed cells of a paper, in the order of the file.

    Raises:
        UserError: the file is missing or a row is not of the documented form; names the line.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: published cells cannot be read ({error})") from error
    lines = csv.reader(text.splitlines())
    header = tuple(next(lines, ()))
    if header[:1] != BEFORE or header[-len(AFTER) :] != AFTER:
        wanted = ",".join([*BEFORE, "KEY…", *AFTER])
        raise UserError(f"{path}: its columns are {','.join(header)!r} and should be {wanted!r}")
    cells: dict[tuple[str, ...], Cell] = {}
    for values in lines:
        where = f"{path}:{lines.line_num}"
        if len(values) != len(header):
            raise UserError(f"{where}: has {len(values)} values for {len(header)} columns")
        cell = _cell(where, dict(zip(header, values, strict=True)), header)
        if cell.place in cells:
            raise UserError(f"{where}: is the second row of cell {', '.join(cell.place)}")
        cells[cell.place] = cell
    return list(cells.values())


def _cell(where: str, row: dict[str, str], header: tuple[str, ...]) -> Cell:
    keys = {key: row[key] for key in header[len(BEFORE) : -len(AFTER)] if row[key]}
    unit = row["unit"]
    if unit not in UNITS:
        known = did_you_mean(unit, UNITS) or f"; known: {', '.join(u or '(empty)' for u in UNITS)}"
        raise UserError(f"{where}: unknown unit {unit!r}{known}")
    for name in ("table", "column"):
        if not row[name]:
            raise UserError(f"{where}: column {name!r} is empty")
    if not row["value"] and not row["doubt"]:
        raise UserError(f"{where}: a cell without a value needs a doubt that says where it is lost")
    value: float | str | None = row["value"] or None
    if value is not None and unit != "word":
        value = _number(where, row, "value", float)
    return Cell(
        row["table"],
        keys,
        row["column"],
        value,
        unit,
        _number(where, row, "decimals", int) or 0,
        _number(where, row, "n", int),
        row["section"],
        row["doubt"],
    )


def _number(where: str, row: dict[str, str], name: str, kind: type[T]) -> T | None:
    try:
        return kind(row[name]) if row[name] else None
    except ValueError:
        what = "whole number" if kind is int else "number with a point"
        raise UserError(f"{where}: {name} {row[name]!r} is no {what}") from None
