"""What a reader gets of a run of this study: frames, tables, figures, page, scores."""

from __future__ import annotations

from faithscope.experiments.analysis.run import Report
from faithscope.experiments.studies.slrc import columns, frames, item_views, page, scores
from faithscope.experiments.studies.slrc.figures.figures import pictures
from faithscope.experiments.studies.slrc.tables.paper import paper_tables
from faithscope.probes import PROBES

REPORT = Report(
    results=frames.Results,
    frames=frames.FRAMES,
    papers=lambda results: paper_tables(results.tables, results.sizes, results.report.groups),
    figures=lambda results: pictures(results.tables, results.failed),
    page=page.page,
    arrays=tuple(PROBES),
    columns=columns.COLUMNS,
    columns_of=columns.OF_TABLES,
    reasons=columns.REASONS,
    items=item_views.ITEMS,
    failed=lambda results: results.failed,
    scores=scores.scores,
)
