"""What a judge's probabilities are worth once their scale is put right (ours).

A judge that is miscalibrated may know nothing, or know much and say it on a wrong scale. Platt's
logistic (1999), fitted to some chains and applied to others, takes the scale out: what is left of
the score is what the judge does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from faithscope.experiments.analysis.resampling import Chains, Drawing, ratios
from faithscope.experiments.analysis.tidy import columns, with_interval
from faithscope.experiments.studies.c2faith.metrics.coverage import INFLATED
from faithscope.experiments.studies.c2faith.metrics.coverage_probabilities import (
    below_cuts,
    with_truths,
)
from faithscope.experiments.studies.c2faith.metrics.frames import (
    PERTURBED,
    WAY,
    Frames,
    groups,
    keep,
    numbers,
)
from faithscope.experiments.studies.c2faith.metrics.localisation_probabilities import (
    BOTH,
    outcomes,
    scored,
)
from faithscope.experiments.studies.c2faith.metrics.reliability import (
    LEAST,
    calibration_error,
    with_probabilities,
)

FOLDS = 5
"""Parts that chains are divided into; each is recalibrated by what the others show."""
LEAST_OF_KIND = 10
"""Items in which the event holds, or does not, below which nothing is fitted."""
FEW = f"fewer than {LEAST_OF_KIND} items of either kind, or than {FOLDS} chains"
_MEANS = ("brier", "brier_recalibrated", "brier_base")
RECALIBRATION = ["task", *WAY, "scale", "reference_judge", "event", "n", "n_happened"]
RECALIBRATION += ["n_without_verdict", *with_interval(*_MEANS, "gain")]
RECALIBRATION += ["ece", "ece_recalibrated", "slope", "reason"]
Event = tuple[dict[str, Any], Chains, np.ndarray, np.ndarray]
"""What is told of, the chains, whether the event holds, its probability; of every item."""


def recalibration_table(frames: Frames, how: Drawing) -> pd.DataFrame:
    """A row per judge, reading, prompt (and scale) and event that its probabilities speak of.

        event               step_replaced: of detection the step shown, of localisation any
                            step, 1 - P(-1); verdict_right, by the verdict's own probability; of
                            coverage below_three_quarters, that so much of the middle steps is
                            not kept, and reference_below_three_quarters
        brier               of the probabilities as given; `brier_recalibrated`, by a logistic
                            curve through other chains' probabilities; `brier_base`, of the
                            event's share in other chains
        gain                brier_base - brier_recalibrated: above 0, the judge knows something
        ece                 calibration error before and after
        slope               of the logistic curve through all items, over the log-odds: 1 where
                            the scale is right, nearer 0 where a judge is surer than it may be,
                            below 0 where it has things the wrong way round

    Intervals are from drawing chains, with the curves as they were fitted.
    """
    made = []
    for key, chains, happened, p in _events(frames):
        row = key | {"n": len(p), "n_happened": int(happened.sum())}
        made.append(row | _numbers(np.asarray(chains, dtype=str), happened, p, how))
    return pd.DataFrame(made, columns=RECALIBRATION)


def recalibrated(
    chains: Chains, happened: Bool[np.ndarray, " rows"], p: Float[np.ndarray, " rows"]
) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"], float] | None:
    """Probabilities by a curve, and by the share, of other chains; and the slope over all.

    None where there is too little to fit, as `FEW` says.
    """
    fewest = min(happened.sum(), (~happened).sum())
    folds = GroupKFold(FOLDS)
    if fewest < LEAST_OF_KIND or len(set(chains)) < FOLDS:
        return None
    x = _log_odds(p)[:, None]
    parts = list(folds.split(x, happened, chains))
    if any(happened[train].all() or not happened[train].any() for train, _ in parts):
        return None
    curve = make_pipeline(StandardScaler(), LogisticRegression(C=1.0))
    by_curve, by_share = (
        np.asarray(cross_val_predict(model, x, happened, cv=parts, method="predict_proba"))[:, 1]
        for model in (curve, DummyClassifier(strategy="prior"))
    )
    scale, logistic = (step for _, step in curve.fit(x, happened).steps)
    return by_curve, by_share, float(logistic.coef_[0, 0] / scale.scale_[0])


def _log_odds(p: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
    inside = np.clip(p, LEAST, 1 - LEAST)
    return np.log(inside) - np.log1p(-inside)


def _numbers(
    chains: np.ndarray, happened: np.ndarray, p: np.ndarray, how: Drawing
) -> dict[str, Any]:
    found = recalibrated(chains, happened, p)
    if found is None:
        return {"ece": calibration_error(happened, p), "reason": FEW}
    by_curve, by_share, slope = found
    every = np.ones(len(p), dtype=bool)
    errors = zip(_MEANS, (p, by_curve, by_share), strict=True)
    of = ratios(
        chains,
        {name: ((q - happened) ** 2, every) for name, q in errors},
        minus={"gain": ("brier_base", "brier_recalibrated")},
        how=how,
    )
    row: dict[str, Any] = {"slope": slope, "reason": ""}
    for name in (*_MEANS, "gain"):
        row |= columns(name, of[name])
    return row | {
        "ece": calibration_error(happened, p),
        "ece_recalibrated": calibration_error(happened, by_curve),
    }


def _events(frames: Frames) -> Iterator[Event]:
    nothing = {"scale": "", "reference_judge": ""}
    for key, judged in groups(frames.detection, WAY):
        mine = keep(judged, judged["score"].notna() & judged["p_flag"].notna())
        if key["reading"] == "scored" or len(mine):
            of = {"task": "detection", "event": "step_replaced"} | key | nothing
            of |= {"n_without_verdict": len(judged) - len(mine)}
            yield of, mine["chain"].to_numpy(), _replaced(mine), numbers(mine["p_flag"])
    for key, judged in scored(frames.localisation):
        if key.pop("condition") != BOTH:
            continue
        mine = with_probabilities(judged)
        of = {"task": "localisation", **key, **nothing}
        of |= {"n_without_verdict": len(judged) - len(mine)}
        right, confidence, _ = outcomes(mine)
        some = 1 - np.array([p[0] for p in mine["probabilities"]], dtype=float)
        chains = mine["chain"].to_numpy()
        yield of | {"event": "step_replaced"}, chains, _replaced(mine), some
        yield of | {"event": "verdict_right"}, chains, right, confidence
    for key, judged, truth in with_truths(frames.coverage):
        held = ~np.isnan(truth)
        mine = keep(judged, held)
        below = dict(below_cuts(mine, key["scale"]))[INFLATED]
        name = "reference_below" if key.pop("truth") == "reference" else "below"
        of = {"task": "coverage", **key, "event": f"{name}_three_quarters"}
        yield of, mine["chain"].to_numpy(), truth[held] < INFLATED, below


def _replaced(judged: pd.DataFrame) -> np.ndarray:
    return (judged["condition"] == PERTURBED).to_numpy()
