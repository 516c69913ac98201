"""Tables about layers, of a run that has measured exactly what the SLRC paper prints in section
2.7."""

from __future__ import annotations

import math

import pandas as pd
from printed_cells import printed, value


def layer_tables(model: str = "m", unit: str = "sentence") -> dict[str, pd.DataFrame]:
    """Tables of a run that has measured what the paper prints in section 2.7."""
    of = {c["column"]: value(c) for c in printed("slrc", "section2_7")}
    key = {"model": model, "task": "gsm8k", "n": 50, "n_layers": int(of["Layers"])}
    stable, depth, reasoning = of["Stable layer"], of["Stable depth"], of["CoT"]
    rigidity = key | {"lens": "logit"} | around("stable_layer", stable) | around("depth", depth)
    peak = {"peak_layer": of["Peak layer"], "peak_depth": of["Peak depth"]}
    flow = key | {k: x for name, v in peak.items() for k, x in around(name, v).items()}
    flow |= around("peak_value", of["Peak value"])
    # a fifth of the row goes to the answer prefix, which the paper does not name
    rest = {"first_token": 0.3, "template": 0.1, "question": 0.8 * of["Question"] - 0.4}
    attention = key | {"unit": unit} | around("real", 0.8 * reasoning) | rest
    rows = {"rigidity": [rigidity, rigidity | {"lens": "tuned", "stable_layer": 1}], "flow": [flow]}
    columns = ["shuffled", "gap", "signal", "gap_drop", "signal_drop"]
    attention |= dict.fromkeys(columns, math.nan) | {"signal": "", "signal_drop": ""}
    rows["attention"] = [attention]
    empty = pd.DataFrame(columns=["model", "task", "unit", "framing", "reading", "n", "multi_step"])
    made = {name: pd.DataFrame(of_name) for name, of_name in rows.items()}
    return made | {"slrc": empty, "steps": empty}


def around(name: str, middle: float) -> dict[str, float]:
    return {name: middle, f"{name}_low": 0.9 * middle, f"{name}_high": 1.1 * middle}
