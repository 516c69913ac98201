"""Contrast-conditional reasoning faithfulness and coverage (RFEval, Tables 2, 3, 25), and what
was left out on the way to it (Table 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.tidy import (
    columns,
    count,
    groups,
    keep,
    rows,
    where,
    with_interval,
)
from faithscope.experiments.studies.rfeval.metrics.chains import EXCLUSIONS
from faithscope.experiments.studies.rfeval.metrics.frames import (
    CELL,
    CONDITIONS,
    OVERALL,
    attempted,
    included,
    share_of,
    with_overall,
)

SHARES = {"rf": "rf", **{f"chi_{c}": f"{c}_chi" for c in CONDITIONS}, "kappa": "kappa"}
"""Column of the table -> column of `chains.scored`."""
RFEVAL = [*CELL, "n_total", "n_attempted", "n_coverage", "n_included"]
RFEVAL += with_interval("contrast_coverage", *SHARES)
WATERFALL = [*CELL, "n_total", "n_included", *(f"n_{x}" for x in EXCLUSIONS)]
REASONS = [*CELL, "exclusion", "condition", "reason", "n"]
REGIMES = ["reader", "family", "regime", "model", "n_included"]
REGIMES += with_interval("contrast_coverage", "rf")
LEFT_OUT = {"unfinished": ("outcome", "complete"), "evaluation_error": ("judged", "parsed")}
"""Exclusion -> the columns that say what was wrong with each output, and their value of a good."""


def rf_table(scored: pd.DataFrame) -> pd.DataFrame:
    """A row per model and task, pooled over tasks, over models, and over both.

    Pooled shares are over items, each once: "instance-weighted" (appendix D.3). Coverage is over
    `n_coverage` pairs: all attempted, those too that were left out later (with `paper_compat` as
    `chains.in_coverage_of` says). Contrast is known of pairs that were judged; the others are in
    none. χ, κ and RF are over the included. Intervals are Wilson's, of items; pooled over models
    they treat the same item under two models as two.
    """
    lines = []
    for key, of in groups(with_overall(scored, "task", "model"), CELL):
        tried, counts = attempted(of), included(of)
        covered = keep(tried, tried["in_coverage"])
        line = {**key, "n_total": len(of), "n_attempted": len(tried)}
        line |= {"n_coverage": len(covered), "n_included": len(counts)}
        line |= columns("contrast_coverage", share_of(covered["contrast"]))
        for name, column in SHARES.items():
            line |= columns(name, share_of(counts[column]))
        lines.append(line)
    return pd.DataFrame(lines, columns=RFEVAL)


def waterfall(scored: pd.DataFrame) -> pd.DataFrame:
    """Where all pairs went, a row per model and task and pooled; every row adds up (Table 13).

    Raises:
        ValueError: a pair is left out for a reason that the table does not know.
    """
    unknown = set(scored["exclusion"]) - {*EXCLUSIONS, ""}
    if unknown:
        raise ValueError(f"rfeval: exclusion {min(unknown)!r} is none of {', '.join(EXCLUSIONS)}")
    lines = []
    for key, of in groups(with_overall(scored, "task", "model"), CELL):
        line = {**key, "n_total": len(of), "n_included": count(of["exclusion"] == "")}
        lines.append(line | {f"n_{x}": count(of["exclusion"] == x) for x in EXCLUSIONS})
    return pd.DataFrame(lines, columns=WATERFALL)


def exclusion_reasons(scored: pd.DataFrame) -> pd.DataFrame:
    """What exactly was wrong with the pairs left out: output by output, a row per reason.

    An item of which both outputs are cut off is in two rows: these do not add up, `waterfall`
    does.
    """
    lines = []
    for key, of in groups(scored, CELL):
        for exclusion, (column, good) in LEFT_OUT.items():
            left = where(of, exclusion=exclusion)
            for condition in CONDITIONS:
                why: Any = left[f"{condition}_{column}"].replace("", "not_asked")
                about = {**key, "exclusion": exclusion, "condition": condition}
                counts = why[why != good].value_counts().sort_index().items()
                lines += [{**about, "reason": reason, "n": int(n)} for reason, n in counts]
        about = {**key, "exclusion": "global", "condition": ""}
        counts = where(of, exclusion="global")["excluded"].value_counts().items()
        lines += [{**about, "reason": reason, "n": n} for reason, n in counts]
    return pd.DataFrame(lines, columns=REASONS)


def regime_table(rf: pd.DataFrame, regimes: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """RF and coverage by post-training regime within families (Table 3).

    Args:
        rf: what `rf_table` gave.
        regimes: model -> family and regime ("MiMo-7B", "SFT+RL"), in the order of the rows.

    Raises:
        ValueError: a model of `regimes` is not in the table.
    """
    overall = where(rf, task=OVERALL)
    if missing := [m for m in regimes if m not in set(overall["model"])]:
        known = ", ".join(dict.fromkeys(overall["model"]))
        raise ValueError(f"regime of {missing[0]!r}, which has no results; there are {known}")
    lines = [
        row | {"family": family, "regime": regime}
        for model, (family, regime) in regimes.items()
        for row in rows(where(overall, model=model))
    ]
    return pd.DataFrame(lines, columns=REGIMES)
