"""The tables of a run as files: CSV for machines, Markdown and LaTeX for readers."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from experiments.runs.folder import make_folder, read_environment
from experiments.runs.store import write_atomically
from experiments.tables.paper import paper_tables
from experiments.tables.results import Results
from experiments.tables.textual import to_csv, to_latex, to_markdown


def write_tables(found: Results) -> None:
    """Write `tables/<name>.csv`, `.md` and `.tex` of a run.

    Beside them `paper_<name>`: the same numbers in the layout of the paper's tables.
    """
    folder = make_folder(found.run_dir / "tables")
    laid_out = paper_tables(found.tables, read_environment(found.run_dir).get("models"))
    read = {t.name: t.printed for t in laid_out}
    for name, table in (found.tables | {t.name: t.data for t in laid_out}).items():
        for suffix, render in _RENDERERS.items():
            shown = table if suffix == ".csv" else read.get(name, table)
            write_atomically(folder / f"{name}{suffix}", render(shown))


_RENDERERS: dict[str, Callable[[pd.DataFrame], str]] = {
    ".csv": to_csv,
    ".md": to_markdown,
    ".tex": to_latex,
}
