"""What a reader gets of a run of this study: frames, tables, figures, page, scores."""

from __future__ import annotations

from faithscope.experiments.analysis.run import Report
from faithscope.experiments.studies.training import frames, item_views, page, tables

REPORT = Report(
    results=frames.Results,
    frames=frames.FRAMES,
    page=page.page,
    columns=tables.COLUMNS,
    items=item_views.ITEMS,
    columns_of=tables.OF_TABLES,
    figures=page.pictures,
)
