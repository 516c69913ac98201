"""Agreement of judges beyond chance, and failures on the same items (C2-Faith, §5.5.2, App. C,
Figure 6).

Items on which the judges of a panel differ are told by no number of one judge. Of one judge alone
the same is asked of its readings and prompts, each a rater of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import Lines
from faithscope.experiments.analysis.columns import SHARED, described, estimates
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.raters import (
    CONSTANT,
    fleiss_kappa,
    krippendorff_alpha,
    quadratic_kappa,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import columns, count, groups, keep, only, rows, where
from faithscope.experiments.studies.c2faith.tables.detection import ALONE
from faithscope.experiments.studies.c2faith.tables.frames import (
    BOTH,
    CONDITION,
    COUNTS,
    PERTURBED,
    SCALE,
    WAY,
    verdicts_by_judge,
    who_spoke,
)
from faithscope.experiments.studies.c2faith.tables.predictors import EDIT_TYPE, METHOD

NO_ITEM = "no item that all judged"


def _judged(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> pd.DataFrame:
    """All judgements with their `task` and their verdict in `score`; those of either condition
    also under `BOTH`, and coverage scores beside the first reference alone."""
    parts = []
    for task, frame, value in (
        ("detection", detection, "score"),
        ("localisation", localisation, "predicted"),
    ):
        of_task = frame.assign(task=task, scale="", at=frame["condition"], score=frame[value])
        conditions = of_task["condition"].unique()
        parts += [of_task.assign(condition=BOTH)] if len(conditions) > 1 else []
        parts += [where(of_task, condition=condition) for condition in conditions]
    scores = coverage.assign(task="coverage", condition="", at=coverage["level"])
    first = scores["reference_judge"].head(1).tolist()
    return pd.concat([*parts, keep(scores, scores["reference_judge"].isin(first))])


def _statistics(judged: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    verdicts = verdicts_by_judge(judged, "score", ("item", "at"))
    judges = list(verdicts.columns)
    if len(judges) < 2:
        alone = {"statistic": "", "judge": judges[0], "n_judges": 1, "reason": ALONE}
        yield alone | {"n": 0, "n_without_verdict": count(verdicts.isna())}
        return

    def row(name: str, at: float, of: pd.DataFrame, n_judges: int, reason: str) -> dict[str, Any]:
        counts = {"n": len(of), "n_without_verdict": len(verdicts) - len(of)}
        return {"statistic": name, "value": at, "n_judges": n_judges, "reason": reason} | counts

    def why_not(at: float, of: pd.DataFrame) -> str:
        return NO_ITEM if not len(of) else CONSTANT if math.isnan(at) else ""

    level = "ordinal" if judged["task"].iloc[0] == "coverage" else "nominal"
    pairwise: dict[str, Callable[..., float]]
    pairwise = {"agreement": stats.agreement, "cohen_kappa": stats.kappa}
    if level == "ordinal":
        pairwise["quadratic_kappa"] = quadratic_kappa
    for judge, other in itertools.combinations(judges, 2):
        both = only(verdicts, [judge, other]).dropna()
        for name, statistic in pairwise.items():
            at = statistic(both[judge].tolist(), both[other].tolist())
            line = row(name, at, both, 2, why_not(at, both))
            yield {"judge": judge, "other": other} | line
    spoke = who_spoke(verdicts)
    every = spoke.dropna() if spoke.shape[1] > 1 else spoke.head(0)
    kappa = fleiss_kappa(every.to_numpy())
    pairable = verdicts.loc[verdicts.notna().sum(axis=1) >= 2]
    alpha, reason = krippendorff_alpha(pairable.to_numpy(), level)
    of_all = {"judge": "", "other": ""}
    yield of_all | row("fleiss_kappa", kappa, every, spoke.shape[1], why_not(kappa, every))
    yield of_all | row("krippendorff_alpha", alpha, pairable, spoke.shape[1], reason)


_STATISTIC, N_JUDGES, _VALUE = described(
    statistic="Which statistic of agreement the value is.",
    n_judges="Judges that the number is of.",
    value="The statistic named in the row.",
)
_OF_JUDGES = (_STATISTIC, SHARED["judge"], SHARED["other"], N_JUDGES)
AGREEMENT = Table(
    "c2_agreement",
    ("detection", "localisation", "coverage"),
    ("task", CONDITION, SCALE, "reading", "prompt"),
    prepare=_judged,
    lines=[Lines((*_OF_JUDGES, _VALUE, *COUNTS, SHARED["reason"]), _statistics)],
)
"""Agreement of judges on the same items, reading and prompt, a row per statistic.

