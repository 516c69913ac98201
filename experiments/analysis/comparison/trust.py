"""Which measure a label speaks for, and how sure that is: the best of many is tested as such.

A sentence that names a measure, or a direction, stands on `p_highest`, `p_wrong_way` and `as_good`
of this table, which count how many measures and labels were tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from statsmodels.stats.multitest import multipletests

from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.comparison.agreement import DECIMALS
from faithscope.experiments.analysis.comparison.scores import COST_COLUMNS, COSTS
from faithscope.experiments.analysis.comparison.scores_vs_labels import (
    ALL,
    AUROC,
    COVERS,
    LABEL,
    MONITOR,
    N_MISSING,
    N_UNFAITHFUL,
    NOT_WITHIN,
    POOLED,
    Target,
)
from faithscope.experiments.analysis.statistics import detection
from faithscope.experiments.analysis.statistics.exchanging import exchange_test
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, auroc
from faithscope.experiments.analysis.statistics.stats import CONFIDENCE
from faithscope.experiments.analysis.tables import Computed, Lines, Table
from faithscope.experiments.analysis.tidy import columns

LEVEL = 0.05
"""The chance that is taken of calling a measure the best, or its direction wrong, or as good as the
best, where none is: of all measures and labels of a comparison together."""
AS_GOOD = 0.05
"""How much AUROC a measure may be behind the best and still count as good: said before any data."""
TRUST = Computed("trust", (
    *(LABEL, "measure", "family"),
    Column("n", "traces", "Traces that have the label and a score."),
    *(N_UNFAITHFUL, N_MISSING, AUROC, POOLED),
    Column("p_highest", "p of the highest", "How often the highest of all measures is as far out "
           "when labels are exchanged between questions, times the number of labels."),
    Column("p_wrong_way", "p of the wrong way", "How often the measure points so far the wrong way "
           "when labels are exchanged; corrected for measures and labels (Holm)."),
    Column("told", "beyond chance", "p of the highest is at most .05, and AUROC is above one half "
           "whatever its gaps hide."),
    Column("wrong_way", meaning="p of the wrong way is at most .05, and AUROC is below one half "
           "whatever its gaps hide."),
    Column("least_low", "AUROC from, gaps against it", "The lower bound if every trace without a "
           "score went against the measure."),
    Column("most_high", "AUROC to, gaps for it", "The upper bound if every trace without a score "
           "went for the measure."),
    Column("behind", "behind the best", "AUROC of the best minus this one's; of a monitor the best "
           "monitor's.", interval=True),
    Column("as_good", meaning="Behind by less than report.as_good beyond doubt (corrected by "
           "Holm); empty where nothing is called the best."),
    *(*COST_COLUMNS, "reason"),
))  # fmt: skip
"""A row per label and measure, the best first, of equals the one that asks the model least: what
chance would give, how far it is behind the best, and its costs. Those that cannot be compared come
last, and `reason` says why.

`p_highest`: how often the highest of all measures would be as far out if labels were exchanged
between questions, times the number of labels; `p_wrong_way`: how often the measure itself would
point so far the wrong way, corrected by Holm's procedure over all measures and labels.
`told` and `wrong_way`: p is at most `LEVEL`, and the measure's gaps cannot be why: `least_low`,
the lower bound of AUROC if every trace without a score went against the measure, is above one
half, or `most_high`, the upper bound if every one went for it, below.

`behind`: the best AUROC minus the measure's on the traces that have both, in the same draws.
`as_good` where it is less than a bound beyond doubt (a one-sided test against the bound, of the
draws' spread, corrected by Holm's procedure); empty where nothing is called the best. The best
of a measure is a measure, that of a monitor, which was trained on the label, a monitor.
"""
TOO_SPARSE = f"scores of less than {COVERS:.0%} of the traces with the label".replace("%", " %")
ONE_SCORE = "scores that do not vary within any model and task"
TOO_FEW_OF_KIND = (
    f"scores of fewer than {detection.LEAST_OF_KIND} traces of a kind, in models and tasks that "
    "have both"
)


def _why_not(row: Mapping[str, Any]) -> str:
    """Why a row of `against` is not set against others; empty where it is."""
    if not row["n_rarer"]:
        return NOT_WITHIN
    if row["n"] < COVERS * (row["n"] + row["n_missing"]):
        return TOO_SPARSE
    return TOO_FEW_OF_KIND if row["n_rarer"] < detection.LEAST_OF_KIND else ""


def _front(of_label: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    for cost in COSTS:
        known = of_label.loc[of_label[cost].notna()].sort_values(
            [cost, "auroc"], ascending=[True, False], kind="stable"
        )
        compared = [row for row in known.to_dict("records") if not row["reason"]]
        for row in known.to_dict("records"):
            dominated = any(
                other["auroc"] >= row["auroc"]
                if other[cost] < row[cost]
                else other["auroc"] > row["auroc"] and other[cost] == row[cost]
                for other in compared
            )
            about = {"cost": cost, "value": row[cost]}
            about |= {"on_front": not row["reason"] and not dominated}
            yield about | {k: row[k] for k in ("measure", "family", "auroc", "reason")}


FRONT = Table("front", "trust", (LABEL,), lines=[Lines((
    *(SHARED["measure"], SHARED["family"], replace(AUROC, interval=False)),
    Column("cost", meaning="Which cost the row is of."),
    Column("value", meaning="The cost, mean of a trace."),
    Column("on_front", "on the front", "No cheaper measure has as high an AUROC, and none of the "
           "same cost a higher one."),
    SHARED["reason"],
), _front)])  # fmt: skip
"""A row per label, measure and cost that is known: whether no cheaper measure is as good, and none
of the same cost better. Equals of one cost are both on the front.

