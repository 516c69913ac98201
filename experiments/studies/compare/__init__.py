"""Behaviour, internals and judges on the same traces: which measure to trust, and its cost."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.config.study import Stage, Study, by_name


def _config():
    from faithscope.experiments.studies.compare.config import CompareConfig

    return CompareConfig


def _plan(config: Any):
    from faithscope.experiments.studies.compare.plan import plan

    return plan(config)


def _report():
    from faithscope.experiments.analysis.run import Report
    from faithscope.experiments.studies.compare import columns, explore, frames, item_views, page
    from faithscope.experiments.studies.compare.figures import pictures
    from faithscope.experiments.studies.compare.results import Compared

    return Report(
        results=Compared,
        frames=frames.FRAMES,
        figures=lambda compared: pictures(compared.tables),
        page=page.page,
        beside=explore.write_frames_and_explorer,
        columns=columns.COLUMNS,
        columns_of=columns.OF_TABLES,
        items=item_views.ITEMS,
    )


def _commands():
    from faithscope.experiments.studies.compare.commands import compare, view

    return {"run": compare, "views": view}


STUDY = Study(
    "compare",
    _config,
    _plan,
    stages=lambda: by_name(Stage("source")),
    report=_report,
    reads_runs=True,
    commands=_commands,
)
