from __future__ import annotations

from pathlib import Path

import pandas as pd

from faithscope.experiments.analysis.write import write_each
from faithscope.experiments.engine.planfile import counted


def write_all(run_dir: Path) -> Path:
    units = sorted(counted(run_dir).each(("length",)), key=lambda unit: unit.key)
    table = pd.DataFrame([r for unit in units for r in unit.records])
    write_each(run_dir, {"lengths": table}, {})
    return run_dir / "tables/lengths.csv"
