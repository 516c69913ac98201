"""Worth of a judge's probabilities of every verdict (ours).

The paper has judges name a step or a score and no more, and asks for calibrated ones (C2-Faith,
§7). The truth of coverage is held as a share of the scale: the reference judge's score over the
maximum (§4.2), or the share of the middle steps that is still there, which asks no judge. Steps
differ in weight, so a fair judge need not meet the latter on every item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from faithscope.experiments.analysis.cells import Boot, Lines, Mask, Mean
from faithscope.experiments.analysis.columns import described, estimates
from faithscope.experiments.analysis.statistics.against_label import against_label
from faithscope.experiments.analysis.statistics.calibration import calibration_error, log_loss
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means, spearman
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import (
    all_columns,
    columns,
    columns_of,
    count,
    keep,
    numbers,
    where,
)
from faithscope.experiments.engine.forms.tasks import NO_STEP
from faithscope.experiments.studies.c2faith.metrics.coverage import (
    BY,
    INFLATED,
    OF,
    share_kept,
    share_of_scale,
    tops,
    with_levels_rising,
)
from faithscope.experiments.studies.c2faith.metrics.frames import (
    BOTH,
    CONDITION,
    CONTROL,
    COUNTS,
    LEVEL,
    ON_BROKEN,
    PERTURBED,
    SHARE_KEPT,
    WAY,
    counts,
    maximum,
)

CONDITIONS = {PERTURBED: {PERTURBED}, CONTROL: {CONTROL}, BOTH: {PERTURBED, CONTROL}}
CUTS = (0.25, 0.5, INFLATED, 1.0)
"""Shares of the scale below which a score lies or does not: on 0-4 below 1, 2, 3 and 4, which
are all there are; below .75 it is not inflated."""
_UNIFORM = "a judge to which no step and every step are equally likely"
TRUTHS = ("kept", "reference")
"""Truths that a coverage score is compared with."""


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


def truths_of(judged: pd.DataFrame) -> dict[str, np.ndarray]:
    """Truth that scores are compared with -> (rows,) shares of the scale; NaN where not known."""
    names = TRUTHS if judged["reference_judge"].iloc[0] else TRUTHS[:1]
    return {name: share_kept(judged) if name == "kept" else _reference(judged) for name in names}


def _reference(judged: pd.DataFrame) -> np.ndarray:
    return numbers(judged["reference"]) / tops(judged)


def rps(
    p: Float[np.ndarray, "rows scores"], truth: Float[np.ndarray, " rows"]
) -> Float[np.ndarray, " rows"]:
    """Ranked probability score, from 0 to 1, of distributions over scores 0, 1 ... scores - 1.

    Args:
        truth: a share of the scale, between two scores too: (scores - 1) * truth is the score.

    For a whole score it is sum over k of (P(score <= k) - [truth <= k])^2, over scores - 1.
    """
    top = p.shape[1] - 1
    far = np.abs(np.arange(top + 1) - top * truth[:, None])
    below = p.cumsum(axis=1)[:, :-1]
    # E|X - y| - E|X - X'| / 2, in which the latter is the integral of F (1 - F)
    return ((p * far).sum(axis=1) - (below * (1 - below)).sum(axis=1)) / top


def _of_steps(judged: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    right, confidence, p_truth = outcomes(judged)
    p, chains = _stacked(judged["probabilities"]), judged["chain"].to_numpy()
    values = {
        "right": right,
        "confidence": confidence,
        "p_truth": p_truth,
        "log_loss": log_loss(p_truth),
        # sum over verdicts of (p - [is true])^2
        "brier": (p**2).sum(axis=1) - 2 * p_truth + 1,
    }
    estimates = means(chains, values, minus={"overconfidence": ("confidence", "right")}, how=how)
    verdicts = numbers(judged["n_steps"]) + 1
    row = all_columns(estimates, estimates) | {
        "p_truth_uniform": float((1 / verdicts).mean()),
        "log_loss_uniform": float(np.log(verdicts).mean()),
        "brier_uniform": float((1 - 1 / verdicts).mean()),
        "ece": calibration_error(right, confidence),
    }
    held = {
        "auroc_right": (right, confidence),
        "auroc_broken": (ON_BROKEN(judged), 1 - p_of_no_step(judged)),
    }
    for name, (label, score) in held.items():
        row |= columns(name, against_label(("auroc",), label, chains, how, score=score)["auroc"])
    return row


def _of_scores(judged: pd.DataFrame, truth: np.ndarray, how: Bootstrap) -> dict[str, Any]:
    p, expected = _stacked(judged["probabilities"]), _expected(judged)
    chains = judged["chain"].to_numpy()
    values = {
        "expected_share": expected,
        "bias": expected - truth,
        "mae": np.abs(expected - truth),
        "rps": rps(p, truth),
    }
    below = below_cuts(judged, str(judged["scale"].iloc[0]))
    errors = [calibration_error(truth < cut, p_below) for cut, p_below in below.items()]
    row = all_columns(means(chains, values, how=how), values) | {
        "truth_share": float(truth.mean()),
        "rps_score": float(np.abs(share_of_scale(judged) - truth).mean()),
        "rps_uniform": float(rps(np.full_like(p, 1 / p.shape[1]), truth).mean()),
        "rps_base": _mean_difference(truth) / 2,
        "ece": float(np.mean(errors)),
    }
    row |= columns("spearman", spearman(chains, expected, truth, how)[0])
    held = against_label(("auroc",), truth < INFLATED, chains, how, score=below[INFLATED])
    return row | columns_of(held)


def outcomes(judged: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows,) whether the verdict is the truth, and the probabilities of the verdict and of the
    truth."""
    verdict = numbers(judged["predicted"]).astype(int)
    truth = np.where(ON_BROKEN(judged), numbers(judged["target"]), NO_STEP).astype(int)
    p, each = _stacked(judged["probabilities"]), np.arange(len(judged))
    # the first probability is that of -1
    return verdict == truth, p[each, verdict - NO_STEP], p[each, truth - NO_STEP]