Every two judges have `agreement` (share of items), `cohen_kappa`, and for coverage scores
`quadratic_kappa` too. All judges together have `fleiss_kappa`, and `krippendorff_alpha`, nominal
for verdicts and steps, ordinal for scores. Kappas take the `n` items that all in question gave a
verdict on, alpha every item with two verdicts; a judge without any verdict is not among
them. NaN where chance alone gives full agreement.
"""


SEPARATOR = " + "
JUDGES = "judges"


def _raters(detection: pd.DataFrame) -> pd.DataFrame:
    """The judgements of broken steps, each rater as a judge, with what raters are (`among`)."""
    broken = where(detection, condition=PERTURBED)
    parts = groups(broken, ("reading", "prompt"))
    if not len(broken) or any(who_spoke(_verdicts(of)).shape[1] > 1 for _, of in parts):
        return broken.assign(among=JUDGES)
    differ = [c for c in WAY if len(set(broken[c])) > 1]
    names = zip(*(broken[c] for c in differ or ["judge"]), strict=True)
    alike = {c: "" if c in differ else broken[c] for c in ("reading", "prompt")}
    among = " and ".join(f"{c}s" for c in differ) or JUDGES
    return broken.assign(among=among, judge=[" · ".join(of) for of in names], **alike)


def _verdicts(judged: pd.DataFrame) -> pd.DataFrame:
    return verdicts_by_judge(judged, "score", ("item",))


def _sets(judged: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    asked = _verdicts(judged)
    verdicts = who_spoke(asked)
    names = list(verdicts.columns)
    every = verdicts.dropna() if names else verdicts.iloc[:0]
    of = {"n_raters": len(names), "n_raters_silent": asked.shape[1] - len(names)}
    of |= {"n": len(every), "n_without_verdict": len(verdicts) - len(every)}
    if not len(every):
        yield of
        return
    missed = every.to_numpy() == 1
    patterns, counts = np.unique(missed, axis=0, return_counts=True)
    rates = missed.mean(axis=0)
    sets = [
        {
            "missed_by": SEPARATOR.join(j for j, m in zip(names, p, strict=True) if m),
            "n_missed_by": int(p.sum()),
            "n_items": int(c),
            "share_independent": float(np.where(p, rates, 1 - rates).prod()),
        }
        | columns("share", wilson(int(c), len(every)))
        for p, c in zip(patterns, counts, strict=True)
    ]
    sets.sort(key=lambda r: (r["n_missed_by"], -r["n_items"], r["missed_by"]))
    yield from (of | row for row in sets)


_AMONG = described(among="What the raters are: judges, or readings and prompts of one judge.")
_SETS = (
    *described(
        missed_by="Raters that pass the step where all others flag it; empty: all flag it.",
        n_missed_by="How many raters pass the step.",
        n_raters=("judges", "Judges, or readings and prompts of one judge, each a rater."),
        n_raters_silent=(
            "judges without any verdict",
            "Raters that gave no verdict; they are in no set.",
        ),
        n_items="Items that just these raters pass.",
    ),
    *COUNTS,
    *estimates(share="Share of the items that just these raters pass."),
    *described(
        share_independent=(
            "share, were failures independent",
            "What the share of items would be if each rater failed independently at its own rate.",
        )
    ),
)
FAILURE_OVERLAP = Table(
    "c2_failure_overlap",
    "detection",
    ("reading", "prompt", *_AMONG),
    prepare=_raters,
    lines=[Lines(_SETS, _sets)],
)
"""Broken steps by the set of raters that miss them, `""` for seen by all (Figure 6).

Raters are the `judges` of a reading and prompt, as in the paper. Where none has two that gave
verdicts, all judgements are one group, whose raters are the judge's `readings`, `prompts`, or
pairs of both (`among`); what they differ in is blank in its own column.

`n_items` of the `n` items that all raters gave a verdict on, as a `share` with its Wilson
interval. A set that fails together more often than `share_independent` has blind spots in common.
Sets that do not occur have no row. Fewer raters first, more items first. Raters without any
verdict are counted in `n_raters_silent` and otherwise left out.
"""


def _with_edits(detection: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    edits = only(features, ["item", "edit_type", "method", "relative_position"])
    return where(detection, condition=PERTURBED).merge(edits, on="item", how="left")


def _missed(judged: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    verdicts = who_spoke(_verdicts(judged))
    missed = verdicts.index[(verdicts == 1).all(axis=1)].tolist() if len(verdicts.columns) else []
    of_items = keep(judged, judged["item"].isin(missed)).drop_duplicates(subset="item")
    names = ["item", "chain", "edit_type", "method", "relative_position"]
    yield from (row | {"n_judges": verdicts.shape[1]} for row in rows(only(of_items, names)))


_CHAIN, _PLACE = described(
    chain="The chain of reasoning that the item is made of.",
    relative_position="Place of the broken step in its chain, from 0 to 1.",
)
MISSED_BY_ALL = Table(
    "c2_missed_by_all",
    ("detection", "features"),
    ("reading", "prompt"),
    prepare=_with_edits,
    lines=[Lines((SHARED["item"], _CHAIN, N_JUDGES, EDIT_TYPE, METHOD, _PLACE), _missed)],
)
"""The broken steps that every judge of a reading and prompt passes as following.

Items that some judge gave no verdict on are not among them; a judge without any verdict is
left out, and not counted in `n_judges`.
"""
