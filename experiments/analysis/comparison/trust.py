"""Table `trust`: the measures of each label from best to worst, with tests that correct for trying
many measures.

Every sentence on the page that names a best measure, or a direction, rests on the columns
`p_highest`, `p_wrong_way` and `as_good`, which are corrected for the number of measures and labels.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import Lines
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.comparison.agreement import DECIMALS, IN_ORDER
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
from faithscope.experiments.analysis.statistics.agreement import drifting, same_ranks
from faithscope.experiments.analysis.statistics.areas import area, behind, p_as_good
from faithscope.experiments.analysis.statistics.exchanging import exchange_test
from faithscope.experiments.analysis.statistics.multiple import holm
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import Table, computed_table
from faithscope.experiments.analysis.tidy import columns
from faithscope.experiments.config.comparison import AS_GOOD
from faithscope.experiments.numerals import percent

LEVEL = 0.05
"""Error rate of each of three claims, over all measures and labels of a comparison together: that a
measure is better than chance, that its direction is wrong, that it is as good as the best."""
TRUST = computed_table("trust", (
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
           "Holm); empty where nothing is called the best, and where both rank all traces alike."),
    *(*COST_COLUMNS, "reason"),
))  # fmt: skip
"""A row per label and measure: its test against chance, its distance to the best, and its costs.

The best measure comes first, and of equals the cheapest. Measures that cannot be compared come
last, with the `reason`.

`p_highest`: how often the highest of all measures would be as extreme if labels were exchanged
between questions, times the number of labels. `p_wrong_way`: how often the measure itself would
point so far in the wrong direction, corrected by Holm's procedure over all measures and labels.

`told` (better than chance) needs p at most `LEVEL` and `least_low` above one half; `wrong_way`
needs p at most `LEVEL` and `most_high` below one half. `least_low` is the lower bound of AUROC if
every trace without a score went against the measure, `most_high` the upper bound if every one went
for it, so missing scores cannot explain either claim.

`behind`: AUROC of the best minus that of the measure, on the traces that both score. `as_good`:
whether `behind` is significantly less than a bound (`areas.p_as_good`, corrected by Holm's
procedure); empty where no measure is called the best, and where both rank all traces alike, which
shows nothing of how they differ on others. Measures are compared with the best measure; monitors,
which were trained on the label, with the best monitor.
"""
COUNTED = [cost for cost in COSTS if cost != "seconds"]
"""Costs that are the same whenever a run is done again, and by which equals are put in order."""
TOO_SPARSE = f"scores of less than {percent(COVERS)} of the traces with the label"
ONE_SCORE = "scores that do not vary within any model and task"
TOO_FEW_OF_KIND = (
    f"scores of fewer than {detection.LEAST_OF_KIND} traces of a kind, in models and tasks that "
    "have both"
)


SAME_AS_LABEL = "verdicts that say just what the label says, so that the label may be theirs"
ORDER = f"scores that {IN_ORDER}, as the label does"


def _why_not(target: Target, row: Mapping[str, Any], drifts: bool) -> str:
    """Why a row of the table `against` is not compared with others; empty where it is.

    Args:
        drifts: whether the label changes along the order of the items.
    """
    if not row["n_rarer"]:
        return NOT_WITHIN
    if row["n"] < COVERS * (row["n"] + row["n_missing"]):
        return TOO_SPARSE
    if row["n_rarer"] < detection.LEAST_OF_KIND:
        return TOO_FEW_OF_KIND
    if row["family"] == "judged" and abs(row["auroc"] - 0.5) >= 0.5:
        return SAME_AS_LABEL
    kinds = np.char.add(target.settings, np.where(target.unfaithful, " unfaithful", " faithful"))
    score = target.scores[row["measure"]][:, None]
    return ORDER if drifts and drifting(score, kinds, target.clusters)[0] else ""


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
"""A row per label, measure and known cost: whether the measure is on the Pareto front of AUROC and
cost.

