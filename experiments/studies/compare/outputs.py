"""All that a comparison gives a reader: the long frames, tables, figures, the pages."""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.analysis.explorer.page import write_explorer
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.analysis.write import write_outputs
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.experiments.studies.compare.explore import FILE, explored
from faithscope.experiments.studies.compare.figures import pictures
from faithscope.experiments.studies.compare.frames import FRAMES
from faithscope.experiments.studies.compare.page import page
from faithscope.experiments.studies.compare.results import Compared


def write_all(run_dir: Path) -> Path:
    """Write them from the runs that the comparison reads; gives the report's path."""
    run = load_run(run_dir)
    compared = run.once(Compared)
    tables = compared.tables
    folder = make_folder(run_dir / "frames")
    for frame in FRAMES:
        write_atomically(folder / f"{frame.name}.csv", to_csv(getattr(run, frame.name)))
    write_explorer(run_dir / FILE, explored(compared))
    drawn = pictures(tables)
    return write_outputs(page(compared, drawn), tables, {}, drawn)
