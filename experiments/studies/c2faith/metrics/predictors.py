"""What makes a broken step easy to see (C2-Faith, §5.5, App. D.2 and E; Tables 5, 6, Figure 8)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from faithscope.experiments.analysis.statistics.resampling import Drawing, ratios
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import (
    Rows,
    columns,
    count,
    groups,
    keep,
    numbers,
    tabled,
    where,
    with_interval,
)
from faithscope.experiments.studies.c2faith.benchmark.features import EDIT_TYPES
from faithscope.experiments.studies.c2faith.metrics.frames import PERTURBED, WAY, mean_or_nan

FEATURES = (
    "math_symbol_density",
    "edit_similarity",
    "relative_position",
    "n_words",
    "n_steps",
    "n_chars",
)
"""In the order of Table 5."""
POSITION_BINS = 5
LEAST_OF_CLASS = 10
"""Right and wrong items below which no logistic regression is fitted."""
_OF_EDITS = ["n", "n_without_verdict", *with_interval("detection"), "wrong_alone"]
PREDICTORS = [*WAY, "feature", "n_correct", "n_wrong", "n_without_verdict"]
PREDICTORS += ["mean_correct", "mean_wrong", *with_interval("difference"), "coefficient", "reason"]


def joined(detection: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    """The perturbed items' judgements with the features of their edits."""
    perturbed = where(detection, condition=PERTURBED)
    return perturbed.merge(features.drop(columns="chain"), on="item", how="inner")


@tabled(*WAY, "edit_type", *_OF_EDITS)
def edit_types_table(of_items: pd.DataFrame) -> Rows:
    """Table 6: detection by edit type, with Wilson intervals; a row per type that occurs."""
    order: dict[str, int] = {name: i for i, name in enumerate(EDIT_TYPES)}
    return _by(of_items, "edit_type", lambda t: (order.get(t, len(order)), t))


@tabled(*WAY, "method", *_OF_EDITS)
def methods_table(of_items: pd.DataFrame) -> Rows:
    """Detection by what made the edit: a rule (and which), or a language model."""
    return _by(of_items, "method", None)


def _by(of_items: pd.DataFrame, name: str, order: Callable[[str], Any] | None) -> Rows:
    for key, judged in groups(of_items, WAY):
        for value in sorted(judged[name].unique(), key=order):
            of_value = where(judged, **{name: value})
            alone = {"wrong_alone": mean_or_nan(numbers(of_value["wrong_alone"]))}
            yield key | {name: value} | _detected(of_value) | alone


@tabled(*WAY, "bin", "position", "n", "n_without_verdict", *with_interval("detection"))
def positions_table(of_items: pd.DataFrame, bins: int = POSITION_BINS) -> Rows:
    """Figure 8: detection by the relative place of the broken step, in equally wide bins."""
    for key, judged in groups(of_items, WAY):
        place = np.minimum((numbers(judged["relative_position"]) * bins).astype(int), bins - 1)
        for i in np.unique(place):
            at = {"bin": int(i), "position": (i + 0.5) / bins}
            yield key | at | _detected(keep(judged, place == i))


def _detected(judged: pd.DataFrame) -> dict[str, Any]:
    verdicts = judged["score"].dropna()
    detection = wilson(count(verdicts == 0), len(verdicts))
    return {"n": len(verdicts), "n_without_verdict": len(judged) - len(verdicts)} | columns(
        "detection", detection
    )


@tabled(*PREDICTORS)
def predictors_table(of_items: pd.DataFrame, how: Drawing) -> Rows:
    """Table 5: means of each feature over the broken steps flagged and over those passed.

    `difference` = correct - wrong, with its interval from drawing chains. `coefficient`: log-odds
    of being flagged per standard deviation of the feature with all features in one logistic
    regression (L2, C = 1), fitted where `LEAST_OF_CLASS` items are right and as many wrong; it
    tells apart features that go together, as n_words and n_chars do. 0 of a feature that does
    not vary.
    """
    for key, judged in groups(of_items, WAY):
        with_verdict = keep(judged, judged["score"].notna())
        right = numbers(with_verdict["score"]) == 0
        counts = {"n_correct": int(right.sum()), "n_wrong": int((~right).sum())}
        counts["n_without_verdict"] = len(judged) - len(with_verdict)
        coefficients, reason = _regression(with_verdict, right)
        for feature in FEATURES:
            x = numbers(with_verdict[feature])
            known = ~np.isnan(x)
            x = np.where(known, x, 0)
            of = {name: (x * side, side) for name, side in _sides(right, known).items()}
            difference = {"difference": ("mean_correct", "mean_wrong")}
            estimates = ratios(with_verdict["chain"].to_numpy(), of, minus=difference, how=how)
            row = {name: estimates[name].value for name in of}
            row |= columns("difference", estimates["difference"])
            row |= {"coefficient": coefficients.get(feature, math.nan), "reason": reason}
            yield key | {"feature": feature} | counts | row


def _sides(right: np.ndarray, known: np.ndarray) -> dict[str, np.ndarray]:
    return {"mean_correct": right & known, "mean_wrong": ~right & known}


def _regression(with_verdict: pd.DataFrame, right: np.ndarray) -> tuple[dict[str, float], str]:
    x = with_verdict[list(FEATURES)].to_numpy(dtype=float)
    whole = ~np.isnan(x).any(axis=1)
    x, y = x[whole], right[whole]
    if min(y.sum(), (~y).sum()) < LEAST_OF_CLASS:
        return {}, f"fewer than {LEAST_OF_CLASS} items correct, or wrong"
    fitted = LogisticRegression(C=1.0, max_iter=2_000).fit(StandardScaler().fit_transform(x), y)
    return dict(zip(FEATURES, fitted.coef_[0].tolist(), strict=True)), ""
