"""What a reader gets of a run of this study: frames, tables, figures, page, scores."""

from __future__ import annotations

from faithscope.experiments.analysis.run import Report
from faithscope.experiments.studies.compare import columns, explore, frames, item_views, page
from faithscope.experiments.studies.compare.results import Compared

REPORT = Report(
    results=Compared,
    frames=frames.FRAMES,
    figures=page.figures,
    overview=page.overview,
    page=page.page,
    write_extra=explore.write_frames_and_explorer,
    columns=columns.COLUMNS,
    columns_of=columns.OF_TABLES,
    items=item_views.ITEMS,
)
