"""The page for exploring the traces of a comparison, and the comparison's frames as CSV files."""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.analysis.explorer.data import Explored
from faithscope.experiments.analysis.explorer.page import write_explorer
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine.folder import existing_run, stored_config
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.experiments.studies.compare.frames import FRAMES
from faithscope.experiments.studies.compare.results import Compared
from faithscope.experiments.studies.compare.words import counted_words
from faithscope.interp.errors import UserError

FILE = "explore.html"


def write_frames_and_explorer(compared: Compared) -> None:
    """Write `frames/<name>.csv` and the explorer of a comparison."""
    run = compared.run
    folder = make_folder(run.path / "frames")
    for frame in FRAMES:
        write_atomically(folder / f"{frame.name}.csv", to_csv(getattr(run, frame.name)))
    write_explorer(run.path / FILE, explored(compared))


def explored(compared: Compared) -> Explored:
    """Data of the explorer page: the joined scores, and each run's items."""
    name = compared.run.path.resolve().name
    items = {title: source.items for title, source in compared.sources.items()}
    return Explored(name, counted_words(compared), compared.joined, items)


def opened(run_dir: str | Path) -> Explored:
    """Data of the explorer page for the comparison stored in a folder.

    Raises:
        UserError: it is no run folder, or a run of another study, with the remedy.
    """
    folder = existing_run(run_dir)
    if study_of(stored_config(folder)).name != "compare":
        raise UserError(
            f"{folder}: is no comparison; make one of it: faithscope compare {folder} --into FOLDER"
        )
    return explored(load_run(folder).once(Compared))
