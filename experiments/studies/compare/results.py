"""The tables of a comparison, computed from its runs each time that it is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import pandas as pd

from faithscope.experiments.analysis.comparison.compared import Comparison
from faithscope.experiments.analysis.comparison.headline import headline_table
from faithscope.experiments.analysis.comparison.join import Joined, join
from faithscope.experiments.analysis.comparison.labels import labels_of
from faithscope.experiments.analysis.comparison.per_question import per
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.studies.compare.config import (
    FOLDER,
    CompareConfig,
)
from faithscope.experiments.studies.compare.reading import SOURCES, Opened, opened


def opened_sources(config: CompareConfig, folder: Path) -> dict[str, Opened]:
    """The runs of a comparison by source name: given run folders, and runs it made in its own
    folder.

    Raises:
        UserError: a run is not there or has no scores.
    """
    return {
        s.title: opened(folder / FOLDER / s.title if s.run is None else s.run, s.title)
        for s in config.sources
    }


def joined_sources(config: CompareConfig, sources: Mapping[str, Opened]) -> Joined:
    """Joins the scores of all runs and the labels of a label file in one table.

    Raises:
        UserError: labels cannot be read, or are of none of the traces; or nothing is common.
    """
    labels = config.labels
    of_file = None if labels is None else labels_of(Path(labels.path).expanduser())
    of_runs = {name: source.scores for name, source in sources.items()}
    groups = {name: source.run.groups for name, source in sources.items()}
    return join(of_runs, of_file, config.same, config.common, groups)


@dataclass(frozen=True)
class Compared:
    """An opened comparison: its runs, their joined scores, and the tables made from them.

    Raises:
        UserError: a run is not there or has no scores, labels cannot be read, or nothing is common.
    """

    run: Run

    @cached_property
    def config(self) -> CompareConfig:
        return cast("CompareConfig", self.run.config)

    @cached_property
    def sources(self) -> dict[str, Opened]:
        """Source name -> its opened run."""
        return opened_sources(self.config, self.run.path)

    @cached_property
    def joined(self) -> Joined:
        """The scores of every chain; `comparison.joined` has those of every compared unit."""
        return joined_sources(self.config, self.sources)

    @cached_property
    def comparison(self) -> Comparison:
        """The joined measures, compared with each other and with labels."""
        how = Bootstrap(self.config.seed, self.config.report.bootstrap)
        return Comparison(per(self.joined, self.config.report.per), how, self.config.report)

    @cached_property
    def headline(self) -> pd.DataFrame | None:
        """The comparison that was fixed beforehand; None where the config names no measures."""
        primaries, joined = self.config.primaries, self.comparison.joined
        return headline_table(joined, primaries, self.config.seed) if primaries else None

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables of the comparison, by file name."""
        return {
            **({} if self.headline is None else {"headline": self.headline}),
            "sources": SOURCES.filled(source.row() for source in self.sources.values()),
            "joins": self.joined.joins,
            "missing": self.comparison.joined.missing,
            **self.comparison.tables,
        }
