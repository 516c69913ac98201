"""Judged against logit-based faithfulness, instance by instance: the same pairs, both ways."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.stats import kappa, wilson
from faithscope.experiments.analysis.tidy import columns, count, groups, only, with_interval
from faithscope.experiments.studies.rfeval.metrics.evaluator import CONSTANT
from faithscope.experiments.studies.rfeval.metrics.frames import CONDITIONS, KEY, WAY, with_overall

MEASURES = {"rf": "rf", "contrast": "contrast"}
MEASURES |= {f"chi_{c}": f"{c}_chi" for c in CONDITIONS} | {"kappa": "kappa"}
"""RF and what it is made of, by the names of `faithfulness.RFEVAL`; with the columns of
`chains.scored`."""
_ITEM = KEY[1:]
PAIRS = [*KEY, "exclusion", "exclusion_log_probs", "faithful"]
PAIRS += [column for name in MEASURES for column in (name, f"{name}_log_probs")]
FAITHFUL = {(1, 1): "both", (1, 0): "judge_only", (0, 1): "log_probs_only", (0, 0): "neither"}
"""Whose RF is 1: (the judge's, that by log-probs)."""
AGAINST = [*WAY, "task", "measure", "n", "n_of_judge_only", "n_of_log_probs_only"]
AGAINST += [*with_interval("by_judge", "by_log_probs"), *(f"n_{x}" for x in FAITHFUL.values())]
AGAINST += [*with_interval("agreement"), "cohen_kappa", "reason"]


def pairs_against_log_probs(judged: pd.DataFrame, unjudged: pd.DataFrame) -> pd.DataFrame:
    """Every pair that both have a row of, once for every judge.

    Args:
        judged: what `chains.scored` gave of the judges' rows.
        unjudged: the same of the rows of `without_judge.row_without_judge`.

    Returns:
        `PAIRS`: why each leaves the pair out ("" where it counts), `faithful` (of `FAITHFUL`, ""
        where the pair does not count for both), and every measure of each, NaN where not known.
    """
    if judged.empty or unjudged.empty:
        return pd.DataFrame(columns=PAIRS)
    taken = {column: name for name, column in MEASURES.items()}
    one = only(judged, [*KEY, "exclusion", *taken]).rename(columns=taken)
    other = only(unjudged, [*_ITEM, "exclusion", *taken])
    other = other.rename(
        columns={"exclusion": "exclusion_log_probs"}
        | {column: f"{name}_log_probs" for column, name in taken.items()}
    )
    made = one.merge(other, on=list(_ITEM), how="inner", validate="many_to_one")
    made["faithful"] = [
        FAITHFUL[int(row["rf"]), int(row["rf_log_probs"])]
        if not row["exclusion"] and not row["exclusion_log_probs"]
        else ""
        for row in made.to_dict("records")
    ]
    return only(made, PAIRS)


def against_log_probs(pairs: pd.DataFrame) -> pd.DataFrame:
    """How far the two agree, a row per measure, by judge, model and task, and pooled.

    Contrast is of the pairs whose contrast both know; RF, χ and κ are of the pairs that count
    for both.

    Args:
        pairs: what `pairs_against_log_probs` gave.

    Returns:
        `n` pairs of both and those of one of them only; the share that each finds 1 among the `n`,
        how many both find so, one alone, neither; the share of equal findings, and Cohen's κ, NaN
        with the `reason` where both say one and the same always.
    """
    made = []
    for key, of in groups(with_overall(pairs, "task", "model"), (*WAY, "task")):
        for name in MEASURES:
            if name == "contrast":
                mine, theirs = (of[x].notna() for x in (name, f"{name}_log_probs"))
            else:
                mine, theirs = (of[x] == "" for x in ("exclusion", "exclusion_log_probs"))
            both = of.loc[mine & theirs]
            only_one = {"judge": count(mine & ~theirs), "log_probs": count(theirs & ~mine)}
            row = {**key, "measure": name, "n": len(both)}
            row |= {f"n_of_{who}_only": n for who, n in only_one.items()}
            made.append(row | _compared(both[name].tolist(), both[f"{name}_log_probs"].tolist()))
    return pd.DataFrame(made, columns=AGAINST)


def _compared(judge: list[float], log_probs: list[float]) -> dict[str, Any]:
    found = [(int(a), int(b)) for a, b in zip(judge, log_probs, strict=True)]
    n = len(found)
    row: dict[str, Any] = columns("by_judge", wilson(sum(a for a, _ in found), n))
    row |= columns("by_log_probs", wilson(sum(b for _, b in found), n))
    row |= {f"n_{name}": found.count(values) for values, name in FAITHFUL.items()}
    row |= columns("agreement", wilson(sum(a == b for a, b in found), n))
    value = kappa([a for a, _ in found], [b for _, b in found]) if n else math.nan
    reason = "no pair counts for both" if not n else CONSTANT if math.isnan(value) else ""
    return row | {"cohen_kappa": value, "reason": reason}
