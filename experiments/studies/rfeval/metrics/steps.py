"""Stance consistency step by step (RFEval, appendix G.3, Table 27)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any, cast

import pandas as pd
from scipy.stats import spearmanr

from faithscope.experiments.analysis.stats import wilson
from faithscope.experiments.analysis.tidy import (
    check_rows,
    columns,
    count,
    groups,
    keep,
    with_interval,
)
from faithscope.experiments.studies.rfeval.metrics.frames import (
    CONDITIONS,
    KEY,
    OVERALL,
    WAY,
    included,
    with_overall,
)

STEPS = (*KEY, "condition", "place", "part", "stance", "names_flaw")
PER_STEP = [*WAY, "task", "n", "n_without_steps", "n_included", "mean_steps"]
PER_STEP += with_interval("rf_per_step", "rf", "rf_included")
RANKS = [*WAY, "n_tasks", "spearman", "p", "reason"]
LEFT = (*KEY, "reason")
STEP_EXCLUSIONS = [*WAY, "task", "reason", "n"]
SCORED = " (log-probs)"
"""Ends the name of a judge whose verdicts on steps are read from its log-probs."""


def blocks_reader(reader: str) -> str:
    """Who read the whole blocks whose contrast and κ go with a reader's steps."""
    return reader.removesuffix(SCORED)


def per_step(
    scored: pd.DataFrame, steps: pd.DataFrame, left: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The included pairs with χ taken over all steps, and RF from it.

    Args:
        scored: what `chains.scored` gave: contrast and κ are those of the whole blocks.
        steps: a row per part of an output: `KEY`, `condition`, `place` (its order), `part`
            (`r_prime`, `step`, `e` or `a`), `stance`, `names_flaw` (in the part before it).
            A reader's blocks are those of `blocks_reader`.
        left: the pairs that were to be judged and are not in `steps`, with the reason (`LEFT`);
            None takes every pair of a reader as one that was to be.

    Returns:
        `KEY`, `n_steps` (of both outputs), `rf`, `rf_per_step`; NaN where an output has no row.
        Pairs that were not to be judged step by step are in no row.

    Raises:
        ValueError: a column is missing, or two rows are of one place.
    """
    check_rows("rfeval steps", steps, STEPS, (*KEY, "condition", "place"))
    chi: dict[tuple, tuple[bool, int]] = {}
    ordered = steps.sort_values("place", kind="stable")
    for key, of in ordered.groupby([*KEY, "condition"], sort=False):
        parts = list(zip(of["stance"], of["names_flaw"], strict=True))
        holds = all(one == other or flaw for (one, _), (other, flaw) in itertools.pairwise(parts))
        chi[cast(tuple, key)] = holds, count(of["part"] == "step")
    made = []
    blocks = included(scored).to_dict("records")
    planned = {key[: len(KEY)] for key in chi} | {*_keys(left)}
    asked = [*steps["reader"], *([] if left is None else left["reader"])]
    readers = list(dict.fromkeys(map(str, asked)))
    for reader, row in itertools.product(readers, blocks):
        key = (reader, *(row[name] for name in KEY[1:]))
        if row["reader"] != blocks_reader(reader) or (left is not None and key not in planned):
            continue
        found = [chi.get((*key, condition)) for condition in CONDITIONS]
        whole = [f for f in found if f is not None]
        value = math.nan
        if len(whole) == len(CONDITIONS):
            value = float(all(f[0] for f in whole) and row["kappa"] == 1)
        about: dict[str, Any] = dict(zip(KEY, key, strict=True))
        n = sum(f[1] for f in whole)
        made.append({**about, "n_steps": n, "rf": row["rf"], "rf_per_step": value})
    return pd.DataFrame(made, columns=[*KEY, "n_steps", "rf", "rf_per_step"])


def step_exclusions(scored: pd.DataFrame, steps: pd.DataFrame, left: pd.DataFrame) -> pd.DataFrame:
    """Where the pairs that were to be judged step by step went, by model and task.

    The reason is that of the pair as a whole, if it does not count by that (`chains.EXCLUSIONS`),
    or why its steps do not (`LEFT`); `total` is all others together.
    """
    whole = {tuple(r[n] for n in KEY): r["exclusion"] for r in scored.to_dict("records")}
    why = {tuple(r[n] for n in KEY): r["reason"] for r in left.to_dict("records")}
    counts: dict[tuple, Counter[str]] = {}
    for key in dict.fromkeys((*_keys(steps), *why)):
        reader, model, task, item = key
        of_block = whole[blocks_reader(reader), model, task, item]
        of = counts.setdefault((reader, model, task), Counter())
        of["total"] += 1
        of[of_block or why.get(key, "included")] += 1
    made = [
        dict(zip(STEP_EXCLUSIONS, (*key, reason, of[reason]), strict=True))
        for key, of in counts.items()
        for reason in sorted(of, key=lambda r: (r == "included", r != "total", r))
    ]
    return pd.DataFrame(made, columns=STEP_EXCLUSIONS)


def _keys(frame: pd.DataFrame | None) -> list[tuple]:
    """The pairs of a frame in its order, once each."""
    if frame is None or frame.empty:
        return []
    return list(dict.fromkeys(frame[list(KEY)].itertuples(index=False, name=None)))


def per_step_table(pairs: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """RF per step beside RF of whole blocks, by model and task and overall.

    `rf` is of the `n` pairs that were judged step by step; `rf_included`, Table 2's, of all
    `n_included` that count as the same judge reads them whole: the paper's Table 27 prints that.

    Args:
        pairs: what `per_step` gave.
        scored: what it was given.
    """
    cell = (*WAY, "task")
    blocks = groups(with_overall(included(scored), "task"), cell)
    whole = {tuple(key.values()): of["rf"] for key, of in blocks}
    made = []
    for row, of in groups(with_overall(pairs, "task"), cell):
        kept = of.dropna(subset=["rf_per_step"])
        row |= {"n": len(kept), "n_without_steps": len(of) - len(kept)}
        every = whole[blocks_reader(row["reader"]), row["model"], row["task"]]
        row |= {"n_included": len(every), "mean_steps": kept["n_steps"].mean()}
        for name in ("rf_per_step", "rf"):
            row |= columns(name, wilson(count(kept[name] == 1), len(kept)))
        row |= columns("rf_included", wilson(count(every == 1), len(every)))
        made.append(row)
    return pd.DataFrame(made, columns=PER_STEP)


def step_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Whether the two order the tasks alike: Spearman over tasks, a row per model."""
    made = []
    cells = keep(table, (table["task"] != OVERALL) & (table["n"] > 0))
    for row, of in groups(cells, WAY):
        row |= {"n_tasks": len(of), "spearman": math.nan, "p": math.nan, "reason": ""}
        if len(of) < 3:
            row["reason"] = "fewer than three tasks"
        elif min(of["rf"].nunique(), of["rf_per_step"].nunique()) < 2:
            row["reason"] = "all tasks alike"
        else:
            found: Any = spearmanr(of["rf"], of["rf_per_step"])
            row |= {"spearman": float(found.statistic), "p": float(found.pvalue)}
        made.append(row)
    return pd.DataFrame(made, columns=RANKS)
