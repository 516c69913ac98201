"""All that a run of FaithCoT-Bench gives a reader: tables, a figure and the page."""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.write import write_outputs
from faithscope.experiments.engine.arrays import pack
from faithscope.experiments.studies.faithcot.figures import detectors_picture
from faithscope.experiments.studies.faithcot.page import page
from faithscope.experiments.studies.faithcot.results import FaithResults
from faithscope.experiments.studies.faithcot.tables import TABLES
from faithscope.probes import PROBES


def write_all(run_dir: Path) -> Path:
    """Write them from the stored records; gives the report's path."""
    run = load_run(run_dir)
    for probe in PROBES:
        pack(run_dir, run.index, probe)
    results, tables = run.once(FaithResults), run.tables
    printed = {t.name: t.layout(tables[t.name]) for t in TABLES if t.layout}
    how = Bootstrap(results.config.seed, results.config.report.bootstrap)
    scores = results.counted(results.scores)
    drawn = [detectors_picture(scores, tables["detectors"], how)]
    return write_outputs(page(results, tables, drawn), tables, printed, drawn)