def p_of_no_step(judged: pd.DataFrame) -> np.ndarray:
    """(rows,) the probability that no step is broken."""
    return np.array([p[0] for p in judged["probabilities"]], dtype=float)


def _expected(judged: pd.DataFrame) -> np.ndarray:
    """(rows,) the mean score under the probabilities, as a share of the maximum."""
    p = _stacked(judged["probabilities"])
    return p @ np.linspace(0, 1, p.shape[1])


def below_cuts(judged: pd.DataFrame, scale: str) -> dict[float, np.ndarray]:
    """Every cut of `CUTS` -> (rows,) the probability of the scores below it."""
    p, top = _stacked(judged["probabilities"]), maximum(scale)
    # sums of many probabilities may pass 1 by rounding
    return {
        cut: np.minimum(1.0, p[:, np.arange(p.shape[1]) < cut * top].sum(axis=1)) for cut in CUTS
    }


def _stacked(distributions: Iterable[tuple[float, ...]]) -> Float[np.ndarray, "rows verdicts"]:
    """Distributions as rows of one array, 0 where one is shorter than the longest."""
    given = list(distributions)
    stacked = np.zeros((len(given), max(map(len, given), default=0)))
    for row, p in zip(stacked, given, strict=True):
        row[: len(p)] = p
    return stacked


def _mean_difference(values: np.ndarray) -> float:
    """The mean of |a - b| over all pairs of values, each with itself too."""
    ordered, n = np.sort(values), len(values)
    return float(2 * ((2 * np.arange(1, n + 1) - n - 1) * ordered).sum() / n**2)


_OF_STEPS = (
    *(CONDITION, *COUNTS),
    *estimates(
        right="Verdicts that are the truth: the replaced step, or none.",
        confidence="Mean probability of the verdict given.",
        overconfidence="Confidence − right, of the same draws of chains.",
        p_truth=(
            "probability of the truth",
            "Mean probability of the true verdict: the replaced step, or no step in a control.",
        ),
        log_loss=("", "Mean −ln of the probability of the truth.", "nats"),
        brier=("Brier score", "Squared distance of all probabilities, 0 to 2."),
    ),
    *described(
        p_truth_uniform=(
            "the same, all equally likely",
            f"Probability of the truth of {_UNIFORM}.",
        ),
        log_loss_uniform=("log loss, all equally likely", f"Log loss of {_UNIFORM}.", "nats"),
        brier_uniform=("Brier score, all equally likely", f"Brier score of {_UNIFORM}."),
        ece=("calibration error (ECE)", "Calibration error of the confidence, ten bins."),
    ),
    *estimates(
        auroc_right=("AUROC, right against wrong verdicts", "AUROC of the confidence."),
        auroc_broken=("AUROC, broken against intact chains", "AUROC of 1 − P(no step)."),
    ),
)


