"""The output files of a run: tables, figures, the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from faithscope.experiments.analysis.columns import Columns
from faithscope.experiments.analysis.page import Page, write_page
from faithscope.experiments.analysis.picture import Picture, save
from faithscope.experiments.analysis.textual import to_csv, to_latex, to_markdown
from faithscope.experiments.engine.provenance import made_by
from faithscope.experiments.files import make_folder, write_atomically


def write_outputs(
    page: Page,
    tables: Mapping[str, pd.DataFrame],
    printed: Mapping[str, pd.DataFrame],
    drawn: Iterable[Picture],
) -> Path:
    """Write the tables and figures of a run, and last its page; return the page's path.

    Args:
        printed: table -> another form of it, for Markdown and LaTeX only.
    """
    write_tables(page.run_dir, tables, page.columns_of, printed)
    folder = make_folder(page.run_dir / "figures")
    for picture in drawn:
        save(picture, folder)
    return write_page(replace(page, warnings=[*page.warnings, *made_by(page.run_dir)]))


def write_tables(
    run_dir: Path,
    tables: Mapping[str, pd.DataFrame],
    columns_of: Callable[[str], Columns],
    printed: Mapping[str, pd.DataFrame],
) -> None:
    """Write `tables/<name>.csv` for machines, `.md` and `.tex` for readers.

    Args:
        columns_of: gives the columns (label, unit, meaning) of a table by its name.
        printed: table -> another form of it, for Markdown and LaTeX only.
    """
    folder = make_folder(run_dir / "tables")
    for name, table in tables.items():
        write_atomically(folder / f"{name}.csv", to_csv(table))
        # a table in a paper's layout has the paper's headings
        columns = None if name in printed else columns_of(name)
        shown = printed.get(name, table)
        write_atomically(folder / f"{name}.md", to_markdown(shown, columns))
        write_atomically(folder / f"{name}.tex", to_latex(shown, columns))
