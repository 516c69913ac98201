"""Cells that hold a score or a flag against a yes-or-no label (`statistics.against_label`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from faithscope.experiments.analysis.cells import Groups, Mask, Values, every_row, values_of
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.statistics.against_label import (
    Totals,
    against_label,
    drawn_together,
)
from faithscope.experiments.analysis.tidy import columns_of

_WORDS = (
    ("auroc", "AUROC", "AUROC of the score against the label; 0.5 is chance."),
    ("kappa", "κ", "Cohen's, of flags and labels; it collapses where one class is nearly all."),
    ("ac2", "AC2", "Gwet's, which does not collapse where one class is nearly all."),
    ("accuracy", "", "Share of flags that are the label."),
    ("f1", "F1", "F1 where the label is true."),
)
AUROC, KAPPA, AC2, ACCURACY, F1 = (Column(*words, interval=True) for words in _WORDS)
AVERAGE_PRECISION = Column("average_precision", "AP", "Average precision where the label is true.")
SATURATED = Column("saturated", meaning="One class is 90 % of labels and flags: read AC2, not κ.")
"""Columns of statistics of a score or flag against a label, named as in
`statistics.against_label`."""


@dataclass(frozen=True)
class AgainstLabel:
    """Cell: statistics of a score, or of flags, against a label (`statistics.against_label`)."""

    columns: tuple[Column, ...]
    """Columns to fill; each has the name of its statistic, unless `named` says otherwise."""
    label: Values
    """True label of each row, 1 or 0; rows whose label is unknown (NaN) are left out."""
    cluster: str
    """Column that names the cluster of each row (a question, a chain), whose group is drawn as a
    whole (`Bootstrap.units`)."""
    score: Values | None = None
    """Score of each row, for statistics such as AUROC."""
    flag: Values | None = None
    """Verdict of each row, 1 or 0, for statistics such as κ and accuracy."""
    strata: str | None = None
    """Column that names the stratum of each row; None compares all rows with each other."""
    among: Mask = every_row
    named: Mapping[str, str] = field(default_factory=dict)
    """Column name -> statistic in it, for columns that are not named after their statistic."""
    totals: Totals = drawn_together
    """Bootstrap totals that intervals are computed from (`statistics.against_label`)."""

    def over(self, groups: Groups) -> Mapping[str, list[Any]]:
        label = values_of(groups.frame, self.label)
        chosen = groups.among(lambda frame: self.among(frame) & ~np.isnan(label))
        label = values_of(chosen.frame, self.label) == 1
        clusters = groups.how.units(chosen.frame, self.cluster)
        strata = None if self.strata is None else chosen.frame[self.strata].to_numpy()
        told = {"score": self.score, "flag": self.flag}
        told = {k: values_of(chosen.frame, v) for k, v in told.items() if v is not None}
        statistics = {c.name: self.named.get(c.name, c.name) for c in self.columns}
        lines = []
        for rows in chosen.rows:
            estimates = against_label(
                statistics.values(),
                label[rows],
                clusters[rows],
                groups.how,
                strata=None if strata is None else strata[rows],
                totals=self.totals,
                **{name: values[rows] for name, values in told.items()},
            )
            lines.append(columns_of({name: estimates[s] for name, s in statistics.items()}))
        return {name: [line[name] for line in lines] for c in self.columns for name in c.names}
