"""Whether probabilities can be taken at their word: reliability curves, calibration error, scores.

Of the reading that scores every verdict; a judge that writes its verdict gives no probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from faithscope.experiments.analysis.stats import wilson
from faithscope.experiments.analysis.tidy import columns, with_interval
from faithscope.experiments.studies.c2faith.metrics.frames import keep, numbers

BINS = 10
"""Equally wide bins of probability, of every curve and of the calibration error."""
LEAST = float(np.finfo(float).eps)
"""Below it a probability counts as this in a log loss, as in scikit-learn's."""


def curve_columns(probability: str, event: str) -> list[str]:
    """The columns of `curve`."""
    return ["bin", "p_low", "p_high", "n", f"mean_{probability}", *with_interval(f"share_{event}")]


def curve(
    happened: Bool[np.ndarray, " rows"],
    p: Float[np.ndarray, " rows"],
    probability: str,
    event: str,
) -> list[dict[str, Any]]:
    """A reliability curve: a row per bin of `p` that holds something.

    `mean_<probability>` of the bin, and `share_<event>`, how often the event came true in it,
    with its Wilson interval. The last bin holds p = 1.
    """
    place = _places(p)
    made = []
    for i in np.unique(place):
        of_bin = place == i
        found = wilson(int(happened[of_bin].sum()), int(of_bin.sum()))
        made.append(
            {"bin": int(i), "p_low": i / BINS, "p_high": (i + 1) / BINS, "n": found.n}
            | {f"mean_{probability}": float(p[of_bin].mean())}
            | columns(f"share_{event}", found)
        )
    return made


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


def with_probabilities(judged: pd.DataFrame) -> pd.DataFrame:
    """The rows in which every verdict has its probability."""
    return keep(judged, numbers(judged["probabilities"].map(len)) > 0)


def stacked(distributions: Iterable[tuple[float, ...]]) -> Float[np.ndarray, "rows verdicts"]:
    """Distributions as rows of one array, 0 where one is shorter than the longest."""
    found = list(distributions)
    made = np.zeros((len(found), max(map(len, found), default=0)))
    for row, p in zip(made, found, strict=True):
        row[: len(p)] = p
    return made


def _places(p: Float[np.ndarray, " rows"]) -> np.ndarray:
    return np.minimum((p * BINS).astype(int), BINS - 1)
