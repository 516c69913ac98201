"""Everything that is computed of joined scores: tables of measures, of their agreement, against
labels, and of disagreements; for one run or for several."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.agreement import (
    AGREEMENT,
    CUT,
    FAMILIES,
    HITS,
    STEP_AGREEMENT,
    agreement_table,
    step_agreement_table,
    step_hits_table,
    verdicts,
)
from faithscope.experiments.analysis.comparison.combining import (
    ABLATION,
    COMBINED,
    ablation_table,
    combined_table,
)
from faithscope.experiments.analysis.comparison.disagreements import (
    COMMON,
    LISTED,
    PARTING,
    disagreement_tables,
)
from faithscope.experiments.analysis.comparison.join import Joined
from faithscope.experiments.analysis.comparison.scores import COST_COLUMNS, COSTS
from faithscope.experiments.analysis.comparison.scores_vs_labels import (
    AGAINST,
    RELIABILITY,
    Target,
    against_tables,
    targets,
)
from faithscope.experiments.analysis.comparison.step_labels import STEP_AGAINST, step_against_table
from faithscope.experiments.analysis.comparison.trust import FRONT, TRUST, trust_table
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import count, mean, numbers, rows
from faithscope.experiments.config.comparison import ComparisonConfig

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


TABLES = (
    *(MEASURES, STEP_AGREEMENT, HITS, STEP_AGAINST, AGREEMENT, FAMILIES, TRUST, COMBINED, PARTING),
    *(LISTED, COMMON, AGAINST, RELIABILITY, FRONT, ABLATION),
)
"""The tables that `Comparison.tables` makes."""


@dataclass(frozen=True)
class Comparison:
    """The measures of joined traces, compared with each other and with labels."""

    joined: Joined
    how: Bootstrap
    settings: ComparisonConfig = field(default_factory=ComparisonConfig)

    @cached_property
    def targets(self) -> list[Target]:
        """Labels that measures can be evaluated against."""
        return targets(self.joined, self.settings.folds, self.how.seed)

    @cached_property
    def agreement(self) -> pd.DataFrame:
        """The table `AGREEMENT` of all measures."""
        return agreement_table(self.joined, self.how, self.settings.false_discovery)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables, by file name."""
        held = against_tables(self.joined, self.targets, self.how)
        of_labels = (self.joined, self.targets, self.how, self.settings)
        told = sentence_tables(*of_labels, held["against"], self.agreement)
        return {
            "measures": _measures(self.joined),
            "step_agreement": step_agreement_table(self.joined, self.how),
            "step_hits": step_hits_table(self.joined, self.how),
            "step_against": step_against_table(self.joined, self.how, self.settings.folds),
            **told,
            **held,
            "front": FRONT.make(told["trust"]),
            "ablation": ablation_table(self.targets, self.how),
        }


def sentence_tables(
    joined: Joined,
    of_labels: list[Target],
    how: Bootstrap,
    settings: ComparisonConfig,
    against: pd.DataFrame,
    of_pairs: pd.DataFrame | None = None,
) -> dict[str, pd.DataFrame]:
    """Tables that the summary sentences on the first screen are based on.

    Args:
        of_pairs: the table `AGREEMENT`, if it was made before.
    """
    if of_pairs is None:
        of_pairs = agreement_table(joined, how, settings.false_discovery)
    return {
        "agreement": of_pairs,
        "families": FAMILIES.make(of_pairs),
        "trust": trust_table(against, of_labels, how, settings.as_good),
        "combined": combined_table(of_labels, how),
        **disagreement_tables(joined, how, settings.listed),
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
