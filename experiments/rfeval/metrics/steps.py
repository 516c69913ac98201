"""Stance consistency step by step (RFEval, appendix G.3, Table 27)."""

from __future__ import annotations

import itertools
import math
from typing import Any, cast

import pandas as pd
from scipy.stats import spearmanr

from experiments.rfeval.metrics.frames import (
    CONDITIONS,
    KEY,
    OVERALL,
    WAY,
    count,
    included,
    with_overall,
)
from experiments.tables.stats import wilson
from experiments.tables.tidy import columns, with_interval

STEPS = (*KEY, "condition", "place", "part", "stance", "names_flaw")
PER_STEP = [*WAY, "task", "n", "n_without_steps", "mean_steps"]
PER_STEP += with_interval("rf_per_step", "rf")
RANKS = [*WAY, "n_tasks", "spearman", "p", "reason"]


def per_step(scored: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """The included pairs with χ taken over all steps, and RF from it.

    Args:
        scored: what `chains.scored` gave: contrast and κ are those of the whole blocks.
        steps: a row per part of an output: `KEY`, `condition`, `place` (its order), `part`
            (`r_prime`, `step`, `e` or `a`), `stance`, `names_flaw` (in the part before it).

    Returns:
        `KEY`, `n_steps` (of both outputs), `rf`, `rf_per_step`; NaN where an output has no row.

    Raises:
        ValueError: a column is missing, or two rows are of one place.
    """
    if missing := [c for c in STEPS if c not in steps.columns]:
        raise ValueError(f"rfeval steps: no column {missing[0]!r}; give {', '.join(STEPS)}")
    if steps.duplicated(subset=[*KEY, "condition", "place"]).any():
        raise ValueError("rfeval steps: two rows of one place of one output; keep one of them")
    chi: dict[tuple, tuple[bool, int]] = {}
    ordered = steps.sort_values("place", kind="stable")
    for key, of in ordered.groupby([*KEY, "condition"], sort=False):
        parts = list(zip(of["stance"], of["names_flaw"], strict=True))
        holds = all(one == other or flaw for (one, _), (other, flaw) in itertools.pairwise(parts))
        chi[cast(tuple, key)] = holds, count(of["part"] == "step")
    made = []
    for row in included(scored).to_dict("records"):
        key = tuple(row[name] for name in KEY)
        found = [chi.get((*key, condition)) for condition in CONDITIONS]
        whole = [f for f in found if f is not None]
        value = math.nan
        if len(whole) == len(CONDITIONS):
            value = float(all(f[0] for f in whole) and row["kappa"] == 1)
        about: dict[str, Any] = dict(zip(KEY, key, strict=True))
        n = sum(f[1] for f in whole)
        made.append({**about, "n_steps": n, "rf": row["rf"], "rf_per_step": value})
    return pd.DataFrame(made, columns=[*KEY, "n_steps", "rf", "rf_per_step"])


def per_step_table(pairs: pd.DataFrame) -> pd.DataFrame:
    """RF per step beside RF of whole blocks, of the same pairs, by model and task and overall."""
    made = []
    for key, of in with_overall(pairs, "task").groupby([*WAY, "task"], sort=False):
        kept = of.dropna(subset=["rf_per_step"])
        row: dict[str, Any] = dict(zip((*WAY, "task"), cast(tuple, key), strict=True))
        row |= {"n": len(kept), "n_without_steps": len(of) - len(kept)}
        row |= {"mean_steps": kept["n_steps"].mean()}
        for name in ("rf_per_step", "rf"):
            row |= columns(name, wilson(count(kept[name] == 1), len(kept)))
        made.append(row)
    return pd.DataFrame(made, columns=PER_STEP)


def step_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Whether the two order the tasks alike: Spearman over tasks, a row per model."""
    made = []
    cells = table.loc[(table["task"] != OVERALL) & (table["n"] > 0)]
    for key, of in cells.groupby(list(WAY), sort=False):
        row: dict[str, Any] = dict(zip(WAY, cast(tuple, key), strict=True))
        row |= {"n_tasks": len(of), "spearman": math.nan, "p": math.nan, "reason": ""}
        if len(of) < 3:
            row["reason"] = "fewer than three tasks"
        elif of["rf"].nunique() < 2 or of["rf_per_step"].nunique() < 2:
            row["reason"] = "all tasks alike"
        else:
            found: Any = spearmanr(of["rf"], of["rf_per_step"])
            row |= {"spearman": float(found.statistic), "p": float(found.pvalue)}
        made.append(row)
    return pd.DataFrame(made, columns=RANKS)
