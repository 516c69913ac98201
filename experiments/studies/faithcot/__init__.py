"""FaithCoT-Bench (arXiv 2510.04040): is one particular chain of thought faithful? Eleven detectors
against annotators' labels."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.config.study import Stages, Study


def _config():
    from faithscope.experiments.studies.faithcot.config import FaithCotConfig

    return FaithCotConfig


def _plan(config: Any):
    from faithscope.experiments.studies.faithcot.plan import plan

    return plan(config)


def _stages() -> Stages:
    from faithscope.experiments.studies.faithcot.units import STAGES

    return STAGES


def _report():
    from faithscope.experiments.analysis.run import Report
    from faithscope.experiments.analysis.tables import in_layout
    from faithscope.experiments.studies.faithcot import frames, item_views, page, scores
    from faithscope.experiments.studies.faithcot.results import FaithResults
    from faithscope.experiments.studies.faithcot.tables import COLUMNS, OF_TABLES, TABLES, tables_of
    from faithscope.probes import PROBES

    return Report(
        results=FaithResults,
        tables=tables_of,
        frames=frames.FRAMES,
        papers=lambda results: in_layout(TABLES, results.run.tables),
        figures=page.pictures,
        page=lambda results, drawn: page.page(results, results.run.tables, drawn),
        arrays=tuple(PROBES),
        columns=COLUMNS,
        columns_of=OF_TABLES,
        items=item_views.ITEMS,
        scores=scores.scores,
    )


def _paper():
    from faithscope.experiments.studies.faithcot.published import PAPER

    return PAPER


STUDY = Study("faithcot", _config, _plan, _stages, _report, paper=_paper)
