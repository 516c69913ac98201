"""All that a run over traces gives a reader: tables, figures, the page."""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.analysis.write import write_each
from faithscope.experiments.engine.arrays import pack
from faithscope.experiments.studies.slrc.figures.figures import write_figures
from faithscope.experiments.studies.slrc.page import write_report
from faithscope.experiments.studies.slrc.tables.paper import paper_tables
from faithscope.experiments.studies.slrc.tables.results import Results, results
from faithscope.probes import PROBES


def write_all(run_dir: Path) -> Path:
    """Write them from the stored records; gives the report's path."""
    found = results(run_dir)
    for probe in PROBES:
        pack(run_dir, found.index, probe)
    write_tables(found)
    write_figures(found)
    return write_report(found)


def write_tables(found: Results) -> None:
    """Write `tables/<name>.csv`, `.md` and `.tex` of a run.

    Beside them `paper_<name>`: the same numbers in the layout of the paper's tables.
    """
    laid_out = paper_tables(found.tables, found.sizes)
    write_each(
        found.run_dir,
        found.tables | {t.name: t.data for t in laid_out},
        {t.name: t.printed for t in laid_out},
    )
