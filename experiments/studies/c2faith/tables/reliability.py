"""Reliability of a judge's probabilities: how often what they speak of happens (ours).

The paper has judges name a step or a score and no more, and asks for calibrated ones (C2-Faith,
§7). A judge that is miscalibrated may know nothing, or know much and say it on a wrong scale; how
much of its probability it gives to verdicts at all stands here, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import Boot, Lines, Mask, Mean, rows_known
from faithscope.experiments.analysis.columns import SHARED, described, estimates
from faithscope.experiments.analysis.statistics.against_label import against_label
from faithscope.experiments.analysis.statistics.calibration import (
    FOLDS,
    LEAST_OF_KIND,
    calibration_error,
    curve,
    recalibrated,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tables import OVERALL, Table
from faithscope.experiments.analysis.tidy import all_columns, columns, count, groups, keep, numbers
from faithscope.experiments.engine.forms.tasks import NO_STEP
from faithscope.experiments.studies.c2faith.tables.coverage import INFLATED, OF, share_kept, tops
from faithscope.experiments.studies.c2faith.tables.detection import BRIER, ECE
from faithscope.experiments.studies.c2faith.tables.frames import (
    COUNTS,
    ON_BROKEN,
    REFERENCE_JUDGE,
    SCALE,
    WAY,
    counts,
    maximum,
)

FEW = f"fewer than {LEAST_OF_KIND} items of either kind, or than {FOLDS} chains"
REPLACED, RIGHT = "step_replaced", "verdict_right"
KEPT, REFERENCE = "below_three_quarters", "reference_below_three_quarters"
FLAGGED = rows_known("score", "p_flag")
"""Mask of the verdicts on single steps that have a probability."""


def has_probabilities(judged: pd.DataFrame) -> np.ndarray:
    """Mask of the rows in which every verdict has its probability."""
    return numbers(judged["probabilities"].map(len)) > 0


def asked_for(known: Mask, way: Sequence[str]) -> Mask:
    """Mask of all rows of the ways of judging that give what is known, or were to give it.

    Args:
        known: mask of the rows that have it.
        way: the columns that tell ways of judging apart.
    """

    def mask(frame: pd.DataFrame) -> np.ndarray:
        has = pd.Series(known(frame), frame.index, dtype=bool)
        some = has.groupby([frame[name] for name in way]).transform("any")
        return (some | (frame["reading"] == "scored")).to_numpy()

    return mask


def events_of(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> pd.DataFrame:
    """A row per judgement and event that its probabilities speak of: the probability `p` given to
    it (NaN without a verdict), and whether it `happened` (NaN where the truth is not known).

    Detection: that the step shown was replaced. Localisation: that any step was (1 - P(-1)), and
    that the verdict is right. Coverage: that the truth is below three quarters of the scale. That
    truth is the share of the middle steps that is still there, or the reference judge's score over
    the greatest (§4.2); steps differ in weight, so a fair judge need not meet the former.
    """
    steps = keep(detection, asked_for(FLAGGED, WAY)(detection))
    told = {"task": "detection", "event": REPLACED, "happened": ON_BROKEN(steps).astype(float)}
    parts = [steps.assign(**told, p=steps["p_flag"].where(FLAGGED(steps)))]
    chains = keep(localisation, asked_for(has_probabilities, WAY)(localisation))
    for _, judged in groups(chains.assign(task="localisation"), WAY):
        known = has_probabilities(judged)
        with_p = keep(judged, known)
        verdict = numbers(with_p["predicted"]).astype(int)
        truth = np.where(ON_BROKEN(with_p), numbers(with_p["target"]), NO_STEP)
        # the first probability is that of -1
        each = list(zip(with_p["probabilities"], verdict, strict=True))
        confidence = np.array([p[v - NO_STEP] for p, v in each], dtype=float)
        any_step = np.array([1 - p[0] for p, _ in each], dtype=float)
        parts.append(_event(judged, known, REPLACED, ON_BROKEN(with_p), any_step))
        parts.append(_event(judged, known, RIGHT, verdict == truth, confidence))
    rated = keep(coverage, asked_for(has_probabilities, OF)(coverage))
    for key, judged in groups(rated.assign(task="coverage"), OF):
        known = has_probabilities(judged)
        with_p = keep(judged, known)
        below = p_below(with_p, INFLATED * maximum(str(key["scale"])))
        truths = {KEPT: share_kept(with_p)}
        if key["reference_judge"]:
            truths[REFERENCE] = numbers(with_p["reference"]) / tops(with_p)
        for name, truth in truths.items():
            happened = np.where(np.isnan(truth), np.nan, truth < INFLATED)
            parts.append(_event(judged, known, name, happened, below))
    names = ["task", *OF, "event", "chain", "happened", "p"]
    return pd.concat(parts).reindex(columns=names).fillna({"scale": "", "reference_judge": ""})


def _event(
    judged: pd.DataFrame, known: np.ndarray, event: str, happened: np.ndarray, p: np.ndarray
) -> pd.DataFrame:
    of_event = judged.assign(event=event, happened=np.nan, p=np.nan)
    of_event.loc[known, "happened"], of_event.loc[known, "p"] = happened.astype(float), p
    return of_event


def p_below(judged: pd.DataFrame, score: float) -> np.ndarray:
    """(rows,) the probability of the scores below one, from distributions over 0, 1, 2 …"""
    below = [sum(x for i, x in enumerate(p) if i < score) for p in judged["probabilities"]]
    # sums of many probabilities may pass 1 by rounding
    return np.minimum(1.0, np.array(below, dtype=float))


HELD = rows_known("p", "happened")
"""Mask of the probabilities whose event is known to have happened or not."""


def _lines(events: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    known = keep(events, HELD(events))
    happened, p = numbers(known["happened"]) == 1, numbers(known["p"])
    row = {"bin": OVERALL, "p_low": 0.0, "p_high": 1.0, "n": len(known)}
    row |= {"n_without_verdict": count(events["p"].isna())}
    yield row | _overall(how.units(known, "chain"), happened, p, how)
    yield from curve(happened, p, "p", "happened")


def _overall(
    chains: np.ndarray, happened: np.ndarray, p: np.ndarray, how: Bootstrap
) -> dict[str, Any]:
    """Statistics of one event over all bins."""
    if not len(p):
        return {"reason": FEW}
    row: dict[str, Any] = {"mean_p": float(p.mean()), "ece": calibration_error(happened, p)}
    row |= columns("share_happened", wilson(int(happened.sum()), len(p)))
    row |= columns("auroc", against_label(("auroc",), happened, chains, how, score=p)["auroc"])
    given, gain = {"brier": p}, {}
    curves = recalibrated(chains, happened, p)
    if curves is not None:
        given |= {"brier_recalibrated": curves[0], "brier_base": curves[1]}
        gain = {"gain": ("brier_base", "brier_recalibrated")}
        row |= {"slope": curves[2], "ece_recalibrated": calibration_error(happened, curves[0])}
    errors = {name: (q - happened) ** 2 for name, q in given.items()}
    scores = means(chains, errors, minus=gain, how=how)
    return row | all_columns(scores, scores) | {"reason": FEW if curves is None else ""}


(_EVENT,) = described(
    event="What the probabilities are of: that a step was replaced, that the verdict is right, or "
    "that the truth is below three quarters of the scale.",
)
_COLUMNS = (
    *described(
        bin="The bin of probabilities, from 0; overall: all of them together.",
        p_low="Lower end of the bin of probabilities.",
        p_high="Upper end of the bin of probabilities.",
    ),
    *COUNTS,
    *described(mean_p="Mean probability that was given to the event."),
    *estimates(
        share_happened="Share of the items in which the event came true.",
        auroc=("AUROC", "Of the probability: items with the event against those without."),
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
RELIABILITY = Table(
    "c2_reliability",
    ("detection", "localisation", "coverage"),
    ("task", *WAY, SCALE, REFERENCE_JUDGE, _EVENT),
    lines=[Lines(_COLUMNS, _lines)],
    prepare=events_of,
)
"""Probabilities of each event beside how often it came true: a row over all bins (`OVERALL`) and
one per bin that holds something.

The overall row also says what the probabilities are worth on a right scale, which other chains
show: the curve is logistic, over the log-odds, and a slope below 0 has things the wrong way round.
Half of the steps of detection are replaced, by construction: a judge is calibrated for these items,
not for chains in the wild. A judge that gives no probabilities is not in it. Intervals of means are
from drawing chains, with the curves as they were fitted.
"""


_READ = rows_known("mass")
_MEAN = ("mass, mean", "Probability of all verdicts allowed together.")
_BELOW_HALF = (
    "share with mass under 0.5",
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
