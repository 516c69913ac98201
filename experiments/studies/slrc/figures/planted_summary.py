"""The planted table in short, as the README has it.

`python -m faithscope.experiments.studies.slrc.figures.planted_summary`
Give it a `planted.csv`; without one it reads `docs/planted.csv`, which is of a run of
`configs/planted.yaml` as shipped.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pandas as pd

from faithscope.experiments.analysis.by_unit import UNIT_WORDS
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.studies.slrc.tables.measures import MEASURES

SHIPPED = Path("docs") / "planted.csv"
_HEADING = ("measure", "decorative", "confound", "follows p", "step named", "calls")


def short_table(planted: pd.DataFrame) -> str:
    """Markdown of the measures that have words for it (`Measure.in_short`); – where no number."""
    lines = [_HEADING, ("---", *["---:"] * (len(_HEADING) - 1))]
    told = ("auroc", "auroc_confound", "spearman_p", "step_hit_rate")
    for measure in (m for m in MEASURES.values() if m.in_short):
        for row in rows(where(planted, measure=measure.name)):
            several = "unit" in row and len(set(planted["unit"])) > 1
            unit = f" ({UNIT_WORDS[row['unit']]})" if several else ""
            named = f"{measure.in_short}{unit}"
            lines.append((named, *(_decimals(row[x]) for x in told), f"{row['forwards']:.0f}"))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _decimals(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}".replace("0.", ".").replace("-", "−")


if __name__ == "__main__":
    print(short_table(pd.read_csv(sys.argv[1] if len(sys.argv) > 1 else SHIPPED)))
