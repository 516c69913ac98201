"""Probes of traces, SLRC first among them: the study of the run configs without a benchmark."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.config.study import Stages, Study


def _config():
    from faithscope.experiments.studies.slrc.config import RunConfig

    return RunConfig


def _plan(config: Any):
    from faithscope.experiments.engine.traces.plan import plan

    return plan(config)


def _stages() -> Stages:
    from faithscope.experiments.engine.traces.stages import STAGES

    return STAGES


def _remedies(*of_run: Any):
    from faithscope.experiments.engine.traces.stages import remedies

    return remedies(*of_run)


def _report():
    from faithscope.experiments.analysis.run import Report
    from faithscope.experiments.studies.slrc import columns, frames
    from faithscope.experiments.studies.slrc.details import details
    from faithscope.experiments.studies.slrc.figures.figures import pictures
    from faithscope.experiments.studies.slrc.page import page
    from faithscope.experiments.studies.slrc.scores import scores
    from faithscope.experiments.studies.slrc.show import show_item
    from faithscope.experiments.studies.slrc.tables.paper import paper_tables
    from faithscope.probes import PROBES

    return Report(
        frames=frames.FRAMES,
        tables=frames.tables,
        papers=lambda run: paper_tables(run.tables, run.once(frames.Results).sizes),
        figures=lambda run: pictures(run.tables),
        page=lambda run, drawn: page(run.once(frames.Results), drawn),
        arrays=tuple(PROBES),
        columns=columns.COLUMNS,
        columns_of=columns.OF_TABLES,
        reasons=columns.REASONS,
        show=show_item,
        scores=scores,
        details=details,
    )


STUDY = Study("slrc", _config, _plan, _stages, _report, unnamed=True, remedies=_remedies)
