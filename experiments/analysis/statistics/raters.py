"""How far several raters agree beyond chance: people, or judges."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from sklearn.metrics import cohen_kappa_score

from faithscope.experiments.engine.environment import install_command

CONSTANT = "all verdicts are one and the same"
Level = Literal["nominal", "ordinal"]


def quadratic_kappa(left: Sequence[float], right: Sequence[float]) -> float:
    """Cohen's kappa with squared distances as weights; NaN where all scores are one."""
    if len({*left, *right}) < 2:
        return math.nan
    # the labels of scikit-learn weigh by place: the places must be the scores themselves
    whole = list(range(int(min(*left, *right)), int(max(*left, *right)) + 1))
    a, b = ([int(v) for v in side] for side in (left, right))
    if [*left, *right] != [*a, *b]:
        raise ValueError("quadratic kappa of scores that are not whole numbers")
    return float(cohen_kappa_score(a, b, labels=whole, weights="quadratic"))


def fleiss_kappa(verdicts: np.ndarray) -> float:
    """Fleiss' kappa of (items, judges) verdicts without gaps (Psychological Bulletin 76, 1971).

    NaN of no item, and where all verdicts are one and the same.
    """
    if not len(verdicts):
        return math.nan
    judges = verdicts.shape[1]
    counts = np.stack([(verdicts == v).sum(axis=1) for v in np.unique(verdicts)], axis=1)
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    if chance == 1:
        return math.nan
    agreed = float(((counts * (counts - 1)).sum(axis=1) / (judges * (judges - 1))).mean())
    return (agreed - chance) / (1 - chance)


def krippendorff_alpha(verdicts: np.ndarray, level: Level) -> tuple[float, str]:
    """Krippendorff's alpha of (items, judges) verdicts, NaN for none given, and why it is NaN.

    By the package krippendorff, of the extra `judge`; without it there is no alpha, and the
    reason is the command that adds it.
    """
    rated = verdicts[(~np.isnan(verdicts)).sum(axis=1) >= 2]
    if not len(rated):
        return math.nan, "no item with two verdicts"
    if len(np.unique(rated[~np.isnan(rated)])) < 2:
        return math.nan, CONSTANT
    try:
        library = importlib.import_module("krippendorff")
    except ModuleNotFoundError:
        return math.nan, f"needs krippendorff: {install_command('judge')}"
    return float(library.alpha(reliability_data=rated.T, level_of_measurement=level)), ""
