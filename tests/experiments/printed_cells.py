"""The cells that a paper prints, read from the file of published cells that is packaged with a
study."""

from __future__ import annotations

import csv
from importlib import resources

Cell = dict[str, str]


def printed(study: str, table: str = "", **keys: str) -> list[Cell]:
    """The cells of a study's paper; of one table, or with these keys, if they are given."""
    file = resources.files(f"faithscope.experiments.studies.{study}") / "paper.csv"
    with file.open(encoding="utf-8", newline="") as text:
        cells = list(csv.DictReader(text, strict=True))
    wanted = keys | ({"table": table} if table else {})
    return [c for c in cells if all(c[key] == value for key, value in wanted.items())]


def value(cell: Cell) -> float:
    """The number in our unit: a share where the paper prints percent."""
    return float(cell["value"]) / (100 if cell["unit"] in ("%", "pp") else 1)


def half_unit(cell: Cell) -> float:
    """Half a unit of the last printed decimal, in our unit: the most that rounding changed."""
    return 0.5 * 10 ** -int(cell["decimals"]) / (100 if cell["unit"] in ("%", "pp") else 1)
