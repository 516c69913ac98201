"""What a reader gets of a run of this study: frames, tables, figures, page, scores."""

from __future__ import annotations

from faithscope.experiments.analysis.run import Report
from faithscope.experiments.studies.faithcot import frames, item_views, page, scores
from faithscope.experiments.studies.faithcot.results import FaithResults
from faithscope.experiments.studies.faithcot.tables import COLUMNS, OF_TABLES, tables_of
from faithscope.probes import PROBES

REPORT = Report(
    results=FaithResults,
    tables=tables_of,
    frames=frames.FRAMES,
    papers=lambda results: page.paper_tables(results.run.tables),
    figures=page.pictures,
    page=lambda results, drawn: page.page(results, results.run.tables, drawn),
    arrays=tuple(PROBES),
    columns=COLUMNS,
    columns_of=OF_TABLES,
    items=item_views.ITEMS,
    scores=scores.scores,
)
