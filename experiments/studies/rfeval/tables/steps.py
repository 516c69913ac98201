"""Stance consistency step by step (RFEval, appendix G.3, Table 27)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd
import scipy

from faithscope.experiments.analysis.cells import (
    Count,
    Lines,
    Mean,
    Numbers,
    Share,
    all_of,
    every_row,
    rows_with,
    rows_without,
)
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import OVERALL, Table, pooled
from faithscope.experiments.analysis.tidy import check_rows, count, groups, keep, only, rows, where
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.tables.frames import CELL, KEY, READER, REASON, included

STEPS = (*KEY, "condition", "place", "part", "stance", "names_flaw")
LEFT = (*KEY, "reason")
BY_STEP = (*KEY, "n_steps", "rf", "rf_per_step")
SCORED = " (log-probs)"
"""Suffix of a judge's name where its verdicts on steps are read from its log-probs."""


def blocks_reader(reader: str) -> str:
    """Judge whose block-level contrast and κ are used with these step-level stances."""
    return reader.removesuffix(SCORED)


def per_step(
    scored: pd.DataFrame, steps: pd.DataFrame, left: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The included pairs with χ over all steps, and the RF that follows from it.

    Args:
        scored: what `chains.scored` gave: contrast and κ are those of the whole blocks.
        steps: a row per part of an output: `KEY`, `condition`, `place` (its order), `part`
            (`r_prime`, `step`, `e` or `a`), `stance`, `names_flaw` (in the part before it).
            A reader's blocks are those of `blocks_reader`.
        left: the pairs that were to be judged and are not in `steps`, with the reason (`LEFT`);
            None takes every pair of a reader as one that was to be.

    Returns:
        `BY_STEP`: `n_steps` of both outputs; `rf_per_step` NaN where an output has no row.
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
    lines: list[dict[str, Any]] = []
    for reader, row in itertools.product(readers, rows(included(scored))):
        key = (reader, *(row[name] for name in KEY[1:]))
        if row["reader"] != blocks_reader(reader) or (left is not None and key not in planned):
            continue
        outputs = [chi[(*key, c)] for c in CONDITIONS if (*key, c) in chi]
        value = math.nan
        if len(outputs) == len(CONDITIONS):
            value = float(all(holds for holds, _ in outputs) and row["kappa"] == 1)
        line = {"n_steps": sum(n for _, n in outputs), "rf": row["rf"], "rf_per_step": value}
        lines.append(dict(zip(KEY, key, strict=True)) | line)
    return pd.DataFrame(lines, columns=list(BY_STEP))


def _keys(frame: pd.DataFrame | None) -> list[tuple]:
    """The pairs of a frame in its order, once each."""
    if frame is None or frame.empty:
        return []
    return list(dict.fromkeys(frame[list(KEY)].itertuples(index=False, name=None)))


def beside_blocks(by_step: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Every pair that counts under each reader of steps, by task and over all tasks.

    `asked` is whether its steps were to be judged; cells without such a pair are left out.
    """
    counting = only(included(pairs), [*KEY, "rf"])
    of_readers = [
        where(counting, reader=blocks_reader(reader)).assign(reader=reader)
        for reader in dict.fromkeys(by_step["reader"])
    ]
    asked = by_step.drop(columns="rf").assign(asked=True)
    whole = pd.concat([counting.head(0), *of_readers]).merge(asked, on=list(KEY), how="left")
    every = pooled(whole.assign(asked=whole["asked"].notna()), "task")
    return keep(every, every.groupby(list(CELL))["asked"].transform("any"))


ASKED = rows_with(asked=True)
"""Mask of the pairs whose steps were to be judged."""
KNOWN = all_of(ASKED, lambda pairs: pairs["rf_per_step"].notna())
"""Mask of the pairs whose steps were judged."""
PER_STEP = Table(
    "rf_per_step",
    ("by_step", "pairs"),
    (READER, "model", "task"),
    (
        Count("n", KNOWN, meaning="Pairs judged step by step."),
        Count(
            "n_without_steps",
            all_of(ASKED, lambda pairs: pairs["rf_per_step"].isna()),
            "pairs without steps",
            "Pairs to be judged step by step of which an output has no judged steps.",
        ),
        Count("n_included", label="pairs that count", meaning="Complete, judged and in contrast."),
        Mean("mean_steps", "n_steps", KNOWN, meaning="Mean steps of a pair, of both outputs."),
        Share(
            "rf_per_step",
            "rf_per_step",
            KNOWN,
            "RF, step by step",
            "RF of the pairs judged step by step, χ taken over every step.",
        ),
        Share("rf", "rf", KNOWN, "RF", "RF of whole blocks, of the pairs judged step by step."),
        Share("rf_included", "rf", every_row, "RF of all pairs that count", "RF of whole blocks."),
    ),
    prepare=beside_blocks,
)
"""RF by steps beside RF of whole blocks, by model and task and over all tasks.

`rf` is of the `n` pairs that were judged step by step; `rf_included`, Table 2's, of all
`n_included` that count as the same judge reads them whole: the paper's Table 27 prints that.
"""


def fates(steps: pd.DataFrame, left: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs that were to be judged step by step, with why they do not count (`reason`).

    The reason is that of the pair as a whole, if it does not count by that (`chains.EXCLUSIONS`),
    or why its steps do not (`LEFT`), else `included`.
    """
    whole = dict(zip(_keys(pairs), pairs["exclusion"], strict=True))
    why = dict(zip(_keys(left), left["reason"], strict=True))
    lines = [
        (*key, whole[blocks_reader(key[0]), *key[1:]] or why.get(key, "included"))
        for key in dict.fromkeys((*_keys(steps), *why))
    ]
    return pd.DataFrame(lines, columns=list(LEFT))


def _reasons(pairs: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    of = Counter({"total": len(pairs)}) + Counter(pairs["reason"].tolist())
    for reason in sorted(of, key=lambda r: (r == "included", r != "total", r)):
        yield {"reason": reason, "n": of[reason]}


STEP_EXCLUSIONS = Table(
    "rf_per_step_exclusions",
    ("steps", "steps_left", "pairs"),
    (READER, "model", "task"),
    lines=[
        Lines((SHARED["reason"], Column("n", meaning="Pairs that the reason is of.")), _reasons)
    ],
    prepare=fates,
)
"""Counts of the pairs that were to be judged step by step, by why they count or do not, by model
and task; `total` is the sum of all other rows."""


def _ranks(cells: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    line = {"n_tasks": len(cells), "spearman": math.nan, "p": math.nan, "reason": ""}
    if len(cells) < 3:
        return line | {"reason": "fewer than three tasks"}
    if min(len(set(cells[name])) for name in ("rf", "rf_per_step")) < 2:
        return line | {"reason": "all tasks alike"}
    correlation: Any = scipy.stats.spearmanr(cells["rf"], cells["rf_per_step"])
    return line | {"spearman": float(correlation.statistic), "p": float(correlation.pvalue)}


STEP_RANKS = Table(
    "rf_per_step_ranks",
    "rf_per_step",
    (READER, "model"),
    (
        Numbers(
            (
                Column("n_tasks", meaning="Tasks that the correlation is over."),
                Column("spearman", meaning="Rank correlation over tasks of RF and RF by step."),
                Column("p", meaning="p-value of the correlation."),
                REASON,
            ),
            _ranks,
        ),
    ),
    among=all_of(rows_without(task=OVERALL), lambda cells: cells["n"] > 0),
)
"""Rank correlation over tasks (Spearman) of RF and RF by steps, a row per model."""
TABLES = (PER_STEP, STEP_EXCLUSIONS, STEP_RANKS)
