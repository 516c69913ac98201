"""What every page of ours is made of: tables that sort, drawings, assets, settings.

Whatever a model wrote is escaped and its control characters are made visible; a content
security policy admits no script but the one that sorts the tables, and no image but those that
stand in the page itself, as the cells of a heat map do.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from faithscope.experiments.analysis.picture import Picture, svg
from faithscope.experiments.analysis.textual import number, readable, visible
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.analysis.wording import model_order, percent

LONGEST = 24_000
"""Characters of one text of a model on a page; the records hold all of it."""


@dataclass(frozen=True)
class Cell:
    text: str
    sort: str
    """What the table is sorted by: a number in full, or the text."""
    interval: str = ""


@dataclass(frozen=True)
class HtmlTable:
    """A table ready for the template."""

    name: str
    heading: list[str]
    numeric: list[bool]
    rows: list[list[Cell]]


def render_page(template: str, **values: Any) -> str:
    """A template among the assets, with the style and the one script that it may run."""
    script = asset("report.js")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(asset),
    )
    environment.filters |= {"percent": percent, "number": number, "cut": shortened}
    environment.globals |= {
        "policy": policy(script),
        "script": Markup(script),
        "style": Markup(asset("report.css")),
    }
    return environment.get_template(template).render(**values)


def shortened(text: str, longest: int = LONGEST) -> str:
    """A text without its middle where it is longer, with a word on what is missing."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters not shown …]\n{text[-half:]}"


def html_table(
    name: str, table: pd.DataFrame, labels: Mapping[str, str], *, planted_first: bool = True
) -> HtmlTable:
    """A table for reading, with the numbers in full kept for sorting.

    Args:
        labels: column -> heading, where that is not the column's name with spaces.
        planted_first: models in `model_order`; without it rows stay as they are.
    """
    if planted_first and "model" in table:
        by_model = {"by": "model", "key": lambda column: column.map(model_order)}
        table = table.sort_values(**by_model, kind="stable")
    names, numeric, texts = readable(table)
    body = [
        [_cell(text, row[column]) for text, column in zip(line, names, strict=True)]
        for line, row in zip(texts, rows(table), strict=True)
    ]
    heading = [labels.get(n, n.replace("_", " ")) for n in names]
    return HtmlTable(name, heading, numeric, body)


def drawing(picture: Picture) -> dict[str, Any]:
    drawn = None if picture.figure is None else Markup(svg(picture))
    return {
        "title": picture.title,
        "caption": picture.caption,
        "absent": picture.absent,
        "svg": drawn,
        "name": picture.name,
    }


def _cell(text: str, value: Any) -> Cell:
    shown, bracket, interval = text.partition(" [")
    if isinstance(value, float):
        return Cell(shown, repr(value), f"{interval.removesuffix(']')}" if bracket else "")
    return Cell(text, "" if value is pd.NA else str(value))


def asset(name: str) -> str:
    folder = resources.files("faithscope.experiments.analysis").joinpath("assets")
    return folder.joinpath(name).read_text("utf-8")


def policy(script: str) -> str:
    """The content security policy of a page that runs this script: nothing else, no network.

    Drawings carry style attributes, which no hash can admit, hence `unsafe-inline` for styles.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Nested settings as dotted names and texts; lists of scalars on one line."""
    if isinstance(value, dict):
        return [pair for k, v in value.items() for pair in flat(v, f"{name}.{k}".lstrip("."))]
    if isinstance(value, list) and any(isinstance(v, dict | list) for v in value):
        return [pair for i, v in enumerate(value, 1) for pair in flat(v, f"{name} {i}")]
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return [(visible(name), "–" if value in (None, "") else visible(str(value)))]
