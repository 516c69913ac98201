"""Tables as text: CSV, Markdown and LaTeX.

CSV keeps every column, with six decimals. Markdown and LaTeX are for reading: columns have their
labels as headings, three decimals, and `x`, `x_low`, `x_high` in one cell.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from faithscope.experiments.analysis.columns import Columns, named
from faithscope.experiments.numerals import DASH, decimal, estimate
from faithscope.interp.plain import as_cell, visible

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "–": "--",
        "−": "$-$",
        "∞": r"$\infty$",
        "\n": " ",
    }
)


def to_csv(table: pd.DataFrame) -> str:
    """A table as CSV: floats with six decimals, missing values empty, and no text that a
    spreadsheet would take for a formula (`interp.plain.as_cell`)."""
    fixed = table.copy()
    for name in fixed.select_dtypes("floating"):
        # Adding 0.0 turns a rounded -0.0 into 0.0.
        fixed[name] = fixed[name].round(6) + 0.0
    for name in fixed.columns.difference(fixed.select_dtypes("number").columns):
        fixed[name] = fixed[name].map(_csv_cell)
    return fixed.to_csv(index=False, float_format="%.6f", lineterminator="\n")


def _csv_cell(value: Any) -> Any:
    if not isinstance(value, str):
        return as_cell(value)
    # a carriage return alone would end the row: it is not quoted
    return as_cell(value.replace("\r\n", "\n").replace("\r", "\n"))


def to_markdown(table: pd.DataFrame, columns: Columns | None = None) -> str:
    """A Markdown pipe table, numbers aligned right, and below it the meanings of its columns.

    Args:
        columns: labels for the headings; None = the column names.
    """
    names, numeric, rows = readable(table)
    rule = ["---:" if right else "---" for right in numeric]
    body = [[_markdown(cell) for cell in row] for row in rows]
    header = [_markdown(heading) for heading in _headings(names, columns)]
    lines = [f"| {' | '.join(line)} |\n" for line in [header, rule, *body]]
    known = [named(columns, name) for name in names] if columns is not None else []
    meanings = [f"- {_markdown(c.heading)}: {_markdown(c.meaning)}\n" for c in known if c.meaning]
    return "".join([*lines, *(["\n"] if meanings else []), *meanings])


def to_latex(table: pd.DataFrame, columns: Columns | None = None) -> str:
    r"""A LaTeX `tabular` with booktabs rules; the document needs `\usepackage{booktabs}`.

    Args:
        columns: labels for the headings; None = the column names.
    """
    names, numeric, rows = readable(table)
    header = _headings(names, columns)
    lines = [
        rf"\begin{{tabular}}{{{''.join('r' if right else 'l' for right in numeric)}}}",
        r"\toprule",
        _latex_row(header),
        r"\midrule",
        *map(_latex_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def readable(table: pd.DataFrame) -> tuple[list[str], list[bool], list[list[str]]]:
    """Column names, which of them hold numbers, and the rows as text for people."""
    names = [
        str(c)
        for c in table.columns
        if not (_is_bound(str(c), "_low", table) or _is_bound(str(c), "_high", table))
    ]
    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in names]
    cells = [_cells(table, name) for name in names]
    return names, numeric, [list(row) for row in zip(*cells, strict=True)]


def _headings(names: list[str], columns: Columns | None) -> list[str]:
    return names if columns is None else [named(columns, name).heading for name in names]


def number(value: Any) -> str:
    """A number for people: three decimals, ∞, and a dash for what was not measured."""
    if value is pd.NA or value is None:
        return DASH
    return decimal(value, 3) if isinstance(value, float) else str(value)


def _is_bound(name: str, ending: str, table: pd.DataFrame) -> bool:
    return name.endswith(ending) and name.removesuffix(ending) in table.columns


def _cells(table: pd.DataFrame, name: str) -> list[str]:
    values = table[name].tolist()
    if f"{name}_low" not in table.columns:
        return [visible(v) if isinstance(v, str) else number(v) for v in values]
    low, high = table[f"{name}_low"].tolist(), table[f"{name}_high"].tolist()
    return [estimate(v, a, b, 3) for v, a, b in zip(values, low, high, strict=True)]


def _markdown(cell: str) -> str:
    escaped = cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
    return escaped.replace("<", "&lt;")


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"
