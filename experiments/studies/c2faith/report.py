"""What a reader gets of a run of this study: frames, tables, figures, page, scores."""

from __future__ import annotations

from faithscope.experiments.analysis.published.layout import printed_tables
from faithscope.experiments.analysis.run import Report
from faithscope.experiments.studies.c2faith import frames, item_views, page, scores
from faithscope.experiments.studies.c2faith.figures.pictures import pictures
from faithscope.experiments.studies.c2faith.paper import PAPER
from faithscope.experiments.studies.c2faith.results import results
from faithscope.experiments.studies.c2faith.tables.every_table import COLUMNS, OF_TABLES
from faithscope.experiments.studies.c2faith.units import INSIDE

REPORT = Report(
    results=results,
    frames=frames.FRAMES,
    papers=lambda results: printed_tables(PAPER, results.tables),
    figures=lambda results: pictures(results.tables),
    page=page.page,
    arrays=(INSIDE,),
    columns=COLUMNS,
    columns_of=OF_TABLES,
    items=item_views.ITEMS,
    scores=scores.scores,
)
