"""Calibration of a judge's probabilities, and what they are worth on a right scale (ours).

A judge that is miscalibrated may know nothing, or know much and say it on a wrong scale. How much
of its probability it gives to verdicts at all stands here, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import (
    Boot,
    Lines,
    Mean,
    Numbers,
    all_of,
    rows_known,
    rows_with,
)
from faithscope.experiments.analysis.columns import SHARED, described, estimates
from faithscope.experiments.analysis.statistics.calibration import (
    FOLDS,
    LEAST_OF_KIND,
    calibration_error,
    curve,
    recalibrated,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import all_columns, groups, keep, numbers
from faithscope.experiments.studies.c2faith.metrics.coverage import INFLATED, OF
from faithscope.experiments.studies.c2faith.metrics.detection import BRIER, ECE
from faithscope.experiments.studies.c2faith.metrics.frames import (
    COUNTS,
    ON_BROKEN,
    REFERENCE_JUDGE,
    SCALE,
    WAY,
    counted,
    counts,
)
from faithscope.experiments.studies.c2faith.metrics.probabilities import (
    asked_for,
    below_cuts,
    has_probabilities,
    outcomes,
    p_of_no_step,
    truths_of,
)

FEW = f"fewer than {LEAST_OF_KIND} items of either kind, or than {FOLDS} chains"
REPLACED, RIGHT = "step_replaced", "verdict_right"
EVENTS = {"kept": "below_three_quarters", "reference": "reference_below_three_quarters"}
"""Truth that a coverage score is compared with -> name of the event."""
FLAGGED = rows_known("score", "p_flag")
"""Mask of the verdicts on single steps that have a probability."""


def _curve(judged: pd.DataFrame, how: Bootstrap) -> Iterable[dict[str, Any]]:
    known = keep(judged, FLAGGED(judged))
    silent = {"n_without_verdict": len(judged) - len(known)}
    bins = curve(ON_BROKEN(known), numbers(known["p_flag"]), "p_flag", "perturbed")
    return [silent | of_bin for of_bin in bins or [{"n": 0}]]


_BINS = (
    *(COUNTS[1], SHARED["bin"]),
    *described(
        p_low="Lower end of the bin of probabilities.",
        p_high="Upper end of the bin of probabilities.",
    ),
    COUNTS[0],
    *described(mean_p_flag="Mean probability that the step is broken, of the bin."),
    *estimates(share_perturbed="Share of the bin's items that are perturbed."),
)
CALIBRATION = Table(
    "c2_calibration", "detection", WAY, among=asked_for(FLAGGED, WAY), lines=[Lines(_BINS, _curve)]
)
"""The reliability curve of each judge of single steps, a row per bin that holds something.

