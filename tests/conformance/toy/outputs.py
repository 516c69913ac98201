from __future__ import annotations

from pathlib import Path

import pandas as pd

from faithscope.experiments.analysis.write import write_each
from faithscope.experiments.engine.planfile import counted


def write_all(run_dir: Path) -> Path:
    units = sorted(counted(run_dir).each(("word", "length")), key=lambda unit: unit.key)
    columns = ("model", "item", "probe", "text", "length")
    table = pd.DataFrame([{c: r.get(c) for c in columns} for u in units for r in u.records])
    write_each(run_dir, {"words": table}, {})
    return run_dir / "tables/words.csv"