def _step_lines(judged: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    for condition, values in CONDITIONS.items():
        of_condition = where(judged, condition=values)
        known = keep(of_condition, has_probabilities(of_condition))
        row = {"condition": condition, "n": len(known)}
        row |= {"n_without_verdict": len(of_condition) - len(known)}
        yield row | (_of_steps(known, how) if len(known) else {})


LOCALISATION = Table(
    "c2_localisation_probabilities",
    "localisation",
    WAY,
    among=asked_for(has_probabilities, WAY),
    lines=[Lines(_OF_STEPS, _step_lines)],
)
"""Probabilities of steps by each judge, reading and prompt: perturbed, control, both together.

Probabilities are shares of -1 and the steps of the chain; `..._uniform` is of a judge to which all
of them are equally likely. Intervals are from drawing chains.
"""
_KNOWN = has_probabilities
_EXPECTED_SHARE = "Mean score under the probabilities, a share of the maximum."
_SCORE_SHARE = "Mean of the score given, a share of the maximum."
_REFERENCE_SHARE = "Mean reference score, a share of the maximum."
EXPECTED = Table(
    "c2_coverage_expected",
    "coverage",
    (*BY, LEVEL),
    (
        *counts(_KNOWN),
        Boot("expected_share", _expected, "chain", _KNOWN, meaning=_EXPECTED_SHARE),
        Mean("score_share", share_of_scale, _KNOWN, meaning=_SCORE_SHARE),
        Mean("share_kept", share_kept, _KNOWN, SHARE_KEPT.label, SHARE_KEPT.meaning),
        Mean("reference_share", _reference, _KNOWN, meaning=_REFERENCE_SHARE),
    ),
    prepare=with_levels_rising,
    among=asked_for(_KNOWN, OF),
)
"""The mean score under the probabilities, by judge, reading, prompt, scale and level.

`score_share` is that of the likeliest score alone, `reference_share` the mean of those items that
have one. Intervals are from drawing chains.
"""


def _truth_lines(judged: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    known = keep(judged, has_probabilities(judged))
    for name, truth in truths_of(judged).items():
        truth = truth[has_probabilities(judged)]
        there = ~np.isnan(truth)
        row = {"truth": name, "n": count(there), "n_without_truth": count(~there)}
        row |= {"n_without_verdict": len(judged) - len(known)}
        yield row | (_of_scores(keep(known, there), truth[there], how) if there.any() else {})


_OF_SCORES = (
    *described(truth="What scores are held against: the share kept, or the reference."),
    *COUNTS,
    *described(
        n_without_truth="Items with probabilities and without this truth.",
        truth_share="Mean of the truth, a share of the scale.",
    ),
    *estimates(
        expected_share=_EXPECTED_SHARE,
        bias="Mean of expected share of the scale − truth.",
        mae=("MAE", "Mean of |expected share of the scale − truth|."),
        rps=(
            "ranked probability score (RPS)",
            "Ranked probability score (Epstein, 1969), continuous: the mean over the scale of "
            "(P(score ≤ x) − [truth ≤ x])²; 0 is best, 1 worst.",
        ),
    ),
    *described(
        rps_score=(
            "RPS of the likeliest score alone",
            "RPS where all probability is on the score given: mean |score − truth|, a share of "
            "the scale.",
        ),
        rps_uniform=(
            "RPS, all equally likely",
            "RPS of a judge to which every score is equally likely.",
        ),
        rps_base=(
            "RPS of the base rate",
            "RPS of who gives to every item the truths of all items as they are spread; below it, "
            "a judge knows one item from another.",
        ),
        ece=("calibration error (ECE)", "Calibration error of P(score < cut), mean over the cuts."),
    ),
    *estimates(
        spearman="Rank correlation of the expected score with the truth.",
        auroc=("AUROC", "Of P(not inflated): truths below three quarters, or above."),
    ),
)
COVERAGE = Table(
    "c2_coverage_probabilities",
    "coverage",
    BY,
    among=asked_for(has_probabilities, OF),
    lines=[Lines(_OF_SCORES, _truth_lines)],
)
"""Probabilities of scores by each judge, reading, prompt and scale, against either truth.

All levels together. `truth` is kept or reference, of the `n` items that have it. Intervals are from
drawing chains.
"""
