"""The output files of a run: tables, figures, the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pandas as pd

from faithscope.experiments.analysis.columns import Columns
from faithscope.experiments.analysis.failures import Failures
from faithscope.experiments.analysis.page import Page, render
from faithscope.experiments.analysis.picture import Picture, save
from faithscope.experiments.analysis.textual import to_csv, to_latex, to_markdown
from faithscope.experiments.console import say_warnings
from faithscope.experiments.files import make_folder, write_atomically


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


def write_figures(run_dir: Path, drawn: Iterable[Picture], failed: Failures) -> list[Picture]:
    """Write the figures of a run; returns those that could be written.

    Args:
        failed: takes those that could not, with their reasons.
    """
    folder, written = make_folder(run_dir / "figures"), []
    for picture in drawn:
        with failed.kept("figure", picture.name):
            save(picture, folder)
            written.append(picture)
    return written


def write_page(page: Page) -> Path:
    """Write `report.html` of a run and return its path; its warnings also go to standard error."""
    path = page.run_dir / "report.html"
    write_atomically(path, render(page))
    say_warnings(list(dict.fromkeys(page.warnings)))
    return path
