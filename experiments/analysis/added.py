"""The report of a study with what an addition to the study makes of the same runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import pandas as pd

from faithscope.experiments.analysis.columns import SHARED, by_name
from faithscope.experiments.analysis.page import Page, Section
from faithscope.experiments.analysis.picture import STYLE, Picture
from faithscope.experiments.analysis.run import Frame, Report, Run
from faithscope.experiments.analysis.tables import Table, make_tables


def extended(
    report: Report,
    tables: Sequence[Table],
    data: Callable[[Any], Mapping[str, pd.DataFrame]],
    *,
    frames: Sequence[Frame] = (),
    figures: Callable[[Mapping[str, pd.DataFrame]], Sequence[Picture]] = lambda tables: (),
    section: Section,
    after: str,
) -> Report:
    """The report with further frames, tables, figures and one section of its page.

    Args:
        report: of a study whose results have the `run` that they are of, and its `config`.
        tables: specifications of the tables, each made of `data` or of an earlier one of them.
        data: maps the study's results to the frames that the tables are made of.
        frames: further attributes of a `Run`.
        figures: draws the figures from all tables of the run, by name.
        section: stands on the page after the section named `after`.
    """
    known = {**SHARED, **report.columns}
    columns_of = {
        table.name: by_name(
            column
            for column in table.columns
            if replace(column, interval=False) != known.get(column.name)
        )
        for table in tables
    }

    def made(run: Run) -> dict[str, pd.DataFrame]:
        results = run.once(report.results)
        how = run.bootstrap(results.config.seed, results.config.report.bootstrap)
        return make_tables(tables, data(results), how)

    def every_table(results: Any) -> dict[str, pd.DataFrame]:
        return {**report.tables(results), **results.run.once(made)}

    def every_figure(results: Any) -> list[Picture]:
        with mpl.rc_context(STYLE):
            return [*report.figures(results), *figures(every_table(results))]

    def page(results: Any, drawn: Sequence[Picture]) -> Page:
        whole = report.page(results, drawn)
        at = [s.name for s in whole.sections].index(after) + 1
        own = {name: table for name, table in results.run.once(made).items() if len(table)}
        return replace(
            whole,
            sections=[*whole.sections[:at], section, *whole.sections[at:]],
            tables={**whole.tables, **own},
            of_tables={**whole.of_tables, **columns_of},
        )

    return replace(
        report,
        frames=(*report.frames, *frames),
        tables=every_table,
        figures=every_figure,
        page=page,
        columns_of={**report.columns_of, **columns_of},
    )
