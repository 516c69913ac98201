"""Binary causal detection (C2-Faith, §4.2 and §5.1, Table 1), and two judges on the same items."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
import scipy

from faithscope.experiments.analysis.cells import Lines, Numbers, rows_known
from faithscope.experiments.analysis.columns import SHARED, described, estimates
from faithscope.experiments.analysis.label_cells import AgainstLabel
from faithscope.experiments.analysis.statistics.calibration import calibration_error
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, ratios
from faithscope.experiments.analysis.statistics.stats import paired_difference, share
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import columns, count, keep, numbers, only
from faithscope.experiments.studies.c2faith.tables.frames import (
    CONDITION,
    CONTROLS,
    COUNTS,
    JUDGED,
    ON_BROKEN,
    ON_INTACT,
    PERTURBED,
    WAY,
    counts,
    ends,
    verdicts_by_judge,
)

FEW_DISCORDANT = 25
"""Items on which two judges differ, below which McNemar's test is taken exactly."""
ALONE = "no second judge"
NET, *_ = estimates(net=("net (detected − false alarms)", "Difference over the same draws."))
BRIER, ECE = described(
    brier=("Brier score", "Mean squared distance of probability and truth."),
    ece=("calibration error (ECE)", "Expected calibration error, ten bins."),
)
_RATES = (
    *estimates(detection=("detected", "Perturbed items judged not to follow.")),
    *ends("detection_wilson", "Wilson's 95 % interval of detection"),
    *estimates(fpr=("false alarms", "Control items of which the judge says the same.")),
    *ends("fpr_wilson", "Wilson's 95 % interval of false alarms"),
    NET,
    *described(std=("standard deviation", "√(p (1 − p)), as in the paper’s Table 1.")),
)
WITH_P = rows_known("score", "p_flag")
_AUROC = estimates(
    auroc=("AUROC", "Perturbed against control items, by the probability of broken.")
)


def _rates(judged: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    with_verdict = keep(judged, JUDGED(judged))
    perturbed = ON_BROKEN(with_verdict)
    flagged = numbers(with_verdict["score"]) == 0
    sides = {"detection": perturbed, "fpr": ~perturbed}
    estimates = ratios(
        how.units(with_verdict, "chain"),
        {name: (flagged & side, side) for name, side in sides.items()},
        minus={"net": ("detection", "fpr")},
        how=how,
    )
    row: dict[str, Any] = {}
    for name, side in sides.items():
        units = how.units(with_verdict, "chain")[side]
        _, low, high = columns(f"{name}_wilson", share(flagged[side].tolist(), units)).items()
        row |= columns(name, estimates[name]) | dict((low, high))
    p = estimates["detection"].value
    return row | columns("net", estimates["net"]) | {"std": math.sqrt(p * (1 - p))}


def _of_probabilities(judged: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    from sklearn.metrics import brier_score_loss

    with_p = keep(judged, WITH_P(judged))
    truth, p = ON_BROKEN(with_p), numbers(with_p["p_flag"])
    if not len(p):
        return {"brier": math.nan, "ece": math.nan}
    brier = float(brier_score_loss(truth, p, pos_label=True))
    return {"brier": brier, "ece": calibration_error(truth, p)}


DETECTION = Table(
    "c2_detection",
    "detection",
    WAY,
    (
        *counts(JUDGED, ON_BROKEN),
        *counts(JUDGED, ON_INTACT, CONTROLS),
        Numbers(_RATES, _rates),
        AgainstLabel(_AUROC, ON_BROKEN, "chain", score="p_flag", among=WITH_P),
        Numbers((BRIER, ECE), _of_probabilities),
    ),
)
"""Detection of single steps by each judge, reading and prompt (Table 1).

`brier` and `ece` take `p_flag` for the probability that an item is perturbed, over the items
judged. Intervals are Wilson's of as many independent items as the chains tell as much as; those
beside them count every item for itself.
"""


def _pairs(judged: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    verdicts = verdicts_by_judge(judged, "score", ("item",))
    truth = 0 if judged["condition"].iloc[0] == PERTURBED else 1
    right = (verdicts == truth).astype(float).where(verdicts.notna())
    pairs = list(itertools.combinations(dict.fromkeys(judged["judge"]), 2))
    if not pairs:
        alone = {"judge": judged["judge"].iloc[0], "other": "", "n": 0, "reason": ALONE}
        yield alone | {"n_without_verdict": count(judged["score"].isna())}
    for judge, other in pairs:
        row = _mcnemar_row(only(right, [judge, other]), len(pairs))
        yield {"judge": judge, "other": other} | row


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
    exact = float(scipy.stats.binomtest(only_first, discordant).pvalue)
    # the correction never takes more than there is: equal counts differ by nothing
    statistic = max(0, abs(only_first - only_second) - 1) ** 2 / discordant
    approximate = float(scipy.stats.chi2.sf(statistic, 1))
    few = discordant < FEW_DISCORDANT
    return {
        "test": "exact" if few else "chi_squared",
        "p": exact if few else approximate,
        "p_exact": exact,
        "p_chi_squared": approximate,
    }


_TEST = (
    *(SHARED["judge"], SHARED["other"], *COUNTS),
    *described(
        both_right="Items on which both judges are right.",
        only_judge="Items on which the judge alone is right.",
        only_other="Items on which the other judge alone is right.",
        both_wrong="Items on which both judges are wrong.",
    ),
    *estimates(difference="Share right of the judge minus that of the other."),
    *described(
        test="Whether p is of the exact test or of chi-squared.",
        p="McNemar's test, two-sided: exact below 25 items on which the two judges differ, else "
        "chi-squared.",
        p_exact="McNemar's p by the binomial test.",
        p_chi_squared="McNemar's p by chi-squared with continuity correction.",
        n_comparisons="Pairs of judges of the reading, prompt and condition.",
        p_bonferroni=(
            "p, corrected (Bonferroni)",
            "p times the number of pairs of judges of one reading, prompt and condition, at most "
            "1.",
        ),
    ),
    SHARED["reason"],
)
MCNEMAR = Table(
    "c2_mcnemar", "detection", ("reading", "prompt", CONDITION), lines=[Lines(_TEST, _pairs)]
)
"""McNemar's test of every two judges on the same items (C2-Faith, App. A; Table 1's daggers).

Right is 0 of a perturbed item, 1 of a control. `p` is exact (a binomial test) below
`FEW_DISCORDANT` items on which the two differ, else chi-squared with continuity correction,
which gives the paper's p = 0.090 from its Figure 6. `difference` has Newcombe's paired interval.
"""
