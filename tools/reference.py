"""Maker of the documentation's pages of config keys and columns: `python tools/reference.py`.

The pages are made from the code's declarations; a test checks that they are up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import faithscope.experiments.studies  # noqa: F401, registers them
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.run import Report
from faithscope.experiments.config.errors import shown
from faithscope.experiments.config.study import STUDIES, Study
from faithscope.experiments.studies.rfeval.subjects.model_files import ModelFile

DOCS = Path(__file__).parents[1] / "docs"
MADE = "This page is made by `python tools/reference.py`"
COLUMNS = f"""# Columns of the tables

{MADE} of what the studies declare.
Pages, Markdown and LaTeX tables have the headings, CSV files the names.

Numbers are shares from 0 to 1 or counts where no unit stands with them. `<name>_low` and
`<name>_high`, which are in no list here, are the ends of the 95 % interval of `<name>`. An interval
of fewer than five outcomes, or one from drawing fewer than five items or questions, is empty. What
stands under the name of a table holds there instead of what stands under its study. A column of a
table of a paper that is called as a task, a group of tasks or a model has the value of that one.
"""
KEYS = f"""# Keys of a config

{MADE} of the classes that check configs. A key is set in the YAML file or with `--set KEY=VALUE`.
"""


def _studies() -> Iterator[Study]:
    # leaves out a study that only the tests register
    return (s for s in STUDIES.values() if s.config().__module__.startswith("faithscope."))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _of_columns(columns: Iterable[Column]) -> Iterator[str]:
    rows = [(f"`{c.name}`", c.heading, c.meaning) for c in columns]
    return _table(("column", "heading", "what it is"), rows)


def columns() -> str:
    """Text of the page of columns in `docs`."""
    lines = [COLUMNS, "## All studies", "", *_of_columns(SHARED.values())]
    for study in _studies():
        report: Report = study.report()
        lines += [f"## {study.name}", "", *_of_columns(report.columns.values())]
        alike: dict[tuple[Column, ...], list[str]] = {}
        for table, own in report.columns_of.items():
            alike.setdefault(tuple(own.values()), []).append(f"`{table}`")
        for own, tables in alike.items():
            if own:
                lines += [f"### {', '.join(tables)}", "", *_of_columns(own)]
    return "\n".join(lines).rstrip() + "\n"


def _kinds(annotation: Any) -> Iterator[str]:
    """The types that a value may have, in words."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        yield from (f"`{value}`" for value in args)
    elif origin in (Union, UnionType):
        for arg in args:
            yield from _kinds(arg)
    elif origin is Annotated:
        yield from _kinds(args[0])
    elif origin in (list, tuple):
        yield f"list of {', '.join(_kinds(args[0]))}"
    elif origin is dict:
        yield "mapping"
    elif isinstance(annotation, type):
        words = {"NoneType": "null", "int": "whole number", "float": "number", "str": "text"}
        words |= {"bool": "true or false"}
        yield words.get(annotation.__name__, "mapping")


def _default(field: FieldInfo) -> str:
    if field.default is not PydanticUndefined:
        return f"`{_value(field.default)}`"
    factory: Any = field.default_factory
    if factory is None:
        return "must be given"
    return (
        "by the model" if field.default_factory_takes_validated_data else f"`{_value(factory())}`"
    )


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value) if isinstance(value, str) else shown(value)


def _keys(kind: type[BaseModel], place: str = "") -> Iterator[tuple[str, str, str, str]]:
    for name, field in kind.model_fields.items():
        key = f"{place}{name}"
        if name in getattr(kind, "OF_A_CALL", ()):
            continue
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys(field.annotation, f"{key}.")
            continue
        may_be = ", ".join(dict.fromkeys(_kinds(field.annotation)))
        yield f"`{key}`", may_be, _default(field), re.sub(r"\s+", " ", field.description or "")


def keys() -> str:
    """Text of the page of config keys in `docs`."""
    head = ("key", "may be", "without it", "what it decides")
    lines = [KEYS]
    for study in _studies():
        named = "no `benchmark:`" if study.unnamed else f"`benchmark: {study.name}`"
        lines += [f"## {study.name} ({named})", "", *_table(head, _keys(study.config()))]
    lines += ["## A model file of RFEval (`model.profiles`)", "", *_table(head, _keys(ModelFile))]
    return "\n".join(lines).rstrip() + "\n"


PAGES = {"columns.md": columns, "configuration.md": keys}

if __name__ == "__main__":
    for page, text in PAGES.items():
        (DOCS / page).write_text(text(), encoding="utf-8")
