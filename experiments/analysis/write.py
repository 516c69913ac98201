"""The tables of a run as files: CSV for machines, Markdown and LaTeX for readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from faithscope.experiments.analysis.textual import to_csv, to_latex, to_markdown
from faithscope.experiments.files import make_folder, write_atomically


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
