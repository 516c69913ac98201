"""Contrast-conditional reasoning faithfulness and coverage (RFEval, Tables 2, 3, 25), and what
was left out on the way to it (Table 13)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.stats import Estimate, wilson
from faithscope.experiments.analysis.tidy import columns, count, groups, numbers, with_interval
from faithscope.experiments.studies.rfeval.metrics.chains import EXCLUSIONS
from faithscope.experiments.studies.rfeval.metrics.frames import (
    CONDITIONS,
    OVERALL,
    WAY,
    attempted,
    included,
    with_overall,
)

RFEVAL = [*WAY, "task", "n_total", "n_attempted", "n_coverage", "n_included"]
RFEVAL += [*with_interval("contrast_coverage", "rf", "chi_baseline", "chi_intervened", "kappa")]
WATERFALL = [*WAY, "task", "n_total", "n_included", *(f"n_{x}" for x in EXCLUSIONS)]
REASONS = [*WAY, "task", "exclusion", "condition", "reason", "n"]
REGIMES = ["reader", "family", "regime", "model", "n_included"]
REGIMES += with_interval("contrast_coverage", "rf")


def rf_table(scored: pd.DataFrame) -> pd.DataFrame:
    """A row per model and task, pooled over tasks, over models, and over both.

    Pooled shares are over items, each once: "instance-weighted" (appendix D.3). Coverage is over
    `n_coverage` pairs: all attempted, those too that were left out later (with `paper_compat` as
    `chains.in_coverage_of` says). Contrast is known of pairs that were judged; the others are in
    none. χ, κ and
    RF are over the included. Intervals are Wilson's, of items; pooled over models they treat the
    same item under two models as two.
    """
    made = []
    for key, of in _groups(scored):
        tried, kept = attempted(of), included(of)
        row = {**key, "n_total": len(of), "n_attempted": len(tried), "n_included": len(kept)}
        covered = tried.loc[tried["in_coverage"]]
        row["n_coverage"] = len(covered)
        row |= columns("contrast_coverage", _share(covered["contrast"]))
        for name, column in (
            ("rf", "rf"),
            *((f"chi_{c}", f"{c}_chi") for c in CONDITIONS),
            ("kappa", "kappa"),
        ):
            row |= columns(name, _share(kept[column]))
        made.append(row)
    return pd.DataFrame(made, columns=RFEVAL)


def waterfall(scored: pd.DataFrame) -> pd.DataFrame:
    """Where all pairs went, a row per model and task and pooled; every row adds up (Table 13).

    Raises:
        ValueError: a pair is left out for a reason that the table does not know.
    """
    unknown = set(scored["exclusion"]) - {*EXCLUSIONS, ""}
    if unknown:
        raise ValueError(f"rfeval: exclusion {min(unknown)!r} is none of {', '.join(EXCLUSIONS)}")
    made = []
    for key, of in _groups(scored):
        row = {**key, "n_total": len(of), "n_included": count(of["exclusion"] == "")}
        made.append(row | {f"n_{x}": count(of["exclusion"] == x) for x in EXCLUSIONS})
    return pd.DataFrame(made, columns=WATERFALL)


def exclusion_reasons(scored: pd.DataFrame) -> pd.DataFrame:
    """What exactly was wrong with the pairs left out: output by output, a row per reason.

    An item of which both outputs are cut off is in two rows: these do not add up, `waterfall`
    does.
    """
    about = {"unfinished": ("outcome", "complete"), "evaluation_error": ("judged", "parsed")}
    made = []
    for key, of in _groups(scored, pool=False):
        for exclusion, (column, good) in about.items():
            left = of.loc[of["exclusion"] == exclusion]
            for condition in CONDITIONS:
                why = left[f"{condition}_{column}"]
                why = why.where(why != "", "not_asked")
                for reason, n in why[why != good].value_counts().sort_index().items():
                    about_it = {"exclusion": exclusion, "condition": condition}
                    made.append({**key, **about_it, "reason": reason, "n": int(n)})
        for reason, n in of.loc[of["exclusion"] == "global", "excluded"].value_counts().items():
            made.append({**key, "exclusion": "global", "condition": "", "reason": reason, "n": n})
    return pd.DataFrame(made, columns=REASONS)


def regime_table(rf: pd.DataFrame, regimes: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """RF and coverage by post-training regime within families (Table 3).

    Args:
        rf: what `rf_table` gave.
        regimes: model -> family and regime ("MiMo-7B", "SFT+RL"), in the order of the rows.

    Raises:
        ValueError: a model of `regimes` is not in the table.
    """
    overall = rf.loc[rf["task"] == OVERALL]
    if missing := [m for m in regimes if m not in set(overall["model"])]:
        known = ", ".join(dict.fromkeys(overall["model"]))
        raise ValueError(f"regime of {missing[0]!r}, which has no results; there are {known}")
    made = []
    for model, (family, regime) in regimes.items():
        for row in overall.loc[overall["model"] == model].to_dict("records"):
            made.append(row | {"family": family, "regime": regime})
    return pd.DataFrame(made, columns=REGIMES)


def _groups(scored: pd.DataFrame, pool: bool = True):
    frame = with_overall(scored, "task", "model") if pool else scored
    return groups(frame, (*WAY, "task"))


def _share(values: Any) -> Estimate:
    """Of those that are 1; what is not known (NaN) is not."""
    return wilson(count(numbers(values) == 1), len(values))
