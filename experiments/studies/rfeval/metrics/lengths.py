"""How much models write, and how long it takes (RFEval, Tables 12 and 14)."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.tidy import check_rows, groups, keep
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL, with_overall

LENGTHS = ("model", "task", "item", "condition", "tokens", "seconds", "elapsed", "devices")
"""A row per output: tokens generated (reasoning, explanation and answer; without r′); `seconds`
from when it was asked for until it ended, of which those in flight together overlap; `elapsed`,
seconds since the output before it ended, which add up to the worker's time; and how many
accelerators wrote it. NaN where not known."""
LENGTH_TABLE = ["model", "task", "condition", "n", "mean_tokens", "median_tokens", "total_tokens"]
LENGTH_TABLE += ["mean_seconds"]
HOURS = ["model", "n", "n_timed", "hours", "devices", "device_hours"]


def length_table(lengths: pd.DataFrame) -> pd.DataFrame:
    """A row per model, task and condition, and over all tasks; outputs cut off count as well.

    Raises:
        ValueError: a column is missing, or an output is there twice.
    """
    if lengths.empty:
        return pd.DataFrame(columns=LENGTH_TABLE)
    check_rows("rfeval lengths", lengths, LENGTHS, ("model", "task", "item", "condition"))
    lines = []
    for about, of in groups(with_overall(lengths, "task"), ("model", "task", "condition")):
        tokens, seconds = of["tokens"].astype(float), of["seconds"].astype(float)
        line = {**about, "n": len(of), "mean_tokens": tokens.mean(), "mean_seconds": seconds.mean()}
        lines.append(line | {"median_tokens": tokens.median(), "total_tokens": tokens.sum()})
    table = pd.DataFrame(lines, columns=LENGTH_TABLE)
    return table.sort_values("task", key=lambda t: t == OVERALL, kind="stable", ignore_index=True)


def hours_table(lengths: pd.DataFrame) -> pd.DataFrame:
    """A row per model: hours of generation, and those times the accelerators at work (Table 12).

    Hours are of the `n_timed` outputs whose time is known, and add up over workers: of two that
    ran side by side, both count, as their devices do. Loading weights is not in them. Devices are
    not known of servers and services, and a CPU has none.
    """
    lines = []
    for about, of in groups(lengths, ("model",)) if len(lengths) else ():
        timed = keep(of, of["elapsed"].notna())
        hours, devices = timed["elapsed"].astype(float) / 3600, timed["devices"].astype(float)
        line = {**about, "n": len(of), "n_timed": len(timed)}
        if len(timed):
            line |= {"hours": hours.sum(), "device_hours": (hours * devices).sum(skipna=False)}
        lines.append(line | {"devices": devices.max(skipna=False)})
    return pd.DataFrame(lines, columns=HOURS)