Half of the items are perturbed, by construction: a judge is calibrated for these items, not for
chains in the wild. A judge that gives no probabilities is not in it.
"""


def _events(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> pd.DataFrame:
    """A row per judgement and event that its probabilities speak of: the probability `p` given to
    it (NaN without a verdict), and whether it `happened` (NaN where the truth is not known).

    Detection: that the step shown was replaced. Localisation: that any step was (1 - P(-1)), and
    that the verdict is right. Coverage: that the truth is below three quarters of the scale.
    """
    steps = keep(detection, asked_for(FLAGGED, WAY)(detection))
    told = {"task": "detection", "event": REPLACED, "happened": ON_BROKEN(steps).astype(float)}
    parts = [steps.assign(**told, p=steps["p_flag"].where(FLAGGED(steps)))]
    chains = keep(localisation, asked_for(has_probabilities, WAY)(localisation))
    for _, judged in groups(chains.assign(task="localisation"), WAY):
        known = has_probabilities(judged)
        right, confidence, _ = outcomes(keep(judged, known))
        any_step = 1 - p_of_no_step(keep(judged, known))
        broken = ON_BROKEN(judged)[known]
        for event, happened, p in ((REPLACED, broken, any_step), (RIGHT, right, confidence)):
            parts.append(_event(judged, known, event, happened, p))
    rated = keep(coverage, asked_for(has_probabilities, OF)(coverage))
    for key, judged in groups(rated.assign(task="coverage"), OF):
        known = has_probabilities(judged)
        below = below_cuts(keep(judged, known), key["scale"])[INFLATED]
        for name, truth in truths_of(judged).items():
            happened = np.where(np.isnan(truth), np.nan, truth < INFLATED)[known]
            parts.append(_event(judged, known, EVENTS[name], happened, below))
    names = ["task", *OF, "event", "chain", "happened", "p"]
    return pd.concat(parts).reindex(columns=names).fillna({"scale": "", "reference_judge": ""})


def _event(
    judged: pd.DataFrame, known: np.ndarray, event: str, happened: np.ndarray, p: np.ndarray
) -> pd.DataFrame:
    of_event = judged.assign(event=event, happened=np.nan, p=np.nan)
    of_event.loc[known, "happened"], of_event.loc[known, "p"] = happened.astype(float), p
    return of_event


HELD = rows_known("p", "happened")
"""Mask of the probabilities whose event is known to have happened or not."""


def _recalibrated(events: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    known = keep(events, HELD(events))
    happened, p = numbers(known["happened"]) == 1, numbers(known["p"])
    row: dict[str, Any] = {"ece": calibration_error(happened, p)}
    clusters = known["chain"].to_numpy(dtype=str)
    curves = recalibrated(clusters, happened, p)
    if curves is None:
        return row | {"reason": FEW}
    by_curve, by_share, slope = curves
    given = {"brier": p, "brier_recalibrated": by_curve, "brier_base": by_share}
    errors = {name: (q - happened) ** 2 for name, q in given.items()}
    gain = {"gain": ("brier_base", "brier_recalibrated")}
    estimates = means(clusters, errors, minus=gain, how=how)
    row |= all_columns(estimates, estimates) | {"slope": slope, "reason": ""}
    return row | {"ece_recalibrated": calibration_error(happened, by_curve)}


_EVENT, _N_HAPPENED = described(
    event="What the probabilities are of: that a step was replaced, that the verdict is right, or "
    "that the truth is below three quarters of the scale.",
    n_happened="Items in which the event came true.",
)
_WORTH = (
    *estimates(
        brier=(BRIER.label, "Brier score of the probabilities as they are given."),
        brier_recalibrated=("Brier score, recalibrated", "Brier score by a curve of other chains."),
        brier_base=("Brier score of the base rate", "The event’s share in other chains."),
        gain=("gain of the recalibrated over the base rate", "Above 0, the judge knows something."),
    ),
    ECE,
    *described(
        ece_recalibrated=(
            "calibration error, recalibrated",
            "Calibration error of the probabilities that a curve of other chains gives, ten bins.",
        ),
        slope="Slope of the curve: 1 where the scale is right, near 0 where too sure.",
    ),
    SHARED["reason"],
)
RECALIBRATION = Table(
    "c2_recalibration",
    ("detection", "localisation", "coverage"),
    ("task", *WAY, SCALE, REFERENCE_JUDGE, _EVENT),
    (
        counted(COUNTS[0], HELD),
        counted(_N_HAPPENED, all_of(HELD, rows_with(happened=1.0))),
        counted(COUNTS[1], lambda events: events["p"].isna()),
        Numbers(_WORTH, _recalibrated),
    ),
    prepare=_events,
)
"""Worth of the probabilities of each event on a right scale, which other chains show.

The curve is logistic, over the log-odds; a slope below 0 has things the wrong way round. Intervals
are from drawing chains, with the curves as they were fitted.
"""


_READ = rows_known("mass")
_MEAN = ("mass, mean", "Probability of all verdicts allowed together.")
_BELOW_HALF = (
    "share with mass under .5",
    "Judgements in which all verdicts allowed have less than half of the probability together.",
)
MASS = Table(
    "c2_mass",
    "scored",
    WAY,
    (
        *counts(_READ),
        Boot("mean_mass", "mass", "chain", _READ, *_MEAN),
        Mean(
            "median_mass", "mass", meaning="Median of the mass over judgements.", statistic="median"
        ),
        Mean("least_mass", "mass", meaning="The least mass of a judgement.", statistic="min"),
        Mean("share_below_half", lambda judged: judged["mass"] < 0.5, _READ, *_BELOW_HALF),
    ),
)
"""Probability that the model gives to all its scored verdicts together, by judge, reading and
prompt.

A scored verdict is normalised over the verdicts that the item allows; `mass` is what these
had together before that: 1 where the model would have written a verdict there and nothing
else, near 0 where it would have written something else and the verdict says little. Mean
with a percentile bootstrap over chains.
"""
