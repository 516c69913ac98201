"""All that a run over traces gives a reader: tables, figures, the page."""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.analysis.write import write_tables
from faithscope.experiments.engine.arrays import pack
from faithscope.experiments.studies.slrc.figures.figures import write_figures
from faithscope.experiments.studies.slrc.page import write_report
from faithscope.experiments.studies.slrc.tables.results import results
from faithscope.probes import PROBES


def write_all(run_dir: Path) -> Path:
    """Write them from the stored records; gives the report's path."""
    found = results(run_dir)
    for probe in PROBES:
        pack(run_dir, found.index, probe)
    write_tables(found)
    write_figures(found)
    return write_report(found)
