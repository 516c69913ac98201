"""Whether a judge's probabilities hold as often as they say, and what a right scale leaves (ours).

A judge that is miscalibrated may know nothing, or know much and say it on a wrong scale. How much
of its probability it gives to verdicts at all stands here, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.calibration import (
    FOLDS,
    LEAST_OF_KIND,
    Event,
    calibration_error,
    curves_table,
    recalibrated,
)
from faithscope.experiments.analysis.statistics.resampling import Drawing, means
from faithscope.experiments.analysis.tidy import (
    Rows,
    all_columns,
    count,
    groups,
    keep,
    numbers,
    rows_by,
    tabled,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.coverage import INFLATED
from faithscope.experiments.studies.c2faith.metrics.frames import (
    BOTH,
    WAY,
    Frames,
    mean_or_nan,
)
from faithscope.experiments.studies.c2faith.metrics.probabilities import (
    below_cuts,
    by_condition,
    chains_of,
    outcomes,
    replaced,
    with_truths,
)

FEW = f"fewer than {LEAST_OF_KIND} items of either kind, or than {FOLDS} chains"
RIGHT = "verdict_right"
EVENTS = {"kept": "below_three_quarters", "reference": "reference_below_three_quarters"}
"""Of coverage: what a score is held against -> the event."""
_BRIER = ("brier", "brier_recalibrated", "brier_base")
RECALIBRATION = ["task", *WAY, "scale", "reference_judge", "event", "n", "n_happened"]
RECALIBRATION += ["n_without_verdict", *with_interval(*_BRIER, "gain")]
RECALIBRATION += ["ece", "ece_recalibrated", "slope", "reason"]


def calibration_table(detection: pd.DataFrame) -> pd.DataFrame:
    """The reliability curve of each judge of single steps; without probabilities there is none."""
    events, about = detection_events(detection), [*WAY, "n_without_verdict"]
    return curves_table(events, about, "p_flag", "perturbed")


@tabled(*RECALIBRATION)
def recalibration_table(frames: Frames, how: Drawing) -> Rows:
    """A row per judge, reading, prompt (and scale) and event that its probabilities speak of.

    Events: `step_replaced`, of detection the step shown, of localisation any step (1 - P(-1));
    `verdict_right`, by the verdict's own probability; of coverage `below_three_quarters`, that so
    much of the middle steps is not kept, and `reference_below_three_quarters`. The curve is
    logistic, over the log-odds; a slope below 0 has things the wrong way round. `columns` says what
    the numbers are; their intervals are from drawing chains, with the curves as they were fitted.
    """
    events = [*detection_events(frames.detection), *localisation_events(frames.localisation)]
    events += coverage_events(frames.coverage)
    for e in events:
        if e.about.get("condition", BOTH) != BOTH or e.about.get("below", INFLATED) != INFLATED:
            continue
        row = {"scale": "", "reference_judge": "", **e.about}
        row |= {"n": len(e.p), "n_happened": int(e.happened.sum())}
        yield row | {"ece": calibration_error(e.happened, e.p)} | _recalibrated(e, how)


def detection_events(detection: pd.DataFrame) -> Iterator[Event]:
    """That the step shown was replaced, by `p_flag`.

    Half of the items are perturbed, by construction: a calibrated judge of these items, not of
    chains in the wild.
    """
    for key, judged in groups(detection, WAY):
        known = keep(judged, judged["score"].notna() & judged["p_flag"].notna())
        if key["reading"] == "scored" or len(known):
            about = {"task": "detection", "event": "step_replaced"} | key
            about |= {"n_without_verdict": len(judged) - len(known)}
            yield Event(about, chains_of(known), replaced(known), numbers(known["p_flag"]))


def localisation_events(localisation: pd.DataFrame) -> Iterator[Event]:
    """By condition and of both, that the verdict is right, by its own probability; and of both
    that some step was replaced, by 1 - P(-1)."""
    for key, judged, n_without in by_condition(localisation):
        about = {"task": "localisation", **key, "n_without_verdict": n_without}
        if key["condition"] == BOTH:
            some = 1 - np.array([p[0] for p in judged["probabilities"]], dtype=float)
            any_step = about | {"event": "step_replaced"}
            yield Event(any_step, chains_of(judged), replaced(judged), some)
        right, confidence, _ = outcomes(judged)
        yield Event(about | {"event": RIGHT}, chains_of(judged), right, confidence)


def coverage_events(coverage: pd.DataFrame) -> Iterator[Event]:
    """That the truth lies below a cut, by the probability of the scores below it."""
    for key, judged, truth in with_truths(coverage):
        for cut, p in below_cuts(judged, key["scale"]).items():
            about = {"task": "coverage", **key, "event": EVENTS[key["truth"]], "below": cut}
            yield Event(about, chains_of(judged), truth < cut, p)


def _recalibrated(event: Event, how: Drawing) -> dict[str, Any]:
    clusters = np.asarray(event.clusters, dtype=str)
    curves = recalibrated(clusters, event.happened, event.p)
    if curves is None:
        return {"reason": FEW}
    by_curve, by_share, slope = curves
    given = zip(_BRIER, (event.p, by_curve, by_share), strict=True)
    errors = {name: (q - event.happened) ** 2 for name, q in given}
    gain = {"gain": ("brier_base", "brier_recalibrated")}
    row: dict[str, Any] = {"slope": slope, "reason": ""}
    row |= all_columns(means(clusters, errors, minus=gain, how=how), (*_BRIER, "gain"))
    return row | {"ece_recalibrated": calibration_error(event.happened, by_curve)}


MASS = [*WAY, "n", "n_without_verdict", *with_interval("mean_mass"), "median_mass", "least_mass"]
MASS += ["share_below_half"]


@tabled(*MASS)
def mass_table(scored: pd.DataFrame, how: Drawing) -> Rows:
    """A row per judge, reading and prompt.

    A scored verdict is normalised over the verdicts that the item allows; `mass` is what these
    had together before that: 1 where the model would have written a verdict there and nothing
    else, near 0 where it would have written something else and the verdict says little. Mean
    with a percentile bootstrap over chains, median, least, and the share of judgements below .5.

    Args:
        scored: a row per judgement, `mass` in [0, 1] or NaN where none was read, and `chain`.
    """
    return rows_by(scored, WAY, lambda judged: _mass_row(judged, how))


def _mass_row(judged: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    read = keep(judged, judged["mass"].notna())
    mass = numbers(read["mass"])
    mean = means(read["chain"].to_numpy(), {"mean_mass": mass}, how=how)
    row: dict[str, Any] = {"n": len(mass), "n_without_verdict": count(judged["mass"].isna())}
    if len(mass):
        row |= {"median_mass": float(np.median(mass)), "least_mass": float(mass.min())}
    return row | all_columns(mean, mean) | {"share_below_half": mean_or_nan(mass < 0.5)}
