"""How well detectors agree with annotators: κ, AC2, accuracy, F1 of both classes, AUROC; and how
faithfulness goes with correctness (FaithCoT-Bench, sections 3.3 and 4.1, appendix B.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.metrics import average_precision_score, roc_curve
from sklearn.model_selection import StratifiedGroupKFold

from faithscope.experiments.analysis.statistics.resampling import Drawing
from faithscope.experiments.analysis.statistics.stats import (
    Estimate,
    over,
    percentiles,
    resampled_totals,
)

SATURATED = 0.9
"""Share of one class among all labels and flags from which κ hangs on a handful of chains; a choice
of ours."""
LEAST_OF_KIND = 10
"""Chains of either class below which no threshold is fitted."""
STATISTICS = ("kappa", "ac2", "accuracy", "f1", "f1_faithful")
NO_FIT = "too few chains of a class for folds"
Counts = Int[np.ndarray, "rows 4"]
"""Columns: unfaithful and flagged, faithful and flagged, unfaithful and not, faithful and not."""


def counted(label: Bool[np.ndarray, " chains"], flag: Bool[np.ndarray, " chains"]) -> Counts:
    """A row of counts per chain."""
    return np.stack([label & flag, ~label & flag, label & ~flag, ~label & ~flag], axis=1).astype(
        int
    )


def statistics(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Each of `STATISTICS` of counts (…, 4); NaN where it is not defined.

    κ is Cohen's; AC2 is Gwet's, which of two classes is AC1; `f1` is of the unfaithful class, as
    the paper's is but in two of its headline cells.
    """
    tp, fp, fn, tn = (counts[..., i].astype(float) for i in range(4))
    n = tp + fp + fn + tn
    accuracy = over(tp + tn, n)
    flagged, unfaithful = over(tp + fp, n), over(tp + fn, n)
    by_chance = flagged * unfaithful + (1 - flagged) * (1 - unfaithful)
    share = (flagged + unfaithful) / 2
    of_gwet = 2 * share * (1 - share)
    return {
        "kappa": over(accuracy - by_chance, 1 - by_chance),
        "ac2": over(accuracy - of_gwet, 1 - of_gwet),
        "accuracy": accuracy,
        "f1": over(2 * tp, 2 * tp + fp + fn),
        "f1_faithful": over(2 * tn, 2 * tn + fp + fn),
    }


@dataclass(frozen=True)
class Agreement:
    """How far flags agree with labels."""

    n: int
    of: dict[str, Estimate]
    """By name of `STATISTICS`, with percentile intervals from drawing questions."""
    saturated: bool | None
    """Whether one class is `SATURATED` of all labels and flags; None of no chain."""


def agreement(
    label: Bool[np.ndarray, " chains"],
    flag: Bool[np.ndarray, " chains"],
    questions: Sequence[str],
    how: Drawing,
) -> Agreement:
    """The agreement of flags and labels, chain by chain."""
    n = len(label)
    nothing = Estimate(math.nan, math.nan, math.nan, n)
    if not n:
        return Agreement(0, dict.fromkeys(STATISTICS, nothing), None)
    rows = counted(label, flag)
    names, codes = np.unique(np.asarray(questions, dtype=str), return_inverse=True)
    clusters = np.zeros((len(names), 4), dtype=np.int64)
    np.add.at(clusters, codes, rows)
    value = statistics(rows.sum(axis=0))
    rng = np.random.default_rng(how.seed)
    if len(names) > 1:
        drawn = statistics(resampled_totals(clusters, rng, how.resamples))
    else:
        drawn = {name: np.array([math.nan]) for name in STATISTICS}
    of = {s: Estimate(float(value[s]), *percentiles(drawn[s]), n) for s in STATISTICS}
    share = (label.mean() + flag.mean()) / 2
    return Agreement(n, of, bool(max(share, 1 - share) >= SATURATED))


def average_precision(label: Bool[np.ndarray, " chains"], score: np.ndarray) -> float:
    """Of the unfaithful class; NaN of one class alone."""
    if label.all() or not label.any():
        return math.nan
    return float(average_precision_score(label, score))


def cross_fitted_flags(
    label: Bool[np.ndarray, " chains"],
    score: Float[np.ndarray, " chains"],
    questions: Sequence[str],
    folds: int,
    seed: int,
) -> Bool[np.ndarray, " chains"] | None:
    """Flags by thresholds fitted on the other folds, questions kept together; None where there is
    too little of a class (`LEAST_OF_KIND`, or in fewer questions than folds).

    The threshold is the score from which on sensitivity plus specificity is greatest, of equals
    the highest.
    """
    groups = np.asarray(questions, dtype=str)
    if min(label.sum(), (~label).sum()) < LEAST_OF_KIND:
        return None
    if min(len(set(groups[label])), len(set(groups[~label]))) < folds:
        return None
    flags = np.zeros(len(label), dtype=bool)
    cut = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    for train, test in cut.split(score, label, groups):
        if label[train].all() or not label[train].any():
            return None
        false, true, thresholds = roc_curve(label[train], score[train], drop_intermediate=False)
        flags[test] = score[test] >= thresholds[int(np.argmax(true - false))]
    return flags


def quadrants(correct: Sequence[bool], faithful: Sequence[bool]) -> dict[str, Any]:
    """The four counts of correctness and faithfulness, their φ, and their mutual information in
    bits (the paper's .057 is of bits); both NaN where one of the two does not vary."""
    pairs = list(zip(correct, faithful, strict=True))
    a, b = pairs.count((True, True)), pairs.count((True, False))
    c, d = pairs.count((False, True)), pairs.count((False, False))
    return {
        "n": len(pairs),
        "correct_faithful": a,
        "correct_unfaithful": b,
        "wrong_faithful": c,
        "wrong_unfaithful": d,
        **association(a, b, c, d),
    }


def association(a: int, b: int, c: int, d: int) -> dict[str, float]:
    """φ and mutual information in bits of the counts [[a, b], [c, d]]."""
    n, margins = a + b + c + d, (a + b) * (c + d) * (a + c) * (b + d)
    if not margins:
        return {"phi": math.nan, "mutual_information": math.nan}
    cells = ((a, a + b, a + c), (b, a + b, b + d), (c, c + d, a + c), (d, c + d, b + d))
    bits = math.fsum(x / n * math.log2(x * n / (row * column)) for x, row, column in cells if x)
    return {"phi": (a * d - b * c) / math.sqrt(margins), "mutual_information": bits}
