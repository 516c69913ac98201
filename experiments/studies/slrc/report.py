"""What a reader gets of a run of this study: frames, tables, figures, page, scores."""

from __future__ import annotations

from collections.abc import Sequence

from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.published.layout import PaperTable, printed_tables
from faithscope.experiments.analysis.run import Report
from faithscope.experiments.engine.outputs import DIRECTIONS
from faithscope.experiments.files import make_folder, remove
from faithscope.experiments.studies.slrc import columns, frames, item_views, page, scores
from faithscope.experiments.studies.slrc.comparison import InRun
from faithscope.experiments.studies.slrc.detectors import page as of_detectors
from faithscope.experiments.studies.slrc.figures.figures import pictures
from faithscope.experiments.studies.slrc.judges import answer_curve
from faithscope.experiments.studies.slrc.paper import PAPER
from faithscope.experiments.studies.slrc.paper_rows import MEMBERS, members
from faithscope.probes import PROBES


def _papers(results: frames.Results) -> Sequence[PaperTable]:
    """The papers' tables; none of a run in which no model reads the chains."""
    if not results.has_readers:
        return ()
    detected = of_detectors.paper_tables(results.tables) if results.detects else []
    members_of = {MEMBERS: members(results.report.groups)}
    return [*printed_tables(PAPER, results.tables | members_of), *detected]


def _figures(results: frames.Results) -> Sequence[Picture]:
    """The figures of tables over traces, of detectors, and of the comparison with judges."""
    if not results.has_readers:
        return ()
    drawn = list(pictures(results.tables, results.failed))
    detected = of_detectors.pictures(results.detected) if results.detects else []
    along = results.tables.get(answer_curve.ANSWER_CURVE.name)
    drawn += [] if along is None else [answer_curve.picture(along)]
    return [*drawn, *detected, *results.run.once(InRun).pictures]


def _write_directions(results: frames.Results) -> None:
    """Write the directions that tables fitted, a file for each probe; a file of earlier settings
    goes."""
    for probe in PROBES:
        path = results.run.path / DIRECTIONS / f"{probe}.safetensors"
        if fitted := results.directions.get(probe):
            # not at the top: it imports torch, which reports of most runs do without
            from torch import from_numpy

            from faithscope.interp.directions import Direction, save_directions

            make_folder(path.parent)
            of_run = {"run": results.run.path.name}
            kept = [
                Direction(d.name, from_numpy(d.vector), d.layer, d.site, {**d.about, **of_run})
                for d in fitted
            ]
            save_directions(path, kept)
        else:
            remove(path)


REPORT = Report(
    results=frames.Results,
    tables=lambda results: results.tables | results.run.once(InRun).tables,
    frames=frames.FRAMES,
    papers=_papers,
    figures=_figures,
    page=page.page,
    arrays=tuple(PROBES),
    columns=columns.COLUMNS,
    columns_of=columns.OF_TABLES,
    reasons=columns.REASONS,
    items=item_views.ITEMS,
    write_extra=_write_directions,
    failed=lambda results: results.failed,
    scores=scores.scores,
)
