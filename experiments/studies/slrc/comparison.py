"""Behaviour, internals and judges of the same chains, compared inside one run by the functions by
which `compare` compares several runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from faithscope.experiments.analysis.comparison.compared import TABLES as OF_ANY
from faithscope.experiments.analysis.comparison.compared import Comparison
from faithscope.experiments.analysis.comparison.figures import pictures
from faithscope.experiments.analysis.comparison.join import join
from faithscope.experiments.analysis.comparison.per_question import per
from faithscope.experiments.analysis.comparison.sections import answer_section, sections
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.studies.slrc.frames import Results
from faithscope.experiments.studies.slrc.scores import scores


def named(name: str) -> str:
    """Name in a run of a table, figure or section that a comparison of several runs has, too."""
    return f"compared_{name}"


TABLES = tuple(replace(table, name=named(table.name)) for table in OF_ANY)
"""The tables of the comparison, under their names in a run."""


@dataclass(frozen=True)
class InRun:
    """The comparison of the measures of one run; none of a run without readers or judges."""

    run: Run

    @cached_property
    def comparison(self) -> Comparison | None:
        """The compared measures; None where there is but one kind of evidence, or no trace."""
        results = self.run.once(Results)
        if not results.has_readers or results.judged.judges is None:
            return None
        of_run = self.run.once(scores)
        if not len(of_run.items) or not len(of_run.traces):
            return None
        how = self.run.bootstrap(results.stored.get("seed", 0), results.report.bootstrap)
        name = self.run.path.name
        joined = join({name: of_run}, None, "text", groups={name: self.run.groups})
        settings = results.report.comparison
        return Comparison(per(joined, settings.per), how, settings)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables that have rows, by file name."""
        made = {} if self.comparison is None else self.comparison.tables
        return {named(name): table for name, table in made.items() if len(table)}

    @cached_property
    def pictures(self) -> list[Picture]:
        """The figures that have data."""
        drawn = [] if self.comparison is None else pictures(self.comparison.tables)
        return [replace(p, name=named(p.name)) for p in drawn if p.figure is not None]

    def sections(self) -> Sequence[Section]:
        """Sections of the page; none without a comparison."""
        if self.comparison is None:
            return []
        is_drawn = named("auroc") in {picture.name for picture in self.pictures}
        made = [answer_section(self.comparison, named), *sections(self.comparison, is_drawn, named)]
        return [
            replace(s, title=TITLES.get(s.name, s.title), short=SHORT.get(s.name, s.short))
            for s in made
        ]


TITLES = {
    named("answer"): "Behaviour, internals and judges compared: which to trust",
    named("agreement"): "Where kinds of evidence agree",
    named("disagreements"): "Chains on which they disagree",
    named("steps"): "Measures compared step by step",
}
SHORT = {named("answer"): "Compared", named("agreement"): "Agreement of kinds"}
