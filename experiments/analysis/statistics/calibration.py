"""Whether probabilities can be taken at their word, and what is left of them on a right scale."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from faithscope.experiments.analysis.statistics.resampling import Clusters
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import columns, with_interval

BINS = 10
"""Equally wide bins of probability, of every curve and of the calibration error."""
LEAST = float(np.finfo(float).eps)
"""Below it a probability counts as this in a log loss, as in scikit-learn's."""
FOLDS = 5
"""Parts that clusters are divided into; each is recalibrated by what the others show."""
LEAST_OF_KIND = 10
"""Items in which the event holds, or does not, below which nothing is fitted."""


@dataclass(frozen=True)
class Event:
    """Something that happened or not, and the probability that was given to it, item by item."""

    about: dict[str, Any]
    """What the event is and who gave the probabilities, as columns."""
    clusters: Clusters
    happened: Bool[np.ndarray, " rows"]
    p: Float[np.ndarray, " rows"]


def curves_table(events: Iterable[Event], about: list[str], p: str, happened: str) -> pd.DataFrame:
    """The reliability curve of every event: a row per bin of `p` that holds something.

    `mean_<p>` of the bin, and `share_<happened>`, how often the event came true in it, with its
    Wilson interval; of an event without probabilities one row, of n = 0. The last bin holds p = 1.

    Args:
        about: the columns taken from `Event.about`.
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
    """The rows of one event in `curves_table`."""
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

    NaN of nothing. It has no interval: chance alone lifts it above 0, in every resample too.
    """
    if not len(p):
        return math.nan
    gaps = np.bincount(_places(p), weights=p - happened, minlength=BINS)
    return float(np.abs(gaps).sum() / len(p))


def log_loss(p: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    """-ln of the probabilities given to what is true, in nats."""
    return -np.log(np.maximum(p, LEAST))


def recalibrated(
    clusters: Clusters, happened: Bool[np.ndarray, " rows"], p: Float[np.ndarray, " rows"]
) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"], float] | None:
    """Probabilities by a curve, and by the share, of other clusters; and the slope over all.

    The curve is Platt's logistic (1999), which takes out a wrong scale: what is left of a score is
    what the probabilities do not know. None where there is too little to fit: fewer than
    `LEAST_OF_KIND` items of either kind, or than `FOLDS` clusters.
    """
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
