"""Attention of the answer to the reasoning, real against shuffled (SLRC, 2.7, Table 4)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from faithscope.experiments.tables import stats
from faithscope.experiments.tables.outcomes import Record, of_probe
from faithscope.experiments.tables.tidy import columns, with_interval
from faithscope.probes.attention import REGIONS

SEMANTIC, POSITIONAL = 0.07, 0.05
"""Gaps from, and up to, which a model reads the content of its reasoning, or its place only."""
SHARES = ("real", "shuffled", "gap")
DROPS = tuple(f"{name}_drop" for name in SHARES)
ALLOCATED = tuple(name for name in REGIONS if name != "reasoning")
_BY_LAYER = {"real": "reasoning_by_layer", "shuffled": "shuffled_by_layer", "gap": "gap_by_layer"}


def signal(gap: float) -> str:
    """`semantic`, `borderline` or `positional`, by the thresholds that Table 4 goes by."""
    if math.isnan(gap):
        return ""
    return "semantic" if gap >= SEMANTIC else "positional" if gap <= POSITIONAL else "borderline"


def attention_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """Shares of the answer's attention, means over items with bootstrap intervals.

    `real`, `shuffled` and `gap` are means over layers and heads, `…_drop` what the mean over
    heads loses from the first layer to the last; `signal` and `signal_drop` class either gap.
    The other regions and `entropy` (nats) are of the real reasoning.
    """
    found = []
    for (model, task), same in of_probe(records, "attention"):
        row: dict[str, Any] = {"model": model, "task": task, "n": len(same)}
        for name in (*SHARES, *DROPS):
            values = [r[name] for r in same]
            row |= columns(name, stats.mean_of_items(values, seed=seed, resamples=resamples))
        row |= {"signal": signal(row["gap"]), "signal_drop": signal(row["gap_drop"])}
        for name in (*ALLOCATED, "entropy"):
            row[name] = math.fsum(r[name] for r in same) / len(same)
        row["n_layers"], row["n_heads"] = same[0]["n_layers"], same[0]["n_heads"]
        row["question_found"] = sum(r["question_found"] for r in same)
        found.append(row)
    names = ["model", "task", "n", *with_interval(*SHARES), "signal", *with_interval(*DROPS)]
    rest = ["signal_drop", *ALLOCATED, "entropy", "n_layers", "n_heads", "question_found"]
    return pd.DataFrame(found, columns=[*names, *rest])


def attention_by_layer_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """The same per layer (from 1), means over heads and then over items; `depth` = layer / L."""
    found = []
    for (model, task), same in of_probe(records, "attention"):
        for i in range(same[0]["n_layers"]):
            row: dict[str, Any] = {"model": model, "task": task, "layer": i + 1}
            row |= {"depth": (i + 1) / same[0]["n_layers"], "n": len(same)}
            for name, field in _BY_LAYER.items():
                values = [r[field][i] for r in same]
                row |= columns(name, stats.mean_of_items(values, seed=seed, resamples=resamples))
            for name in ALLOCATED:
                row[name] = math.fsum(r[f"{name}_by_layer"][i] for r in same) / len(same)
            row["entropy"] = math.fsum(r["entropy_by_layer"][i] for r in same) / len(same)
            found.append(row)
    names = ["model", "task", "layer", "depth", "n", *with_interval(*SHARES), *ALLOCATED]
    return pd.DataFrame(found, columns=[*names, "entropy"])
