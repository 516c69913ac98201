"""Judged against logit-based faithfulness, instance by instance: the same pairs, both ways."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.statistics.stats import kappa, wilson
from faithscope.experiments.analysis.tidy import columns, count, groups, only, with_interval
from faithscope.experiments.studies.rfeval.metrics.frames import (
    CELL,
    CONDITIONS,
    KEY,
    with_overall,
)
from faithscope.experiments.studies.rfeval.metrics.people import CONSTANT

MEASURES = {"rf": "rf", "contrast": "contrast"}
MEASURES |= {f"chi_{c}": f"{c}_chi" for c in CONDITIONS} | {"kappa": "kappa"}
"""RF and what it is made of, by the names of `faithfulness.rf_table`; with the columns of
`chains.scored`."""
PAIRS = [*KEY, "exclusion", "exclusion_log_probs", "faithful"]
PAIRS += [column for name in MEASURES for column in (name, f"{name}_log_probs")]
FAITHFUL = {(1, 1): "both", (1, 0): "judge_only", (0, 1): "log_probs_only", (0, 0): "neither"}
"""Whose RF is 1: (the judge's, that by log-probs)."""
AGAINST = [*CELL, "measure", "n", "n_of_judge_only", "n_of_log_probs_only"]
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
    names = {column: name for name, column in MEASURES.items()}
    one = only(judged, [*KEY, "exclusion", *names]).rename(columns=names)
    other = only(unjudged, [*KEY[1:], "exclusion", *names]).rename(columns=names)
    ends = ("", "_log_probs")
    pairs = one.merge(other, on=list(KEY[1:]), suffixes=ends, validate="many_to_one")
    counts = (pairs["exclusion"] == "") & (pairs["exclusion_log_probs"] == "")
    both = zip(pairs["rf"], pairs["rf_log_probs"], counts, strict=True)
    faithful = [FAITHFUL[int(a), int(b)] if of_both else "" for a, b, of_both in both]
    return only(pairs.assign(faithful=faithful), PAIRS)


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
    lines = []
    for key, of in groups(with_overall(pairs, "task", "model"), CELL):
        counts = [of[x] == "" for x in ("exclusion", "exclusion_log_probs")]
        known = [of[x].notna() for x in ("contrast", "contrast_log_probs")]
        for name in MEASURES:
            mine, theirs = known if name == "contrast" else counts
            both = of.loc[mine & theirs, [name, f"{name}_log_probs"]].astype(int)
            line = {**key, "measure": name, "n": len(both)}
            line |= {"n_of_judge_only": count(mine & ~theirs)}
            line |= {"n_of_log_probs_only": count(theirs & ~mine)}
            lines.append(line | _compared(list(both.itertuples(index=False, name=None))))
    return pd.DataFrame(lines, columns=AGAINST)


def _compared(findings: list[tuple[int, int]]) -> dict[str, Any]:
    """Of pairs of findings, 1 or 0: the judge's, and that by log-probs."""
    n = len(findings)
    line: dict[str, Any] = columns("by_judge", wilson(sum(a for a, _ in findings), n))
    line |= columns("by_log_probs", wilson(sum(b for _, b in findings), n))
    line |= {f"n_{name}": findings.count(values) for values, name in FAITHFUL.items()}
    line |= columns("agreement", wilson(sum(a == b for a, b in findings), n))
    value = kappa(*zip(*findings, strict=True)) if n else math.nan
    reason = "no pair counts for both" if not n else CONSTANT if math.isnan(value) else ""
    return line | {"cohen_kappa": value, "reason": reason}
