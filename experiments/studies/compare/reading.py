"""An opened run of a comparison: its progress, its traces, its scores and items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.join import SOURCE
from faithscope.experiments.analysis.comparison.labels import labels_of
from faithscope.experiments.analysis.comparison.scores import Scores, digest
from faithscope.experiments.analysis.item_view import Item
from faithscope.experiments.analysis.run import Report, Run, load_run
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.folder import existing_run, stored_config
from faithscope.experiments.engine.planfile import missing
from faithscope.experiments.files import StoreError
from faithscope.interp.errors import UserError

SOURCES = computed_table("sources", (
    SOURCE,
    Column("study", meaning="What kind of run it is."),
    Column("run", meaning="Folder of the run."),
    Column("config", meaning="Digest of the run's config but for its name and place."),
    Column("plan", meaning="Digest of the run's items, weights and versions."),
    Column("n_items", "items", "Traces of the run."),
    Column("n_measures", "measures", "Measures of the run."),
    Column("n_unfinished", "unfinished", "Items that the run has still to do."),
    Column("n_failed", "failed", "Units of work that failed."),
))  # fmt: skip
"""One row per compared run."""


def config_digest(run_dir: Path) -> str:
    """Digest of a run's stored config without its name and place; equal configs give equal
    digests."""
    values = stored_config(run_dir)
    return digest({k: values[k] for k in sorted(values) if k not in ("out", "name")})


@dataclass(frozen=True)
class Opened:
    """One source of a comparison, opened: its run, and what its study reports of the run."""

    name: str
    run: Run
    study: str
    _scores: Callable[[Run], Scores]
    _items: Callable[[Run], Iterable[Item]]

    @cached_property
    def scores(self) -> Scores:
        """Scores that the run's study gives, item by item."""
        return self._scores(self.run)

    @property
    def items(self) -> Iterable[Item]:
        """The items of the run, as its study shows them."""
        return self._items(self.run)

    @cached_property
    def left(self) -> int:
        """Number of items that the run has not finished, without failed ones."""
        plan = planfile.read(self.run.path)
        if plan is None:
            return 0
        index = self.run.index
        return sum(
            any(not index.failed(item.key(s), item.units[s]) for s in missing(index, item))
            for item in plan.items
        )

    def row(self) -> dict[str, Any]:
        """The run's row in the table `SOURCES`."""
        items = self.scores.items
        return {
            "source": self.name,
            "study": self.study,
            "run": str(self.run.path),
            "config": config_digest(self.run.path),
            "plan": planfile.digest(self.run.path) or "",
            "n_items": len(self.scores.traces),
            "n_measures": items.loc[items["family"] != "label", "measure"].nunique(),
            "n_unfinished": self.left,
            "n_failed": len(self.run.failures),
        }


def opened(path: str | Path, name: str) -> Opened:
    """Opens a run folder whose study gives scores to compare.

    Raises:
        UserError: it is no run folder, or one of another kind, with the remedy.
    """
    folder = existing_run(path)
    study = study_of(stored_config(folder))
    report: Report = study.report()
    if report.scores is None:
        raise UserError(
            f"{folder}: is a run of {study.name!r}, which has no scores of traces to compare; give "
            "runs of a study that measures or judges traces"
        )
    return Opened(name, load_run(folder), study.name, report.scores, report.items.of)


def readable_labels(path: str | Path, what: str) -> Path:
    """Path of a label file that was read once as a check, so that a broken file is found early.

    Raises:
        UserError: it is not there, or as `labels_of`.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise StoreError(f"{what} {file}: no such file")
    labels_of(file)
    return file
