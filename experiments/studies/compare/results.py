"""The tables of a comparison, computed from its runs each time that it is opened."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.agreement import (
    CUT,
    FAMILIES,
    agreement_table,
    step_agreement_table,
    step_hits_table,
    verdicts,
)
from faithscope.experiments.analysis.comparison.combining import ablation_table, combined_table
from faithscope.experiments.analysis.comparison.disagreements import disagreement_tables
from faithscope.experiments.analysis.comparison.headline import headline_table
from faithscope.experiments.analysis.comparison.join import Joined, join
from faithscope.experiments.analysis.comparison.labels import labels_of
from faithscope.experiments.analysis.comparison.scores import COST_COLUMNS, COSTS
from faithscope.experiments.analysis.comparison.scores_vs_labels import (
    Target,
    against_tables,
    targets,
)
from faithscope.experiments.analysis.comparison.step_labels import step_against_table
from faithscope.experiments.analysis.comparison.trust import FRONT, trust_table
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import count, mean, numbers, rows
from faithscope.experiments.studies.compare.config import (
    FOLDER,
    CompareConfig,
    CompareReport,
)
from faithscope.experiments.studies.compare.reading import SOURCES, Opened, opened

MEASURES = computed_table("measures", (
    *("measure", "family"),
    Column("higher_is_faithful", meaning="Which way the measure points, said before any data."),
    CUT,
    Column("n", meaning="Traces that have a score."),
    Column("mean", meaning="Mean score over traces as measured, whatever way it points."),
    Column("called_faithful", meaning="Share of the traces beyond the cut."),
    *COST_COLUMNS,
))  # fmt: skip
"""One row per measure: its family and direction, its mean, and its mean costs per item."""


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
    return join(of_runs, of_file, config.same, config.common)


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
    def how(self) -> Bootstrap:
        return Bootstrap(self.config.seed, self.config.report.bootstrap)

    @cached_property
    def sources(self) -> dict[str, Opened]:
        """Source name -> its opened run."""
        return opened_sources(self.config, self.run.path)

    @cached_property
    def joined(self) -> Joined:
        return joined_sources(self.config, self.sources)

    @cached_property
    def targets(self) -> list[Target]:
        """Labels that measures can be evaluated against."""
        return targets(self.joined, self.config.report.folds, self.config.seed)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables of the comparison, by file name."""
        joined, how, report = self.joined, self.how, self.config.report
        held = against_tables(joined, self.targets, how)
        told = sentence_tables(joined, self.targets, how, report, held["against"])
        primaries = self.config.primaries
        fixed = {"headline": headline_table(joined, primaries, how)} if primaries else {}
        return {
            **fixed,
            "sources": SOURCES.filled(source.row() for source in self.sources.values()),
            "joins": joined.joins,
            "missing": joined.missing,
            "measures": _measures(joined),
            "step_agreement": step_agreement_table(joined, how),
            "step_hits": step_hits_table(joined, how),
            "step_against": step_against_table(joined, how, report.folds),
            **told,
            **held,
            "front": FRONT.make(told["trust"]),
            "ablation": ablation_table(self.targets, how),
        }


def sentence_tables(
    joined: Joined,
    of_labels: list[Target],
    how: Bootstrap,
    report: CompareReport,
    against: pd.DataFrame,
) -> dict[str, pd.DataFrame]:
    """Tables that the summary sentences on the first screen are based on."""
    of_pairs = agreement_table(joined, how, report.false_discovery)
    return {
        "agreement": of_pairs,
        "families": FAMILIES.make(of_pairs),
        "trust": trust_table(against, of_labels, how, report.as_good),
        "combined": combined_table(of_labels, how),
        **disagreement_tables(joined, how, report.listed),
    }


def _measures(joined: Joined) -> pd.DataFrame:
    called, cuts = verdicts(joined)
    values, costs = joined.wide(), {cost: joined.wide(cost) for cost in COSTS}
    table = []
    for row in rows(joined.measures.reset_index()):
        name = row["measure"]
        row |= {"cut": cuts[name], "n": count(values[name].notna())}
        row |= {"mean": _mean(values[name]), "called_faithful": _mean(called[name])}
        table.append(row | {cost: _mean(of[name]) for cost, of in costs.items()})
    return MEASURES.filled(table)


def _mean(column: Any) -> float:
    return mean([x for x in numbers(column).tolist() if not math.isnan(x)])
