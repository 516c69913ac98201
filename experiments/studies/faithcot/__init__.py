"""FaithCoT-Bench (arXiv 2510.04040): is this one chain of thought faithful? Eleven detectors, and
what annotators say."""

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


def _remedies(*of_run: Any):
    from faithscope.experiments.engine.traces.stages import remedies

    return remedies(*of_run)


def _report():
    from faithscope.experiments.analysis.run import Report
    from faithscope.experiments.studies.faithcot import columns, frames
    from faithscope.experiments.studies.faithcot.details import details
    from faithscope.experiments.studies.faithcot.page import page, pictures
    from faithscope.experiments.studies.faithcot.paper import paper_tables
    from faithscope.experiments.studies.faithcot.results import FaithResults
    from faithscope.experiments.studies.faithcot.scores import scores
    from faithscope.experiments.studies.faithcot.show import show_item
    from faithscope.probes import PROBES

    return Report(
        frames=frames.FRAMES,
        tables=frames.tables,
        papers=lambda run: paper_tables(run.tables),
        figures=pictures,
        page=lambda run, drawn: page(run.once(FaithResults), run.tables, drawn),
        arrays=tuple(PROBES),
        columns=columns.COLUMNS,
        columns_of=columns.OF_TABLES,
        show=show_item,
        scores=scores,
        details=details,
    )


STUDY = Study("faithcot", _config, _plan, _stages, _report, remedies=_remedies)
