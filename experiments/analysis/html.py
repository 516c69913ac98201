"""HTML of a page: cells, tables, escaping, and the policy of what the page may load and run.

Text that a model wrote is escaped, and its control characters are made visible. A content security
policy admits no script but the one that sorts the tables, and no image but those embedded in the
page, such as the cells of a heat map.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from faithscope.experiments.analysis.colours import style_of_pages
from faithscope.experiments.analysis.columns import Columns, named
from faithscope.experiments.analysis.picture import svg
from faithscope.experiments.analysis.textual import number, readable
from faithscope.experiments.analysis.tidy import rows, with_interval
from faithscope.experiments.numerals import decimal, interval, percent, percent_interval
from faithscope.interp.plain import visible

LONGEST = 24_000
"""Most characters of one model text on a page; the records hold the whole text."""


@dataclass(frozen=True)
class Cell:
    """One table cell; a plain `str` as its text is escaped, `Markup` is taken as HTML."""

    text: str
    sort: str
    """The sort key of the cell: a number with all digits, or the text."""
    interval: str = ""
    share: float | None = None
    """A share from 0 to 1, drawn as a bar; NaN is an unknown share, without a bar."""


@dataclass(frozen=True)
class HtmlTable:
    """A table ready for the template."""

    heading: Sequence[str]
    numeric: Sequence[bool]
    rows: Sequence[Sequence[Cell]]
    file: str = ""
    """Name of the table's file in `tables/`; empty for a table that is only on the page."""
    meanings: Sequence[str] = ()
    """One line of meaning per column, shown under the pointer; empty where there is none."""
    css: str = "sortable"
    """`sortable`; `sortable verdicts` for few wide rows; empty for a plain table whose first
    column names the rows."""


def markup(template: str, *values: object) -> Markup:
    """Trusted HTML with `{}` for each value; values are escaped unless they are `Markup`."""
    return Markup(template).format(*map(shown, values))


def shown(value: object) -> Any:
    """`value`, with the control and reordering characters of a text made visible."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return value if value.isprintable() else visible(value)


def shortened(text: str, longest: int = LONGEST) -> str:
    """Cuts the middle out of a text longer than `longest`, and says how much is missing."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters not shown …]\n{text[-half:]}"


def html_table(
    table: pd.DataFrame,
    columns: Columns,
    file: str = "",
) -> HtmlTable:
    """A table with rounded numbers for reading and unrounded ones for sorting.

    Args:
        columns: labels, units and meanings of the columns that have any.
    """
    names, numeric, texts = readable(table)
    body = [
        [_cell(text, row[column]) for text, column in zip(line, names, strict=True)]
        for line, row in zip(texts, rows(table), strict=True)
    ]
    of = [named(columns, name) for name in names]
    return HtmlTable([c.heading for c in of], numeric, body, file, [c.meaning for c in of])


def table_of(
    heading: Sequence[str], lines: Sequence[Sequence[Any]], css: str = "sortable"
) -> HtmlTable:
    """A table of plain values: numbers with three decimals, a dash for None, texts, and `Cell`s as
    they are. A column with a number in it is numeric."""
    numeric = [any(isinstance(line[i], float) for line in lines) for i in range(len(heading))]
    cells = [[x if isinstance(x, Cell) else _plain_cell(x) for x in line] for line in lines]
    return HtmlTable(heading, numeric, cells, css=css)


def _plain_cell(value: Any) -> Cell:
    text = value if isinstance(value, str) else number(value)
    return Cell(text, "" if value is None else text if value is text else repr(value))


def _cell(text: str, value: Any) -> Cell:
    shown_number, _, ends = text.partition(" [")
    if isinstance(value, float):
        sort = shown_number if math.isnan(value) else f"{value:.7g}"
        return Cell(shown_number, sort, ends.removesuffix("]"))
    return Cell(text, "" if value is pd.NA or value is None else str(value))


def share_cell(value: float, low: float = math.nan, high: float = math.nan) -> Cell:
    """A cell with a share as percentage and bar, and its interval if known."""
    if math.isnan(value):
        return Cell("–", "", share=value)
    return Cell(percent(value), repr(value), percent_interval(low, high), value)


def estimate_cell(value: float, low: float = math.nan, high: float = math.nan) -> Cell:
    """A cell with a number of two decimals, and its interval if known."""
    sort = "" if math.isnan(value) else repr(value)
    return Cell(decimal(value), sort, interval(low, high).strip("[]"))


def share_of(row: Mapping[str, Any], name: str) -> Cell:
    """A cell with the share in column `name` of a row, and its interval if the row has one."""
    return share_cell(*(row.get(column, math.nan) for column in with_interval(name)))


def asset(name: str, package: str = "faithscope.experiments.analysis") -> str:
    """The text of a template, a script or a style sheet in the folder `assets` of a package."""
    return resources.files(package).joinpath("assets", name).read_text("utf-8")


def style(*more: str, package: str = "faithscope.experiments.analysis") -> str:
    """The CSS of a page: its colours, the style of all pages, and more style sheets."""
    return style_of_pages() + asset("report.css") + "".join(asset(name, package) for name in more)


@cache  # an environment keeps its compiled templates; compiling one takes a tenth of a second
def environment() -> Environment:
    """The Jinja environment of all pages: their style, and the one script that they may run."""
    script = asset("steps.js") + asset("report.js")
    jinja = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
        loader=FunctionLoader(asset),
    )
    jinja.filters["cut"] = shortened
    jinja.tests["a"] = lambda block, name: type(block).__name__ == name
    jinja.globals |= {
        "policy": policy(script),
        "unknown": _unknown,
        "script": Markup(script),
        "style": Markup(style()),
        "svg": lambda picture: Markup(svg(picture)),
    }
    return jinja


def _unknown(block: object) -> None:
    raise TypeError(f"{type(block).__name__} is no block of a page")


def policy(script: str) -> str:
    """The content security policy of a page that may run only this script, without network access.

    Drawings carry style attributes, which no hash can admit, hence `unsafe-inline` for styles.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
