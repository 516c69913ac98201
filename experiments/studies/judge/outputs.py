"""All that a run of judges on given chains gives a reader: tables and the page."""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.write import write_outputs
from faithscope.experiments.studies.judge.page import page
from faithscope.experiments.studies.judge.results import results


def write_all(run_dir: Path) -> Path:
    """Write them from the stored records; gives the report's path."""
    run = load_run(run_dir)
    return write_outputs(page(run.once(results)), run.tables, {}, [])
