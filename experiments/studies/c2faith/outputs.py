"""All that a run of C2-Faith gives a reader: tables, figures, the page."""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.write import write_outputs
from faithscope.experiments.engine.arrays import pack
from faithscope.experiments.studies.c2faith.figures.pictures import pictures
from faithscope.experiments.studies.c2faith.page import page
from faithscope.experiments.studies.c2faith.paper import paper_tables
from faithscope.experiments.studies.c2faith.results import results
from faithscope.experiments.studies.c2faith.units import INSIDE


def write_all(run_dir: Path) -> Path:
    """Write them from the stored records; gives the report's path."""
    run = load_run(run_dir)
    pack(run_dir, run.index, INSIDE)
    printed = {t.name: t.printed for t in paper_tables(run.tables)}
    drawn = pictures(run.tables)
    return write_outputs(page(run.once(results), drawn), run.tables, printed, drawn)
