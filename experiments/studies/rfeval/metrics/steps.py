"""Stance consistency step by step (RFEval, appendix G.3, Table 27)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import pandas as pd
from scipy.stats import spearmanr

from faithscope.experiments.analysis.tidy import (
    Rows,
    check_rows,
    columns,
    count,
    groups,
    keep,
    rows,
    tabled,
    with_interval,
)
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.metrics.frames import (
    CELL,
    KEY,
    OVERALL,
    WAY,
    included,
    share_of,
    with_overall,
)

STEPS = (*KEY, "condition", "place", "part", "stance", "names_flaw")
PER_STEP = [*CELL, "n", "n_without_steps", "n_included", "mean_steps"]
PER_STEP += with_interval("rf_per_step", "rf", "rf_included")
LEFT = (*KEY, "reason")
STEP_EXCLUSIONS = [*CELL, "reason", "n"]
SCORED = " (log-probs)"
"""Ends the name of a judge whose verdicts on steps are read from its log-probs."""


def blocks_reader(reader: str) -> str:
    """Who read the whole blocks whose contrast and κ go with a reader's steps."""
    return reader.removesuffix(SCORED)


@tabled(*KEY, "n_steps", "rf", "rf_per_step")
def per_step(scored: pd.DataFrame, steps: pd.DataFrame, left: pd.DataFrame | None = None) -> Rows:
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
    for key, of in groups(steps.sort_values("place", kind="stable"), (*KEY, "condition")):
        parts = list(zip(of["stance"], of["names_flaw"], strict=True))
        holds = all(one == other or flaw for (one, _), (other, flaw) in itertools.pairwise(parts))
        chi[tuple(key.values())] = holds, count(of["part"] == "step")
    planned = {key[: len(KEY)] for key in chi} | {*_keys(left)}
    readers: dict[str, None] = dict.fromkeys(
        map(str, [*steps["reader"], *([] if left is None else left["reader"])])
    )
    for reader, row in itertools.product(readers, rows(included(scored))):
        key = (reader, *(row[name] for name in KEY[1:]))
        if row["reader"] != blocks_reader(reader) or (left is not None and key not in planned):
            continue
        outputs = [chi[(*key, c)] for c in CONDITIONS if (*key, c) in chi]
        value = math.nan
        if len(outputs) == len(CONDITIONS):
            value = float(all(holds for holds, _ in outputs) and row["kappa"] == 1)
        line = {"n_steps": sum(n for _, n in outputs), "rf": row["rf"], "rf_per_step": value}
        yield dict(zip(KEY, key, strict=True)) | line


def step_exclusions(
    scored: pd.DataFrame, steps: pd.DataFrame, left: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Where the pairs that were to be judged step by step went, by model and task.

    The reason is that of the pair as a whole, if it does not count by that (`chains.EXCLUSIONS`),
    or why its steps do not (`LEFT`); `total` is all others together.
    """
    whole = dict(zip(_keys(scored), scored["exclusion"], strict=True))
    why = dict(zip(_keys(left), [] if left is None else left["reason"], strict=True))
    counts: dict[tuple, Counter[str]] = {}
    for key in dict.fromkeys((*_keys(steps), *why)):
        reader, model, task, item = key
        of_block = whole[blocks_reader(reader), model, task, item]
        of = counts.setdefault((reader, model, task), Counter())
        of.update(["total", of_block or why.get(key, "included")])
    lines = [
        (*key, reason, of[reason])
        for key, of in counts.items()
        for reason in sorted(of, key=lambda r: (r == "included", r != "total", r))
    ]
    return pd.DataFrame(lines, columns=STEP_EXCLUSIONS)


def _keys(frame: pd.DataFrame | None) -> list[tuple]:
    """The pairs of a frame in its order, once each."""
    if frame is None or frame.empty:
        return []
    return list(dict.fromkeys(frame[list(KEY)].itertuples(index=False, name=None)))


@tabled(*PER_STEP)
def per_step_table(pairs: pd.DataFrame, scored: pd.DataFrame) -> Rows:
    """RF per step beside RF of whole blocks, by model and task and overall.

    `rf` is of the `n` pairs that were judged step by step; `rf_included`, Table 2's, of all
    `n_included` that count as the same judge reads them whole: the paper's Table 27 prints that.

    Args:
        pairs: what `per_step` gave.
        scored: what it was given.
    """
    blocks = groups(with_overall(included(scored), "task"), CELL)
    whole = {tuple(key.values()): of["rf"] for key, of in blocks}

    for key, of in groups(with_overall(pairs, "task"), CELL):
        known = of.dropna(subset=["rf_per_step"])
        every = whole[blocks_reader(key["reader"]), key["model"], key["task"]]
        line = {**key, "n": len(known), "n_without_steps": len(of) - len(known)}
        line |= {"n_included": len(every), "mean_steps": known["n_steps"].mean()}
        shares = {"rf_per_step": known["rf_per_step"], "rf": known["rf"], "rf_included": every}
        for name, values in shares.items():
            line |= columns(name, share_of(values))
        yield line


def step_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Whether the two order the tasks alike: Spearman over tasks, a row per model."""
    cells = keep(table, (table["task"] != OVERALL) & (table["n"] > 0))
    lines = [key | {"n_tasks": len(of)} | _ranks(of) for key, of in groups(cells, WAY)]
    return pd.DataFrame(lines, columns=[*WAY, "n_tasks", "spearman", "p", "reason"])


def _ranks(of: pd.DataFrame) -> dict[str, Any]:
    line = {"spearman": math.nan, "p": math.nan, "reason": ""}
    if len(of) < 3:
        return line | {"reason": "fewer than three tasks"}
    if min(len(set(of[name])) for name in ("rf", "rf_per_step")) < 2:
        return line | {"reason": "all tasks alike"}
    correlation: Any = spearmanr(of["rf"], of["rf_per_step"])
    return line | {"spearman": float(correlation.statistic), "p": float(correlation.pvalue)}
