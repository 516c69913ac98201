"""How far judges agree beyond chance, over the items that they judged alike or not.

Items on which the judges of a panel differ are told by no number of one judge.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.raters import (
    CONSTANT,
    Level,
    fleiss_kappa,
    krippendorff_alpha,
    quadratic_kappa,
)
from faithscope.experiments.analysis.tidy import groups
from faithscope.experiments.studies.c2faith.metrics.detection import ALONE
from faithscope.experiments.studies.c2faith.metrics.frames import BOTH, verdicts_by_judge, who_spoke

AGREEMENT = ["task", "condition", "scale", "reading", "prompt", "statistic", "judge", "other"]
AGREEMENT += ["n_judges", "value", "n", "n_without_verdict", "reason"]
NO_ITEM = "no item that all judged"


def agreement_table(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> pd.DataFrame:
    """Agreement of judges on the same items, reading and prompt, a row per statistic.

    Of every two judges: `agreement` (share of items), `cohen_kappa`, and of coverage scores
    `quadratic_kappa` too. Of all together: `fleiss_kappa`, and `krippendorff_alpha`, nominal of
    verdicts and steps, ordinal of scores. Kappas take the `n` items that all in question gave a
    verdict on, alpha every item with two verdicts; a judge without any verdict is not among
    them. NaN where chance alone gives full agreement.
    """
    made = []
    for task, frame, value in (
        ("detection", detection, "score"),
        ("localisation", localisation, "predicted"),
    ):
        for condition, kept in _conditions(frame):
            for key, mine in groups(kept, ("reading", "prompt")):
                of = {"task": task, "condition": condition, "scale": ""} | key
                made += [of | row for row in _rows(mine, value, ("item", "condition"), "nominal")]
    for key, mine in groups(coverage, ("scale", "reading", "prompt", "reference_judge")):
        reference = key.pop("reference_judge")
        if reference != coverage["reference_judge"].iloc[0]:
            continue  # the same verdicts again, beside another reference
        of = {"task": "coverage", "condition": ""} | key
        made += [of | row for row in _rows(mine, "score", ("item", "level"), "ordinal")]
    return pd.DataFrame(made, columns=AGREEMENT)


def _conditions(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    found = [(str(c), frame.loc[frame["condition"] == c]) for c in frame["condition"].unique()]
    return [(BOTH, frame), *found] if len(found) > 1 else found


def _rows(
    judged: pd.DataFrame, value: str, keys: Sequence[str], level: Level
) -> list[dict[str, Any]]:
    said = verdicts_by_judge(judged, value, keys)
    judges = list(said.columns)
    if len(judges) < 2:
        alone = {"statistic": "", "judge": judges[0], "n_judges": 1, "reason": ALONE}
        return [alone | {"n": 0, "n_without_verdict": int(said.isna().sum().sum())}]
    made = []
    for judge, other in itertools.combinations(judges, 2):
        both = said[[judge, other]].dropna()
        of = {"judge": judge, "other": other, "n_judges": 2, "n": len(both)}
        of |= {"n_without_verdict": len(said) - len(both)}
        left, right = both[judge].tolist(), both[other].tolist()
        found = {"agreement": stats.agreement(left, right), "cohen_kappa": stats.kappa(left, right)}
        if level == "ordinal":
            found["quadratic_kappa"] = quadratic_kappa(left, right)
        reason = "" if len(both) else NO_ITEM
        for name, at in found.items():
            why = CONSTANT if not reason and math.isnan(at) else reason
            made.append(of | {"statistic": name, "value": at, "reason": why})
    spoke = who_spoke(said)
    every = spoke.dropna() if spoke.shape[1] > 1 else spoke.iloc[:0]
    of = {"judge": "", "other": "", "n_judges": spoke.shape[1]}
    kappa = fleiss_kappa(every.to_numpy())
    reason = "" if not math.isnan(kappa) else CONSTANT if len(every) else NO_ITEM
    left_out = {"n": len(every), "n_without_verdict": len(said) - len(every)}
    made.append(of | {"statistic": "fleiss_kappa", "value": kappa, "reason": reason} | left_out)
    pairable = said.loc[said.notna().sum(axis=1) >= 2]
    alpha, reason = krippendorff_alpha(pairable.to_numpy(), level)
    left_out = {"n": len(pairable), "n_without_verdict": len(said) - len(pairable)}
    row = {"statistic": "krippendorff_alpha", "value": alpha, "reason": reason}
    return [*made, of | row | left_out]
