"""The tables of a run as files: CSV for machines, Markdown and LaTeX for readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from faithscope.experiments.analysis.textual import to_csv, to_latex, to_markdown
from faithscope.experiments.engine.folder import make_folder
from faithscope.experiments.engine.store import write_atomically
from faithscope.experiments.studies.slrc.tables.paper import paper_tables
from faithscope.experiments.studies.slrc.tables.results import Results


def write_tables(found: Results) -> None:
    """Write `tables/<name>.csv`, `.md` and `.tex` of a run.

    Beside them `paper_<name>`: the same numbers in the layout of the paper's tables.
    """
    laid_out = paper_tables(found.tables, found.sizes)
    write_each(
        found.run_dir,
        found.tables | {t.name: t.data for t in laid_out},
        {t.name: t.printed for t in laid_out},
    )


def write_each(
    run_dir: Path, tables: Mapping[str, pd.DataFrame], printed: Mapping[str, pd.DataFrame]
) -> None:
    """Write tables by name; `printed` has those that readers see in another form."""
    folder = make_folder(run_dir / "tables")
    for name, table in tables.items():
        for suffix, render in _RENDERERS.items():
            shown = table if suffix == ".csv" else printed.get(name, table)
            write_atomically(folder / f"{name}{suffix}", render(shown))


_RENDERERS: dict[str, Callable[[pd.DataFrame], str]] = {
    ".csv": to_csv,
    ".md": to_markdown,
    ".tex": to_latex,
}
