"""What asking APIs has cost a run: every call, also those of which no reply came to be counted."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import pandas as pd

from faithscope.experiments.config.api import API
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import Call

USAGE = tuple(f.name for f in fields(Usage))
COLUMNS = ("model", *USAGE, "cost", "priced", "estimated_calls", "estimated_cost")


def spend_table(calls: Iterable[Call]) -> pd.DataFrame:
    """A row per model behind an API.

    `calls` and tokens (input with what the provider had cached, output with the reasoning) are
    sums; `cost` is in dollars at the prices of each call's time, of the calls that had a price
    (missing where none had); `priced` says whether all had. Replies from the cache are no calls.
    Of these sums, `estimated_calls` and `estimated_cost` are of calls whose server told no usage,
    or whose reply nobody saw (stopped, timed out): their tokens are estimates, mostly high ones.
    """
    of_model: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        of_model[API + call.model].append(call)
    rows = [_row(model, calls_of_model) for model, calls_of_model in sorted(of_model.items())]
    of_kind = {"cost": float, "priced": bool, "estimated_cost": float}
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(of_kind)


def _row(model: str, calls: list[Call]) -> dict[str, Any]:
    guessed = [c for c in calls if c.estimated]
    return {name: sum(getattr(c.usage, name) for c in calls) for name in USAGE} | {
        "model": model,
        "cost": _cost(calls),
        "priced": all(c.cost is not None for c in calls),
        "estimated_calls": sum(c.usage.calls for c in guessed),
        "estimated_cost": _cost(guessed) if guessed else 0.0,
    }


def _cost(calls: Iterable[Call]) -> float:
    known = [c.cost for c in calls if c.cost is not None]
    # fsum: the order in which workers' files are read must not change a digit
    return math.fsum(known) if known else math.nan
