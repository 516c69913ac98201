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
    from faithscope.experiments.studies.judge import frames, item_views, page, scores
    from faithscope.experiments.studies.judge.results import results
    from faithscope.experiments.studies.judge.tables import COLUMNS, OF_TABLES

    return Report(
        results=results,
        frames=frames.FRAMES,
        page=lambda results, drawn: page.page(results),
        columns=COLUMNS,
        columns_of=OF_TABLES,
        items=item_views.ITEMS,
        scores=scores.scores,
    )


STUDY = Study(
    "judge",
    _config,
    _plan,
    stages=lambda: by_name(Stage("judge_generated"), Stage("judge_scored")),
    report=_report,
)
