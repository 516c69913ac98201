"""What asking APIs has cost a run: every call, also those of which no reply came to be counted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import Numbers
from faithscope.experiments.analysis.columns import SHARED
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import keep, numbers
from faithscope.experiments.config.api import API
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import Call

USAGE = tuple(f.name for f in fields(Usage))
COSTS = ("cost", "priced", "estimated_calls", "estimated_cost")


def spend_table(calls: Iterable[Call]) -> pd.DataFrame:
    """The table `SPEND` of the calls of a run."""
    rows = [
        {"model": API + c.model, "cost": c.cost, "estimated": c.estimated}
        | {name: getattr(c.usage, name) for name in USAGE}
        for c in sorted(calls, key=lambda call: API + call.model)
    ]
    frame = pd.DataFrame(rows, columns=["model", *USAGE, "cost", "estimated"])
    return SPEND.make(frame.astype({"cost": float, "estimated": bool}))


def _sums(calls: pd.DataFrame, how: Bootstrap) -> Mapping[str, Any]:
    guessed = keep(calls, calls["estimated"])
    return {name: int(numbers(calls[name]).sum()) for name in USAGE} | {
        "cost": _cost(calls),
        "priced": bool(calls["cost"].notna().all()),
        "estimated_calls": int(numbers(guessed["calls"]).sum()),
        "estimated_cost": _cost(guessed) if len(guessed) else 0.0,
    }


def _cost(calls: pd.DataFrame) -> float:
    known = calls["cost"].dropna().tolist()
    # fsum: the order in which workers' files are read must not change a digit
    return math.fsum(known) if known else math.nan


SPEND = Table(
    "spend", "calls", ("model",), (Numbers(tuple(SHARED[n] for n in (*USAGE, *COSTS)), _sums),)
)
"""A row per model behind an API.

`calls` and tokens (input with what the provider had cached, output with the reasoning) are sums;
`cost` is in dollars at the prices of each call's time, of the calls that had a price (missing where
none had); `priced` says whether all had. Replies from the cache are no calls. Of these sums,
`estimated_calls` and `estimated_cost` are of calls whose server told no usage, or whose reply
nobody saw (stopped, timed out): they are charged the most that was allowed.
"""
