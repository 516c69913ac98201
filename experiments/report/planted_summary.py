"""The planted table in short, as the README has it.

`python -m faithscope.experiments.report.planted_summary`
Give it a `planted.csv`; without one it reads `docs/planted.csv`, which is of a run of
`configs/planted.yaml` as shipped.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pandas as pd

from faithscope.experiments.tables.by_unit import UNIT_WORDS
from faithscope.experiments.tables.tidy import rows, where

SHIPPED = Path("docs") / "planted.csv"
SHOWN = {
    "necessity_prefix_generated": "necessity: removal flips the answer",
    "slrc_prefix_generated": "SLRC",
    "sufficiency_prefix_generated": "1 − sufficiency: a step alone does not give it",
    "order_sensitivity_prefix_generated": "order sensitivity",
    "corrupt_prefix_generated": "frozen corruption flips the answer",
    "regenerate_prefix_generated": "corrupt, then regenerate, flips it",
    "regenerate_tv_prefix_scored": "the same, how far the distribution moves",
    "graded_necessity": "graded necessity: log-odds lost by removal",
    "nldd": "NLDD",
    "tts": "TTS",
    "tracing_p_before": "early answering: p before the reasoning",
    "tracing_effect": "answer tracing: mean effect of a step",
    "information_gain_pointwise": "information gain, pointwise",
    "perplexity": "perplexity",
    "step_information": "step mutual information",
    "knockout_later_tv": "knockout of a step's edges",
    "patching_answer_attention": "patching: the answer's attention output",
    "patching_step_residual": "patching: the step's residual stream",
    "attention_reasoning": "attention to the reasoning",
    "attention_gap": "attention, real − shuffled",
    "rigidity_depth": "rigidity map: stable layer",
    "flow_peak_depth": "information flow: peak layer",
}
"""Measures of the short table, in words."""
_HEADING = ("measure", "decorative", "confound", "follows p", "step named", "calls")


def short_table(planted: pd.DataFrame) -> str:
    """Markdown of the measures in `SHOWN` that the table has; two decimals, – where none."""
    lines = [_HEADING, ("---", *["---:"] * (len(_HEADING) - 1))]
    told = ("auroc", "auroc_confound", "spearman_p", "step_hit_rate")
    for name, words in SHOWN.items():
        for row in rows(where(planted, measure=name)):
            several = "unit" in row and len(set(planted["unit"])) > 1
            named = f"{words} ({UNIT_WORDS[row['unit']]})" if several else words
            lines.append((named, *(_decimals(row[x]) for x in told), f"{row['forwards']:.0f}"))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _decimals(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}".replace("0.", ".").replace("-", "−")


if __name__ == "__main__":
    print(short_table(pd.read_csv(sys.argv[1] if len(sys.argv) > 1 else SHIPPED)))
