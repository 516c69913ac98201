"""Agreement of several raters (people or judges) beyond chance."""

from __future__ import annotations

import importlib
import math
from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np

from faithscope.experiments.engine.environment import install_command

CONSTANT = "all verdicts are one and the same"
MOSTLY = 0.9
Level = Literal["nominal", "ordinal"]


def quadratic_kappa(left: Sequence[float], right: Sequence[float]) -> float:
    """Cohen's kappa with squared distances as weights; NaN if all scores are equal."""
    from sklearn.metrics import cohen_kappa_score

    if len({*left, *right}) < 2:
        return math.nan
    # scikit-learn weighs labels by their positions, so positions must equal scores
    whole = list(range(int(min(*left, *right)), int(max(*left, *right)) + 1))
    a, b = ([int(v) for v in side] for side in (left, right))
    if [*left, *right] != [*a, *b]:
        raise ValueError("quadratic kappa of scores that are not whole numbers")
    return float(cohen_kappa_score(a, b, labels=whole, weights="quadratic"))


def fleiss_kappa(verdicts: np.ndarray) -> float:
    """Fleiss' kappa of (items, judges) verdicts without gaps (Psychological Bulletin 76, 1971).

    NaN without items, and if all verdicts are the same.
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


def gwet_ac2(
    left: Sequence[Hashable], right: Sequence[Hashable], levels: Sequence[Hashable]
) -> float:
    """Gwet's AC2 of two raters with linear weights (Handbook of Inter-Rater Reliability, 4th ed.,
    ch. 4 and 5). Unlike Cohen's kappa it stays high if nearly all labels are the same.

    With two levels it equals AC1.

    Args:
        levels: all possible labels in order; neighbouring labels agree in part.

    Returns:
        AC2; NaN without items.
    """
    n, q = len(left), len(levels)
    if not n:
        return math.nan
    place = {level: i for i, level in enumerate(levels)}
    rows, columns = (np.array([place[label] for label in side]) for side in (left, right))
    observed = float((1 - abs(rows - columns) / (q - 1)).mean())
    shares = np.bincount(np.concatenate([rows, columns]), minlength=q) / (2 * n)
    weights = 1 - abs(np.subtract.outer(np.arange(q), np.arange(q))) / (q - 1)
    chance = float(weights.sum() / (q * (q - 1)) * (shares * (1 - shares)).sum())
    return (observed - chance) / (1 - chance)


def saturated(left: Sequence[Hashable], right: Sequence[Hashable]) -> bool:
    """Whether one label has a share of at least `MOSTLY` among all labels of both raters.

    Kappa then depends on a handful of items and falls towards 0 however well the raters agree: read
    AC2 instead. The threshold is our choice; no paper gives one.
    """
    labels = [*left, *right]
    return bool(labels) and max(map(labels.count, set(labels))) >= MOSTLY * len(labels)


def krippendorff_alpha(verdicts: np.ndarray, level: Level) -> tuple[float, str]:
    """Krippendorff's alpha of (items, judges) verdicts (NaN = no verdict), and the reason if alpha
    is NaN.

    Needs the package krippendorff of the extra `judge`; without it alpha is NaN, and the reason
    names the command that installs it.
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
