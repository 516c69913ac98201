"""RFEval: whether a model follows counterfactual reasoning prefilled as its own, and coherently."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.config.study import Stage, Study, by_name


def _config():
    from faithscope.experiments.studies.rfeval.config import RFEvalConfig

    return RFEvalConfig


def _plan(config: Any):
    from faithscope.experiments.studies.rfeval.plan import plan

    return plan(config)


def _report():
    from faithscope.experiments.analysis.run import Report
    from faithscope.experiments.analysis.tables import in_layout
    from faithscope.experiments.studies.rfeval import columns, frames, item_views, page, scores
    from faithscope.experiments.studies.rfeval.figures.pictures import pictures
    from faithscope.experiments.studies.rfeval.report.paper import PAPER_TABLES
    from faithscope.experiments.studies.rfeval.results import RfResults
    from faithscope.experiments.studies.rfeval.units import INSIDE

    return Report(
        results=RfResults,
        frames=frames.FRAMES,
        papers=lambda results: in_layout(PAPER_TABLES, results.tables),
        figures=lambda results: pictures(results.tables),
        page=page.page,
        arrays=(INSIDE,),
        columns=columns.COLUMNS,
        columns_of=columns.OF_TABLES,
        items=item_views.ITEMS,
        scores=scores.scores,
    )


def _paper():
    from faithscope.experiments.studies.rfeval.published import PAPER

    return PAPER


STUDY = Study(
    "rfeval",
    _config,
    _plan,
    stages=lambda: by_name(
        Stage("rf_writing"),
        Stage("rf_validation"),
        Stage("rf_baseline", measures=False),
        Stage("rf_intervened", measures=False),
        Stage("rf_tests"),
        Stage("rf_log_probs"),
        Stage("rf_inside"),
        Stage("rf_judged"),
        Stage("rf_steps"),
        Stage("rf_steps_scored"),
    ),
    report=_report,
    paper=_paper,
)
