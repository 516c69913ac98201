"""The documentation's page of columns, made of what studies declare: `python tools/columns.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import faithscope.experiments.studies  # noqa: F401, registers them
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.config.study import STUDIES

PAGE = Path(__file__).parents[1] / "docs" / "columns.md"
HEAD = """# Columns of the tables

This page is made by `python tools/columns.py` of what the studies declare; pages, Markdown and
LaTeX tables have the same headings, and CSV files the names.

Numbers are shares from 0 to 1 or counts where no unit stands with them. `<name>_low` and
`<name>_high` are the ends of the 95 % interval of `<name>`, `n_<name>` is a count. A column whose
name says all of it is in no list here.
"""


def _table(columns: Iterable[Column]) -> Iterator[str]:
    yield "| column | heading | what it is |"
    yield "| --- | --- | --- |"
    for column in columns:
        cells = (f"`{column.name}`", column.heading, column.meaning)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def text() -> str:
    """The page as it must stand in `docs`."""
    lines = [HEAD]
    for study in (s for s in STUDIES.values() if s.package.startswith("faithscope.")):
        part = study.part("columns")
        lines += [f"## {study.name}", "", *_table(part.COLUMNS.values()), ""]
        for table, columns in part.OF_TABLES.items():
            if columns:
                lines += [f"### `{table}`", "", *_table(columns.values()), ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