A measure that `TRUST` compares with none is never on the front, and `reason` says why.
"""


def trust_table(
    against: pd.DataFrame, of_labels: list[Target], how: Bootstrap, bound: float = AS_GOOD
) -> pd.DataFrame:
    """`TRUST` of what was held against labels.

    Args:
        bound: how much AUROC a measure may be behind the best and still count as good.
    """
    whole = against.loc[(against["by"] == ALL) & against["pooled"].notna()]
    of_label: dict[str, list[dict[str, Any]]] = {}
    for target in of_labels:
        order, ascending = ["auroc", *COSTS], [False, *(True for _ in COSTS)]
        chosen = whole.loc[whole["label"] == target.label].round({"auroc": DECIMALS})
        ordered = chosen.sort_values(order, ascending=ascending, kind="stable")
        lines = [row | {"reason": _why_not(row)} for row in ordered.to_dict("records")]
        for row in lines:
            row |= {"p_highest": math.nan, "p_wrong_way": math.nan}
            row |= dict.fromkeys(("told", "wrong_way", "as_good"))
            row |= _bounds(target, row, how)
        compared = [r for r in lines if not r["reason"] and r["family"] != MONITOR]
        if compared:
            scores = target.matrix([row["measure"] for row in compared])
            of = (target.unfaithful, target.settings, target.clusters, how.seed)
            chance = exchange_test(scores, *of)
            for row, highest, low in zip(compared, chance.highest, chance.low, strict=True):
                row |= {"p_highest": float(highest), "p_wrong_way": float(low)}
                if math.isnan(highest):
                    row["reason"] = ONE_SCORE
        of_label[target.label] = lines
    tested = [r for lines in of_label.values() for r in lines if not math.isnan(r["p_highest"])]
    n_labels = len({row["label"] for row in tested})
    for row, p in zip(tested, holm([row["p_wrong_way"] for row in tested]), strict=True):
        row |= {"p_highest": min(1.0, n_labels * row["p_highest"]), "p_wrong_way": p}
        row |= {"told": bool(row["p_highest"] <= LEVEL and row["least_low"] > 0.5)}
        row |= {"wrong_way": bool(p <= LEVEL and row["most_high"] < 0.5)}
    for lines in of_label.values():
        # what no chance explains comes first, though another may be higher on fewer traces
        lines.sort(key=lambda row: (row["reason"] != "", row["told"] is False))
    _held_behind(of_labels, of_label, how, bound)
    return TRUST.table(row for lines in of_label.values() for row in lines)


def holm(p: list[float]) -> list[float]:
    """p-values corrected for their number by Holm's procedure, none for none."""
    return np.asarray(multipletests(p, method="holm")[1]).tolist() if p else []


def _bounds(target: Target, row: Mapping[str, Any], how: Bootstrap) -> dict[str, float]:
    """The bounds of AUROC if every trace without a score went against the measure, or for it; those
    of its interval where it has no gaps."""
    score = target.scores[row["measure"]]
    gone = np.isnan(score)
    if not gone.any():
        return {"least_low": row["auroc_low"], "most_high": row["auroc_high"]}
    ends = np.nanmin(score) - 1, np.nanmax(score) + 1
    filled = (np.where(gone, np.where(target.unfaithful, *of), score) for of in (ends, ends[::-1]))
    against, for_it = (
        auroc(target.clusters, target.unfaithful, of, how, strata=target.settings) for of in filled
    )
    return {"least_low": against.low, "most_high": for_it.high}


def _held_behind(
    of_labels: list[Target],
    of_label: Mapping[str, list[dict[str, Any]]],
    how: Bootstrap,
    bound: float,
) -> None:
    """Says of every row how far it is behind the best of its kind, and whether it is as good."""
    equal: list[tuple[dict[str, Any], float]] = []
    for target in of_labels:
        best: dict[bool, dict[str, Any]] = {}
        for row in of_label[target.label]:
            if row["reason"]:
                continue
            first = best.setdefault(row["family"] == MONITOR, row)
            one, own = (target.scores[of["measure"]] for of in (first, row))
            both = ~np.isnan(one) & ~np.isnan(own)
            of = (target.clusters[both], target.unfaithful[both], one[both])
            behind = auroc(*of, how, minus=own[both], strata=target.settings[both])
            row |= columns("behind", behind)
            named = first["told"] is not False
            if named and row is not first and not math.isnan(behind.low):
                spread = (behind.high - behind.low) / 2 / norm.ppf((1 + CONFIDENCE) / 2)
                apart = behind.value - bound
                z = apart / spread if spread else math.copysign(math.inf, apart)
                equal.append((row, float(norm.cdf(z))))
    for (row, _), p in zip(equal, holm([p for _, p in equal]), strict=True):
        row["as_good"] = bool(p <= LEVEL)
