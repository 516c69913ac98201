from __future__ import annotations

from pathlib import Path

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.write import write_tables


def write_all(run_dir: Path) -> Path:
    write_tables(run_dir, load_run(run_dir).tables, lambda name: {}, {})
    return run_dir / "tables/words.csv"
