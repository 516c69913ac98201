"""How much models write, and how long it takes (RFEval, Tables 12 and 14)."""

from __future__ import annotations

import pandas as pd

from experiments.rfeval.metrics.frames import OVERALL, groups, numbers, only, with_overall

LENGTHS = ("model", "task", "item", "condition", "tokens", "seconds")
"""A row per output: tokens generated (reasoning, explanation and answer; without r′), and
seconds that it took; NaN where not known."""
LENGTH_TABLE = ["model", "task", "condition", "n", "mean_tokens", "median_tokens", "total_tokens"]
LENGTH_TABLE += ["total_seconds"]


def length_table(lengths: pd.DataFrame) -> pd.DataFrame:
    """A row per model, task and condition, and over all tasks; outputs cut off count as well.

    Raises:
        ValueError: a column is missing, or an output is there twice.
    """
    if lengths.empty:
        return pd.DataFrame(columns=LENGTH_TABLE)
    if missing := [c for c in LENGTHS if c not in lengths.columns]:
        raise ValueError(f"rfeval lengths: no column {missing[0]!r}; give {', '.join(LENGTHS)}")
    key = ["model", "task", "item", "condition"]
    if lengths.duplicated(subset=key).any():
        raise ValueError("rfeval lengths: an output is there twice; keep one row of each")
    made = []
    for about, of in groups(with_overall(lengths, "task"), ("model", "task", "condition")):
        tokens = numbers(of["tokens"])
        row = {**about, "n": len(of), "mean_tokens": tokens.mean()}
        row |= {"median_tokens": float(pd.Series(tokens).median()), "total_tokens": tokens.sum()}
        made.append(row | {"total_seconds": numbers(of["seconds"]).sum()})
    table = pd.DataFrame(made, columns=LENGTH_TABLE)
    last = (table["task"] == OVERALL).astype(int)
    ordered = table.assign(_last=last).sort_values("_last", kind="stable", ignore_index=True)
    return only(ordered, LENGTH_TABLE)
