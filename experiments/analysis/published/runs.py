"""Finished runs that stand beside a paper's printed tables, opened once for all tables."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from faithscope.experiments.analysis.published.cells import Cell
from faithscope.experiments.analysis.published.comparison import NumbersOfRun, beside, numbers_for
from faithscope.experiments.analysis.published.deviations import deviations, paper_config
from faithscope.experiments.analysis.published.paper import Paper, Published
from faithscope.experiments.analysis.run import Run, load_run
from faithscope.experiments.config.shipped import config_path
from faithscope.experiments.config.study import STUDIES, Study, study_of
from faithscope.experiments.config.yaml_source import read_tree
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.folder import run_folder, stored_config
from faithscope.experiments.engine.tallies.tally import tally_of_run
from faithscope.interp.errors import UserError, did_you_mean


def papers() -> dict[str, Paper]:
    """Name -> paper, for all studies that have one."""
    return {paper.name: paper for study in STUDIES.values() for paper in study.papers()}


def paper_of(name: str) -> Paper:
    """The paper of this name.

    Raises:
        UserError: no study has a paper of this name.
    """
    known = papers()
    if name not in known:
        guess = did_you_mean(name, list(known)) or f"; known: {', '.join(known)}"
        raise UserError(f"no paper {name!r}{guess}")
    return known[name]


def run_folders(given: Iterable[str | Path]) -> list[Path]:
    """Run folders: those given, those in given folders, and those that a run is made of.

    Raises:
        StoreError: a path is neither a run folder nor a folder that holds any.
    """
    found: dict[Path, None] = {}
    for path in (Path(g).expanduser() for g in given):
        inside = sorted(p.parent for p in path.glob("*/config.yaml"))
        if not (path / "config.yaml").is_file() and not inside:
            run_folder(path)  # says what is wrong with it
        for folder in [path] if (path / "config.yaml").is_file() else inside:
            found |= dict.fromkeys(_with_parts(folder))
    return list(found)


def _with_parts(folder: Path) -> list[Path]:
    """A run folder, and those of the runs that it is made of."""
    try:
        if not study_of(stored_config(folder)).reads_runs:
            return [folder]
        parts = Run(folder).config.made_of.values()
    except UserError:
        return [folder]
    return [folder, *(part for part in parts if (part / "config.yaml").is_file())]


@dataclass
class Runs:
    """Run folders that a paper's tables are compared with."""

    folders: Sequence[Path]
    _opened: dict[Path, Run | str] = field(default_factory=dict)

    def of(self, published: Published) -> list[Run]:
        """The runs of a printed table's study that can be read."""
        opened = [run for run in map(self._open, self.folders) if isinstance(run, Run)]
        study = study_of_table(published) if opened else None
        return [run for run in opened if study_of(stored_config(run.path)) is study]

    def unread(self) -> list[str]:
        """A line for every folder that cannot be read as a run."""
        opened = map(self._open, self.folders)
        return [problem for problem in opened if isinstance(problem, str)]

    def others(self, tables: Iterable[Published]) -> list[str]:
        """A line for every run whose study is that of none of these printed tables."""
        studies = [study_of_table(table) for table in tables if table.config]
        kinds = {
            folder: study_of(stored_config(folder))
            for folder in self.folders
            if isinstance(self._open(folder), Run)
        }
        return [f"{f}: is a run of {kind.name}" for f, kind in kinds.items() if kind not in studies]

    def _open(self, folder: Path) -> Run | str:
        if folder not in self._opened:
            try:
                self._opened[folder] = load_run(folder)
            except UserError as error:
                self._opened[folder] = f"{folder}: {str(error).removeprefix(f'{folder}: ')}"
        return self._opened[folder]


def study_of_table(published: Published) -> Study:
    """The study whose runs stand beside a printed table: that of the config that carries it out,
    which may be another one than the paper's."""
    return study_of(read_tree(config_path(published.config), list(published.sets)).values)


@dataclass(frozen=True)
class Beside:
    """A printed table with the numbers of runs beside it."""

    paper: Paper
    published: Published
    cells: pd.DataFrame
    """A row per printed cell, then rows of ours that the paper does not have
    (`comparison.beside`)."""
    runs: Sequence[NumbersOfRun] = ()
    """Runs that measure something of the table."""
    nothing: Sequence[str] = ()
    """A line for every run of the study that measures nothing of the table, with the reason."""
    tallies: Sequence[str] = ()
    """How much of each run was measured, why the rest was not, and the run's warnings."""

    @property
    def name(self) -> str:
        """Name in the command: `slrc.table4`."""
        return f"{self.paper.name}.{self.published.name}"

    @property
    def has_numbers(self) -> bool:
        """Whether any number of ours stands in the table."""
        return bool(self.cells["ours"].notna().any())


def compared(paper: Paper, published: Published, cells: Sequence[Cell], runs: Runs) -> Beside:
    """A printed table beside all runs of its study."""
    measured, nothing, tallies = [], [], []
    for run in runs.of(published) if published.config and not published.why_not else ():
        try:
            numbers = _numbers_of(run, paper, published)
            if isinstance(numbers, str):
                nothing.append(f"{run.path}: {numbers}")
                continue
            if not bool(beside(paper, published, cells, [numbers])["ours"].notna().any()):
                nothing.append(f"{run.path}: {_stands_nowhere(published, numbers)}")
                continue
            lines = [*tally_of_run(run.path).lines(), *run.warnings]
        except UserError as error:
            nothing.append(f"{run.path}: {str(error).removeprefix(f'{run.path}: ')}")
        except _OF_OTHER_RECORDS as error:
            nothing.append(f"{run.path}: {_unreadable(error)}")
        else:
            measured.append(numbers)
            tallies += [f"{run.path}: {line}" for line in lines]
    table = beside(paper, published, cells, measured)
    return Beside(paper, published, table, measured, nothing, tallies)


_OF_OTHER_RECORDS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError),
)
"""Errors that records raise which another version wrote, or which were edited and sealed anew."""


def _unreadable(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    at = f"{Path(frame.filename).name}, line {frame.lineno}"
    return (
        f"no table can be made of its records ({type(error).__name__}: {error}, in {at}): they are "
        "not as a run of this version writes them"
    )


def _numbers_of(run: Run, paper: Paper, published: Published) -> NumbersOfRun | str:
    """The numbers of a run for a printed table, or why it has none.

    Raises:
        UserError: the run cannot be read.
    """
    table = numbers_for(published, run.tables)
    ours = run.config.model_dump(mode="json")
    if table is None:
        if isinstance(published.of, str) and published.of not in run.tables:
            return f"has no table {published.of!r}; its tables: {', '.join(run.tables)}"
        return "has no row that was measured as in the paper"
    differing = deviations(paper, published, ours, paper_config(published))
    stored = planfile.read(run.path)
    planned = Counter((item.model, item.task) for item in stored.items) if stored else None
    return NumbersOfRun(str(run.path), table, differing, planned)


def _stands_nowhere(published: Published, numbers: NumbersOfRun) -> str:
    """Why rows of ours stand at no cell of a table, in words."""
    there = [
        f"{column}: {', '.join(dict.fromkeys(map(str, numbers.table[column])))}"
        for column in dict.fromkeys(filter(None, published.keys.values()))
    ]
    return f"none of its rows is at a place of the table ({'; '.join(there)})"
