"""Calibration of probabilities: reliability curves, calibration error, and recalibration."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from faithscope.experiments.analysis.statistics.resampling import Clusters
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import columns, with_interval

BINS = 10
"""Number of equally wide probability bins, of curves and of the calibration error."""
LEAST = float(np.finfo(float).eps)
"""Least probability, and least distance from 1, in log-odds; others are moved to it."""
FOLDS = 5
"""Number of folds of clusters; each is recalibrated by a curve fitted on the others."""
LEAST_OF_KIND = 10
"""Least number of items with and without the event for fitting a curve."""


@dataclass(frozen=True)
class Event:
    """A yes-or-no outcome per item, and the probability that was given to it."""

    about: dict[str, Any]
    """Columns that name the event and the source of the probabilities."""
    clusters: Clusters
    happened: Bool[np.ndarray, " rows"]
    p: Float[np.ndarray, " rows"]


def curves_table(events: Iterable[Event], about: list[str], p: str, happened: str) -> pd.DataFrame:
    """The reliability curves of events: a row per non-empty bin of the probability `p`.

    Columns are `mean_<p>` of the bin and `share_<happened>`, the share of items with the event,
    with its Wilson interval. An event without probabilities has one row, with n = 0. The last bin
    includes p = 1.

    Args:
        about: names of the columns taken from `Event.about`.
    """
    bins = [
        event.about | of_bin
        for event in events
        for of_bin in curve(event.happened, event.p, p, happened) or [{"n": 0}]
    ]
    own = ["bin", "p_low", "p_high", "n", f"mean_{p}", *with_interval(f"share_{happened}")]
    return pd.DataFrame(bins, columns=[*about, *own])


def curve(
    happened: Bool[np.ndarray, " rows"],
    p: Float[np.ndarray, " rows"],
    probability: str,
    event: str,
) -> list[dict[str, Any]]:
    """The rows of `curves_table` for one event, without the columns `about`."""
    place = _places(p)
    bins = []
    for i in np.unique(place):
        of_bin = place == i
        share = wilson(int(happened[of_bin].sum()), int(of_bin.sum()))
        bins.append(
            {"bin": int(i), "p_low": i / BINS, "p_high": (i + 1) / BINS, "n": share.n}
            | {f"mean_{probability}": float(p[of_bin].mean())}
            | columns(f"share_{event}", share)
        )
    return bins


def calibration_error(happened: Bool[np.ndarray, " rows"], p: Float[np.ndarray, " rows"]) -> float:
    """Expected calibration error (Guo et al., 2017): |mean p - share| over bins, weighted by rows.

    NaN without rows. It has no interval: chance alone lifts it above 0, in every resample too.
    """
    if not len(p):
        return math.nan
    gaps = np.bincount(_places(p), weights=p - happened, minlength=BINS)
    return float(np.abs(gaps).sum() / len(p))


def recalibrated(
    clusters: Clusters, happened: Bool[np.ndarray, " rows"], p: Float[np.ndarray, " rows"]
) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"], float] | None:
    """Recalibrated probabilities, base rates as a baseline, and the slope of the curve.

    Probabilities come from Platt's logistic curve (1999) fitted on the other folds, base rates are
    the share of events in the other folds, and the slope is that of a curve fitted on all rows. The
    curve corrects a wrong scale; the loss that remains is information that the probabilities lack.
    None with fewer than `LEAST_OF_KIND` items of either outcome or fewer than `FOLDS` clusters.
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fewest = min(happened.sum(), (~happened).sum())
    if fewest < LEAST_OF_KIND or len(set(clusters)) < FOLDS:
        return None
    inside = np.clip(p, LEAST, 1 - LEAST)
    x = (np.log(inside) - np.log1p(-inside))[:, None]
    parts = list(GroupKFold(FOLDS).split(x, happened, clusters))
    if any(happened[train].all() or not happened[train].any() for train, _ in parts):
        return None
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=1.0))
    by_curve, by_share = (
        np.asarray(cross_val_predict(model, x, happened, cv=parts, method="predict_proba"))[:, 1]
        for model in (logistic, DummyClassifier(strategy="prior"))
    )
    scale, fitted = (step for _, step in logistic.fit(x, happened).steps)
    return by_curve, by_share, float(fitted.coef_[0, 0] / scale.scale_[0])


def _places(p: Float[np.ndarray, " rows"]) -> np.ndarray:
    return np.minimum((p * BINS).astype(int), BINS - 1)
