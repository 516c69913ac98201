"""Answer tracing over items: when the answer is there, and which steps brought it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from faithscope.experiments.tables import stats
from faithscope.experiments.tables.label_mass import MASS_COLUMNS, mass_columns
from faithscope.experiments.tables.outcomes import Record, of_probe
from faithscope.experiments.tables.tidy import columns, with_interval
from faithscope.probes.tracing import POSITIONS

MEANS = ("p_before", "p_after", "rise", "early_depth", "horizon_depth", "largest", "spearman")


def tracing_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """Means over items with bootstrap intervals; see `probes.tracing` for each measure.

    `settled_before` is the share of items whose answer stands before any reasoning (early
    answering), `no_horizon` of those in which no step has an effect, with Wilson intervals.
    """
    found = []
    for (model, task), same in of_probe(records, "tracing"):
        row: dict[str, Any] = {"model": model, "task": task, "n": len(same)}
        for name in MEANS:
            values = [r[name] for r in same if r[name] is not None]
            row |= columns(name, stats.mean_of_items(values, seed=seed, resamples=resamples))
        row |= columns("settled_before", stats.share([r["early"] == 0 for r in same]))
        row |= columns("no_horizon", stats.share([r["horizon"] == 0 for r in same]))
        row |= mass_columns(same, seed=seed, resamples=resamples)
        found.append(row | {"n_steps": sum(r["n_steps"] for r in same)})
    names = ["model", "task", "n", *with_interval(*MEANS, "settled_before", "no_horizon")]
    return pd.DataFrame(found, columns=[*names, "n_steps", *MASS_COLUMNS])


def tracing_by_position_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """Mean probability of the traced answer by relative place in the reasoning, 0 to 1."""
    found = []
    for (model, task), same in of_probe(records, "tracing"):
        for i in range(POSITIONS):
            p = stats.mean_of_items([r["curve"][i] for r in same], seed=seed, resamples=resamples)
            place = {"model": model, "task": task, "position": i / (POSITIONS - 1)}
            found.append(place | {"n": len(same)} | columns("p", p))
    return pd.DataFrame(found, columns=["model", "task", "position", "n", *with_interval("p")])
