"""The study of traces measured by probes, SLRC first among them; runs without `benchmark` are of
it."""

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


def _report():
    from faithscope.experiments.analysis.run import Report
    from faithscope.experiments.studies.slrc import columns, frames, item_views, page, scores
    from faithscope.experiments.studies.slrc.figures.figures import pictures
    from faithscope.experiments.studies.slrc.tables.paper import paper_tables
    from faithscope.probes import PROBES

    return Report(
        results=frames.Results,
        frames=frames.FRAMES,
        papers=lambda results: paper_tables(results.tables, results.sizes, results.report.groups),
        figures=lambda results: pictures(results.tables),
        page=page.page,
        arrays=tuple(PROBES),
        columns=columns.COLUMNS,
        columns_of=columns.OF_TABLES,
        reasons=columns.REASONS,
        items=item_views.ITEMS,
        scores=scores.scores,
    )


def _paper():
    from faithscope.experiments.studies.slrc.published import PAPER

    return PAPER


STUDY = Study("slrc", _config, _plan, _stages, _report, unnamed=True, paper=_paper)