A measure is on the front if no cheaper one has as high an AUROC and none of the same cost a higher
one; two equals of the same cost are both on it. A measure that `TRUST` cannot compare is never on
the front, and `reason` says why.
"""


def trust_table(
    against: pd.DataFrame, of_labels: list[Target], how: Bootstrap, bound: float = AS_GOOD
) -> pd.DataFrame:
    """The table `TRUST` of a comparison.

    Args:
        against: the table `AGAINST`.
        of_labels: the targets of that table.
        bound: difference in AUROC to the best up to which a measure counts as good.
    """
    whole = against.loc[(against["by"] == ALL) & against["pooled"].notna()]
    of_label: dict[str, list[dict[str, Any]]] = {}
    tests: dict[tuple[str, str], tuple[str, bytes]] = {}
    for target in of_labels:
        order, ascending = ["auroc", *COUNTED], [False, *(True for _ in COUNTED)]
        chosen = whole.loc[whole["label"] == target.label].round({"auroc": DECIMALS})
        ordered = chosen.sort_values(order, ascending=ascending, kind="stable")
        kind = target.unfaithful[:, None].astype(float)
        drifts = bool(drifting(kind, target.settings, target.clusters)[0])
        lines = [
            row | {"reason": _why_not(target, row, drifts)} for row in ordered.to_dict("records")
        ]
        for row in lines:
            row |= {"p_highest": math.nan, "p_wrong_way": math.nan}
            row |= dict.fromkeys(("told", "wrong_way", "as_good"))
            row |= _bounds(target, row)
        compared = [r for r in lines if not r["reason"] and r["family"] != MONITOR]
        if compared:
            scores = target.matrix([row["measure"] for row in compared])
            of = (target.unfaithful, target.settings, target.clusters, how.seed)
            chance = exchange_test(scores, *of)
            ranks = same_ranks(scores, target.settings)
            of_rows = zip(compared, chance.highest, chance.low, ranks, strict=True)
            for row, highest, low, own in of_rows:
                row |= {"p_highest": float(highest), "p_wrong_way": float(low)}
                tests[target.label, row["measure"]] = (target.label, own)
                if math.isnan(highest):
                    row["reason"] = ONE_SCORE
        of_label[target.label] = lines
    tested = [r for lines in of_label.values() for r in lines if not math.isnan(r["p_highest"])]
    n_labels = len({row["label"] for row in tested})
    same = [tests[row["label"], row["measure"]] for row in tested]
    wrong_way = holm([row["p_wrong_way"] for row in tested], same)
    for row, p in zip(tested, wrong_way, strict=True):
        row |= {"p_highest": min(1.0, n_labels * row["p_highest"]), "p_wrong_way": p}
        row |= {"told": bool(row["p_highest"] <= LEVEL and row["least_low"] > 0.5)}
        row |= {"wrong_way": bool(p <= LEVEL and row["most_high"] < 0.5)}
    for lines in of_label.values():
        # measures that beat chance come first, though another may be higher on fewer traces
        lines.sort(key=lambda row: (row["reason"] != "", row["told"] is False))
    _held_behind(of_labels, of_label, bound, tests)
    return TRUST.filled(row for lines in of_label.values() for row in lines)


def _bounds(target: Target, row: Mapping[str, Any]) -> dict[str, float]:
    """`least_low` and `most_high`: the bounds of AUROC if every trace without a score went against
    the measure, or for it; the ends of its interval where every trace has a score."""
    score = target.scores[row["measure"]]
    gone = np.isnan(score)
    if not gone.any():
        return {"least_low": row["auroc_low"], "most_high": row["auroc_high"]}
    ends = np.nanmin(score) - 1, np.nanmax(score) + 1
    filled = (np.where(gone, np.where(target.unfaithful, *of), score) for of in (ends, ends[::-1]))
    against, for_it = (
        area(target.clusters, target.unfaithful, of, target.settings).estimate() for of in filled
    )
    return {"least_low": against.low, "most_high": for_it.high}


def _held_behind(
    of_labels: list[Target],
    of_label: Mapping[str, list[dict[str, Any]]],
    bound: float,
    tests: Mapping[tuple[str, str], Hashable],
) -> None:
    """Adds `behind` and `as_good` to every row: the comparison with the best measure of the label,
    for monitors with the best monitor."""
    equal: list[tuple[dict[str, Any], float]] = []
    for target in of_labels:
        best: dict[bool, dict[str, Any]] = {}
        for row in of_label[target.label]:
            if row["reason"]:
                continue
            first = best.setdefault(row["family"] == MONITOR, row)
            one, own = (target.scores[of["measure"]] for of in (first, row))
            both = ~np.isnan(one) & ~np.isnan(own)
            of = (target.clusters[both], target.unfaithful[both])
            highest, mine = (area(*of, x[both], target.settings[both]) for x in (one, own))
            row |= columns("behind", behind(highest, mine))
            p = p_as_good(highest, mine, bound)
            if first["told"] is not False and row is not first and not math.isnan(p):
                equal.append((row, p))
    same = [tests.get((r["label"], r["measure"]), (r["label"], r["measure"])) for r, _ in equal]
    for (row, _), p in zip(equal, holm([p for _, p in equal], same), strict=True):
        row["as_good"] = bool(p <= LEVEL)
