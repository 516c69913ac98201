"""Training for reasoning that is used (SLRC, section 3.3), on real and on planted models."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.config.study import Stages, Study


def _config():
    from faithscope.experiments.studies.training.config import TrainConfig

    return TrainConfig


def _plan(config: Any):
    from faithscope.experiments.studies.training.plan import plan

    return plan(config)


def _stages() -> Stages:
    from faithscope.experiments.studies.training.units import STAGES

    return STAGES


def _report():
    from faithscope.experiments.analysis.run import Report
    from faithscope.experiments.analysis.tables import in_layout
    from faithscope.experiments.studies.training import item_views, page, results, tables

    return Report(
        results=results.Results,
        frames=results.FRAMES,
        page=page.page,
        columns=tables.COLUMNS,
        items=item_views.ITEMS,
        columns_of=tables.OF_TABLES,
        papers=lambda made: in_layout(tables.TABLES, made.tables),
        figures=page.pictures,
    )


STUDY = Study("training", _config, _plan, _stages, _report)
