"""Predictors of whether a broken step is seen (C2-Faith, §5.5, App. D.2 and E; Tables 5, 6, Figure
8)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import Lines, Mean, Share, every_row
from faithscope.experiments.analysis.columns import SHARED, described, estimates
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, ratios
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import all_columns, keep, numbers, where
from faithscope.experiments.studies.c2faith.benchmark.features import EDIT_TYPES
from faithscope.experiments.studies.c2faith.tables.frames import (
    COUNTS,
    JUDGED,
    PERTURBED,
    WAY,
    counts,
    sorted_within,
)

FEATURES = (
    "math_symbol_density",
    "edit_similarity",
    "relative_position",
    "n_words",
    "n_steps",
    "n_chars",
)
"""Features of a broken step, in the order of Table 5."""
POSITION_BINS = 5
LEAST_OF_CLASS = 10
"""Number of right and of wrong items below which no logistic regression is fitted."""
EDIT_TYPE, METHOD, _POSITION, _WRONG_ALONE = described(
    edit_type="What kind of edit broke the step.",
    method="What made the edit: a rule, by its name, or a language model.",
    position="Middle of the bin of the broken step's relative place, from 0 to 1.",
    wrong_alone=(
        "wrong without context",
        "Steps whose arithmetic contradicts itself, so that no other step is needed to see it.",
    ),
)
OF_FEATURES = ("detection", "features")
"""The frames that tables of edits are made of, put together by `joined`."""
_DETECTED = ("detected", "Perturbed items judged not to follow.")
RATES = (
    *counts(JUDGED),
    Share("detection", lambda judged: judged["score"] == 0, JUDGED, *_DETECTED),
)
OF_EDITS = (
    *RATES,
    Mean("wrong_alone", "wrong_alone", every_row, _WRONG_ALONE.label, _WRONG_ALONE.meaning),
)


def joined(detection: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    """The perturbed items' judgements with the features of their edits."""
    perturbed = where(detection, condition=PERTURBED)
    return perturbed.merge(features.drop(columns="chain"), on="item", how="inner")


def _by_edit_type(detection: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    of_items = joined(detection, features)
    kinds = [*EDIT_TYPES, *sorted(set(of_items["edit_type"]) - set(EDIT_TYPES))]
    return sorted_within(of_items, WAY, of_items["edit_type"].map(kinds.index))


def _by_method(detection: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    of_items = joined(detection, features)
    return sorted_within(of_items, WAY, of_items["method"])


EDITS = Table("c2_edit_types", OF_FEATURES, (*WAY, EDIT_TYPE), OF_EDITS, prepare=_by_edit_type)
"""Detection by edit type, with Wilson intervals; a row per type that occurs (Table 6)."""
METHODS = Table("c2_methods", OF_FEATURES, (*WAY, METHOD), OF_EDITS, prepare=_by_method)
"""Detection by what made the edit: a rule (and which), or a language model."""


def _by_position(detection: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    of_items = joined(detection, features)
    place = (numbers(of_items["relative_position"]) * POSITION_BINS).astype(int)
    place = np.minimum(place, POSITION_BINS - 1)
    binned = of_items.assign(bin=place, position=(place + 0.5) / POSITION_BINS)
    return sorted_within(binned, WAY, place)


POSITIONS = Table(
    "c2_positions", OF_FEATURES, (*WAY, "bin", _POSITION), RATES, prepare=_by_position
)
"""Detection by the relative place of the broken step, in equally wide bins (Figure 8)."""


def _features(judged: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    with_verdict = keep(judged, JUDGED(judged))
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
        estimates = ratios(how.units(with_verdict, "chain"), of, minus=difference, how=how)
        row: dict[str, Any] = all_columns(estimates, [*of, "difference"])
        row |= {"coefficient": coefficients.get(feature, math.nan), "reason": reason}
        yield {"feature": feature} | counts | row


_COMPARED = (
    *described(
        feature="The property of the broken step or of its chain.",
        n_correct="Broken steps flagged.",
        n_wrong="Broken steps passed.",
    ),
    COUNTS[1],
    *estimates(
        mean_correct="Mean of the feature over the broken steps flagged.",
        mean_wrong="Mean of the feature over the broken steps passed.",
        difference="Mean over those flagged minus mean over those passed.",
    ),
    *described(coefficient="Log-odds of being flagged per standard deviation."),
    SHARED["reason"],
)
PREDICTORS = Table(
    "c2_predictors", OF_FEATURES, WAY, prepare=joined, lines=[Lines(_COMPARED, _features)]
)
"""Means of each feature over the broken steps flagged and over those passed (Table 5).

Intervals are from drawing chains. `coefficient`: log-odds of being flagged per
standard deviation of the feature with all features in one logistic regression (L2, C = 1), fitted
where `LEAST_OF_CLASS` items are right and as many wrong; it tells apart features that go together,
as n_words and n_chars do. 0 of a feature that does not vary.
"""


def _sides(right: np.ndarray, known: np.ndarray) -> dict[str, np.ndarray]:
    return {"mean_correct": right & known, "mean_wrong": ~right & known}


def _regression(with_verdict: pd.DataFrame, right: np.ndarray) -> tuple[dict[str, float], str]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    x = with_verdict[list(FEATURES)].to_numpy(dtype=float)
    whole = ~np.isnan(x).any(axis=1)
    x, y = x[whole], right[whole]
    if min(y.sum(), (~y).sum()) < LEAST_OF_CLASS:
        return {}, f"fewer than {LEAST_OF_CLASS} items correct, or wrong"
    fitted = LogisticRegression(C=1.0, max_iter=2_000).fit(StandardScaler().fit_transform(x), y)
    return dict(zip(FEATURES, fitted.coef_[0].tolist(), strict=True)), ""
