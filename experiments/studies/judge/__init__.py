"""Judges on chains of thought that were written elsewhere: no model that reasons is needed."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.config.study import Stage, Study, by_name


def _config():
    from faithscope.experiments.studies.judge.config import JudgeStudyConfig

    return JudgeStudyConfig


def _plan(config: Any):
    from faithscope.experiments.studies.judge.plan import plan

    return plan(config)


def _report():
    from faithscope.experiments.analysis.run import Report
    from faithscope.experiments.studies.judge import columns, frames
    from faithscope.experiments.studies.judge.details import details
    from faithscope.experiments.studies.judge.page import page
    from faithscope.experiments.studies.judge.results import results
    from faithscope.experiments.studies.judge.scores import scores
    from faithscope.experiments.studies.judge.show import show_item

    return Report(
        frames=frames.FRAMES,
        tables=frames.tables,
        page=lambda run, drawn: page(run.once(results)),
        columns=columns.COLUMNS,
        columns_of=columns.OF_TABLES,
        show=show_item,
        scores=scores,
        details=details,
    )


STUDY = Study(
    "judge",
    _config,
    _plan,
    stages=lambda: by_name(Stage("judge_generated"), Stage("judge_scored")),
    report=_report,
)
