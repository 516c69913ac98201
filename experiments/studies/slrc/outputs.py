"""All that a run over traces gives a reader: tables, figures, the page."""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.analysis.write import write_outputs
from faithscope.experiments.engine.arrays import pack
from faithscope.experiments.studies.slrc.figures.figures import pictures
from faithscope.experiments.studies.slrc.page import page
from faithscope.experiments.studies.slrc.tables.paper import paper_tables
from faithscope.experiments.studies.slrc.tables.results import results
from faithscope.probes import PROBES


def write_all(run_dir: Path) -> Path:
    """Write them from the stored records; gives the report's path."""
    found = results(run_dir)
    for probe in PROBES:
        pack(run_dir, found.index, probe)
    papers = paper_tables(found.tables, found.sizes)
    tables = found.tables | {paper.name: paper.data for paper in papers}
    printed = {paper.name: paper.printed for paper in papers}
    drawn = pictures(found.tables)
    return write_outputs(page(found, drawn), tables, printed, drawn)
