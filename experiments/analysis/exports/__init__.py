"""Exports of a run for other programs: logs of Inspect, a dataset for the Hugging Face hub, and
BonaFide's rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from faithscope.experiments.engine.outputs import EXPORTS
from faithscope.interp.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from faithscope.experiments.analysis.run import Run


@dataclass(frozen=True)
class Format:
    """A format that a run can be exported in."""

    summary: str
    """One line on what is written and what opens it."""
    write: Callable[[Run, Path], list[Path]]
    """Writes the run into a folder; returns the paths of the files."""


def _inspect(run: Run, folder: Path) -> list[Path]:
    from faithscope.experiments.analysis.exports.inspect_logs import write_inspect_logs

    return write_inspect_logs(run, folder)


def _dataset(run: Run, folder: Path) -> list[Path]:
    from faithscope.experiments.analysis.exports.hub_dataset import write_dataset

    return write_dataset(run, folder)


def _bonafide(run: Run, folder: Path) -> list[Path]:
    from faithscope.experiments.analysis.exports.bonafide_rows import write_rows

    return write_rows(run, folder)


FORMATS: Mapping[str, Format] = {
    "inspect": Format("logs (.eval) that `inspect view` and Inspect Scout open", _inspect),
    "dataset": Format("a dataset of the Hugging Face hub: a card and Parquet files", _dataset),
    "bonafide": Format("a row per label and measure, as BonaFide's metric results", _bonafide),
}
"""Formats by name, as `faithscope export --as` takes them."""


def export(run: Run, format: str, folder: Path | None = None) -> Path:
    """Write a run in another program's format; returns the folder.

    Args:
        format: a name in `FORMATS`.
        folder: where to write; by default `exports/FORMAT` in the run folder.

    Raises:
        UserError: there is no such format, a package is missing, or the run holds no chains.
    """
    if format not in FORMATS:
        known = did_you_mean(format, FORMATS) or f"; known: {', '.join(FORMATS)}"
        raise UserError(
            f"cannot export as {format!r}{known}; tables are CSV in {run.path / 'tables'}"
        )
    folder = folder or run.path / EXPORTS / format
    FORMATS[format].write(run, folder)
    return folder
