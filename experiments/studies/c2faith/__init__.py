"""C2-Faith: how well judges tell broken steps and missing steps in a chain of reasoning."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.config.study import Stage, Study, by_name


def _config():
    from faithscope.experiments.studies.c2faith.config import C2FaithConfig

    return C2FaithConfig


def _plan(config: Any):
    from faithscope.experiments.studies.c2faith.plan import plan

    return plan(config)


def _report():
    from faithscope.experiments.analysis.run import Report
    from faithscope.experiments.analysis.tables import in_layout
    from faithscope.experiments.studies.c2faith import frames, item_views, page, scores
    from faithscope.experiments.studies.c2faith.figures.pictures import pictures
    from faithscope.experiments.studies.c2faith.paper import PAPER
    from faithscope.experiments.studies.c2faith.results import results
    from faithscope.experiments.studies.c2faith.tables import COLUMNS, OF_TABLES
    from faithscope.experiments.studies.c2faith.units import INSIDE

    return Report(
        results=results,
        frames=frames.FRAMES,
        papers=lambda results: in_layout(PAPER, results.tables),
        figures=lambda results: pictures(results.tables),
        page=page.page,
        arrays=(INSIDE,),
        columns=COLUMNS,
        columns_of=OF_TABLES,
        items=item_views.ITEMS,
        scores=scores.scores,
    )


def _forms():
    from faithscope.experiments.studies.c2faith.prompts import judge_forms

    return judge_forms()


def _paper():
    from faithscope.experiments.studies.c2faith.published import PAPER

    return PAPER


STUDY = Study(
    "c2faith",
    _config,
    _plan,
    stages=lambda: by_name(
        Stage("acausal"),
        Stage("judge_generated"),
        Stage("judge_scored"),
        Stage("broken_step"),
    ),
    report=_report,
    forms=_forms,
    paper=_paper,
)
