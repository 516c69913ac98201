"""What a reader gets of a run of this study: frames, tables, figures, page, scores."""

from __future__ import annotations

from faithscope.experiments.analysis.run import Report
from faithscope.experiments.studies.judge import frames, item_views, page, scores
from faithscope.experiments.studies.judge.results import results
from faithscope.experiments.studies.judge.tables import COLUMNS, OF_TABLES

REPORT = Report(
    results=results,
    frames=frames.FRAMES,
    page=lambda results, drawn: page.page(results),
    columns=COLUMNS,
    columns_of=OF_TABLES,
    items=item_views.ITEMS,
    scores=scores.scores,
)
