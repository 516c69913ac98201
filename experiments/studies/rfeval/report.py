"""What a reader gets of a run of this study: frames, tables, figures, page, scores."""

from __future__ import annotations

from faithscope.experiments.analysis.published.layout import printed_tables
from faithscope.experiments.analysis.run import Report
from faithscope.experiments.studies.rfeval import columns, frames, item_views, page, scores
from faithscope.experiments.studies.rfeval.figures.pictures import pictures
from faithscope.experiments.studies.rfeval.paper import PAPER
from faithscope.experiments.studies.rfeval.results import RfResults
from faithscope.experiments.studies.rfeval.units import INSIDE

REPORT = Report(
    results=RfResults,
    frames=frames.FRAMES,
    papers=lambda results: printed_tables(PAPER, results.tables),
    figures=lambda results: pictures(results.tables),
    page=page.page,
    arrays=(INSIDE,),
    columns=columns.COLUMNS,
    columns_of=columns.OF_TABLES,
    items=item_views.ITEMS,
    scores=scores.scores,
)
