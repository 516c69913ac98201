"""Binary causal detection (C2-Faith, §4.2 and §5.1, Table 1), and two judges on the same items."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pandas as pd
from scipy.stats import binomtest, chi2
from sklearn.metrics import brier_score_loss

from faithscope.experiments.analysis.statistics.calibration import calibration_error
from faithscope.experiments.analysis.statistics.resampling import Drawing, auroc, ratios
from faithscope.experiments.analysis.statistics.stats import paired_difference, share
from faithscope.experiments.analysis.tidy import (
    Rows,
    columns,
    count,
    groups,
    keep,
    numbers,
    only,
    rows_by,
    tabled,
    where,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.frames import (
    CONTROL,
    PERTURBED,
    WAY,
    verdicts_by_judge,
)

FEW_DISCORDANT = 25
"""Items on which two judges differ, below which McNemar's test is taken exactly."""
ALONE = "no second judge"

DETECTION = [*WAY, "n", "n_without_verdict", "n_control", "n_control_without_verdict"]
DETECTION += [*with_interval("detection"), "detection_wilson_low", "detection_wilson_high"]
DETECTION += [*with_interval("fpr"), "fpr_wilson_low", "fpr_wilson_high"]
DETECTION += [*with_interval("net"), "std", *with_interval("auroc"), "brier", "ece"]
MCNEMAR = ["reading", "prompt", "condition", "judge", "other", "n", "n_without_verdict"]
MCNEMAR += ["both_right", "only_judge", "only_other", "both_wrong", *with_interval("difference")]
MCNEMAR += ["test", "p", "p_exact", "p_chi_squared", "n_comparisons", "p_bonferroni", "reason"]


@tabled(*DETECTION)
def detection_table(detection: pd.DataFrame, how: Drawing) -> Rows:
    """A row per judge, reading and prompt; `columns` says what each number is.

    `brier` and `ece` take `p_flag` for the probability that an item is perturbed, over the items
    judged. Intervals are percentile bootstraps over chains; they shrink to a point where all say
    the same, hence the Wilson intervals beside them.
    """
    return rows_by(detection, WAY, lambda judged: detection_row(judged, how))


def detection_row(judged: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    """The numbers of one judge, reading and prompt."""
    counts: dict[str, Any] = {}
    for prefix, condition in (("n", PERTURBED), ("n_control", CONTROL)):
        of_condition = where(judged, condition=condition)["score"]
        counts[prefix] = count(of_condition.notna())
        counts[f"{prefix}_without_verdict"] = count(of_condition.isna())
    with_verdict = keep(judged, judged["score"].notna())
    perturbed = (with_verdict["condition"] == PERTURBED).to_numpy()
    flagged = numbers(with_verdict["score"]) == 0
    estimates = ratios(
        with_verdict["chain"].to_numpy(),
        {
            "detection": (flagged & perturbed, perturbed),
            "fpr": (flagged & ~perturbed, ~perturbed),
        },
        minus={"net": ("detection", "fpr")},
        how=how,
    )
    row = counts
    for name, side in (("detection", perturbed), ("fpr", ~perturbed)):
        exact = share(flagged[side].tolist())
        row |= columns(name, estimates[name])
        _, *bounds = columns(f"{name}_wilson", exact).items()
        row |= dict(bounds)
    p = estimates["detection"].value
    row |= columns("net", estimates["net"]) | {"std": math.sqrt(p * (1 - p))}
    return row | _of_probabilities(with_verdict, how)


def _of_probabilities(with_verdict: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    with_p = keep(with_verdict, with_verdict["p_flag"].notna())
    truth, p = (with_p["condition"] == PERTURBED).to_numpy(), numbers(with_p["p_flag"])
    numbers_of_p = columns("auroc", auroc(with_p["chain"].to_numpy(), truth, p, how))
    if not len(p):
        return numbers_of_p | {"brier": math.nan, "ece": math.nan}
    return numbers_of_p | {
        "brier": float(brier_score_loss(truth, p, pos_label=True)),
        "ece": calibration_error(truth, p),
    }


@tabled(*MCNEMAR)
def mcnemar_table(detection: pd.DataFrame) -> Rows:
    """McNemar's test of every two judges on the same items (C2-Faith, App. A; Table 1's daggers).

    Right is 0 of a perturbed item, 1 of a control. `p` is exact (a binomial test) below
    `FEW_DISCORDANT` items on which the two differ, else chi-squared with continuity correction,
    which gives the paper's p = 0.090 from its Figure 6. `p_bonferroni` multiplies by the number
    of pairs of judges of the same reading, prompt and condition. `difference`: the share right
    of `judge` minus that of `other`, with Newcombe's paired interval.
    """
    for key, judged in groups(detection, ("reading", "prompt", "condition")):
        verdicts = verdicts_by_judge(judged, "score", ("item",))
        truth = 0 if key["condition"] == PERTURBED else 1
        right = (verdicts == truth).astype(float).where(verdicts.notna())
        pairs = list(itertools.combinations(dict.fromkeys(judged["judge"]), 2))
        if not pairs:
            alone = {"judge": judged["judge"].iloc[0], "other": "", "n": 0, "reason": ALONE}
            yield key | alone | {"n_without_verdict": count(judged["score"].isna())}
        for judge, other in pairs:
            row = _mcnemar_row(only(right, [judge, other]), len(pairs))
            yield key | {"judge": judge, "other": other} | row


def _mcnemar_row(right: pd.DataFrame, comparisons: int) -> dict[str, Any]:
    both = right.dropna()
    counts = {"n": len(both), "n_without_verdict": len(right) - len(both)}
    if not len(both):
        return counts | {"n_comparisons": comparisons, "reason": "no item with two verdicts"}
    a, b = (both.iloc[:, i].astype(bool).to_numpy() for i in (0, 1))
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    test = mcnemar(only_a, only_b)
    return (
        counts
        | {"both_right": int((a & b).sum()), "only_judge": only_a, "only_other": only_b}
        | {"both_wrong": int((~a & ~b).sum())}
        | columns("difference", paired_difference(a.tolist(), b.tolist()))
        | test
        | {"n_comparisons": comparisons, "p_bonferroni": min(1.0, test["p"] * comparisons)}
        | {"reason": ""}
    )


def mcnemar(only_first: int, only_second: int) -> dict[str, Any]:
    """McNemar's test from the two discordant counts: `test`, `p`, and p in either way."""
    discordant = only_first + only_second
    if discordant == 0:
        return {"test": "exact", "p": 1.0, "p_exact": 1.0, "p_chi_squared": 1.0}
    exact = float(binomtest(only_first, discordant).pvalue)
    # the correction never takes more than there is: equal counts differ by nothing
    statistic = max(0, abs(only_first - only_second) - 1) ** 2 / discordant
    approximate = float(chi2.sf(statistic, 1))
    few = discordant < FEW_DISCORDANT
    return {
        "test": "exact" if few else "chi_squared",
        "p": exact if few else approximate,
        "p_exact": exact,
        "p_chi_squared": approximate,
    }
