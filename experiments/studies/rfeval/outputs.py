"""All that a run of RFEval gives a reader: tables, figures, the page."""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.analysis.write import write_outputs
from faithscope.experiments.engine.arrays import pack
from faithscope.experiments.studies.rfeval.figures.pictures import pictures
from faithscope.experiments.studies.rfeval.page import page
from faithscope.experiments.studies.rfeval.report.paper import paper_tables
from faithscope.experiments.studies.rfeval.results import results
from faithscope.experiments.studies.rfeval.units import INSIDE


def write_all(run_dir: Path) -> Path:
    """Write them from the stored records; gives the report's path."""
    found = results(run_dir)
    pack(run_dir, found.index, INSIDE)
    printed = {t.name: t.printed for t in paper_tables(found.tables)}
    drawn = pictures(found.tables)
    return write_outputs(page(found, drawn), found.tables, printed, drawn)
