"""What a judge's probabilities of every verdict are worth (ours).

The paper has judges name a step or a score and no more, and asks for calibrated ones (C2-Faith,
§7). The truth of coverage is held as a share of the scale: the reference judge's score over the
maximum (§4.2), or the share of the middle steps that is still there, which asks no judge. Steps
differ in weight, so a fair judge need not meet the latter on every item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from faithscope.experiments.analysis.statistics.calibration import calibration_error, log_loss
from faithscope.experiments.analysis.statistics.resampling import Drawing, auroc, means, spearman
from faithscope.experiments.analysis.tidy import (
    Rows,
    all_columns,
    columns,
    groups,
    keep,
    numbers,
    tabled,
    where,
    with_interval,
)
from faithscope.experiments.studies.c2faith.metrics.coverage import INFLATED, OF
from faithscope.experiments.studies.c2faith.metrics.frames import (
    BOTH,
    CONTROL,
    NO_STEP,
    PERTURBED,
    WAY,
    maximum,
)

CONDITIONS = {PERTURBED: {PERTURBED}, CONTROL: {CONTROL}, BOTH: {PERTURBED, CONTROL}}
CUTS = (0.25, 0.5, INFLATED, 1.0)
"""Shares of the scale below which a score lies or does not: on 0-4 below 1, 2, 3 and 4, which
are all there are; below .75 it is not inflated."""
TRUTHS = ("kept", "reference")
"""What a coverage score is held against."""
_OF_STEPS = ("right", "confidence", "overconfidence", "p_truth", "log_loss", "brier")
LOCALISATION = [*WAY, "condition", "n", "n_without_verdict", *with_interval(*_OF_STEPS)]
LOCALISATION += ["p_truth_uniform", "log_loss_uniform", "brier_uniform", "ece"]
LOCALISATION += with_interval("auroc_right", "auroc_broken")
EXPECTED = [*OF, "level", "n", "n_without_verdict", *with_interval("expected_share")]
EXPECTED += ["score_share", "share_kept", "reference_share"]
_OF_SCORES = ("expected_share", "bias", "mae", "rps")
COVERAGE = [*OF, "truth", "n", "n_without_verdict", "n_without_truth", "truth_share"]
COVERAGE += [*with_interval(*_OF_SCORES), "rps_score", "rps_uniform", "rps_base", "ece"]
COVERAGE += with_interval("spearman", "auroc")


@tabled(*LOCALISATION)
def localisation_probabilities_table(localisation: pd.DataFrame, how: Drawing) -> Rows:
    """A row per judge, reading, prompt and condition: perturbed, control, and both together.

    `columns` says what each number is. Probabilities are shares of -1 and the steps of the chain;
    `..._uniform` is of a judge to which all of them are equally likely. Intervals are from drawing
    chains.
    """
    for key, judged, n_without in by_condition(localisation):
        row = key | {"n": len(judged), "n_without_verdict": n_without}
        yield row | (_of_steps(judged, how) if len(judged) else {})


@tabled(*EXPECTED)
def coverage_expected_table(coverage: pd.DataFrame, how: Drawing) -> Rows:
    """A row per judge, reading, prompt, scale and level: the mean score under the probabilities.

    `expected_share` of the maximum, beside `score_share`, the same of the likeliest score alone,
    `share_kept` of the middle steps and `reference_share`, the mean of those items that have one.
    Intervals are from drawing chains.
    """
    for key, judged in _scored(coverage, OF):
        for level in sorted(set(judged["level"])):
            of_level = where(judged, level=level)
            known = _with_probabilities(of_level)
            shares = {
                "expected_share": _expected(known),
                "score_share": numbers(known["score"]) / maximum(key["scale"]),
                "share_kept": _truth(known, "kept"),
                "reference_share": _truth(known, "reference"),
            }
            estimates = means(known["chain"].to_numpy(), shares, how=how)
            row = key | {"level": level, "n": len(known)}
            row |= {"n_without_verdict": len(of_level) - len(known)}
            row |= {name: estimate.value for name, estimate in estimates.items()}
            yield row | columns("expected_share", estimates["expected_share"])


@tabled(*COVERAGE)
def coverage_probabilities_table(coverage: pd.DataFrame, how: Drawing) -> Rows:
    """A row per judge, reading, prompt, scale and truth, all levels together.

    `truth` is kept or reference, of the `n` items that have it, and `truth_share` its mean;
    `columns` says what the other numbers are. `rps_uniform` is of a judge to which every score is
    as likely, `rps_base` of one that gives to every item the truths of all these items as they are
    spread. Intervals are from drawing chains.
    """
    for key, judged, truth in with_truths(coverage):
        row = key | {"n": len(judged)}
        yield row | (_of_scores(judged, truth, how) if len(judged) else {})


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


def _of_steps(judged: pd.DataFrame, how: Drawing) -> dict[str, Any]:
    right, confidence, p_truth = outcomes(judged)
    p, chains, broken = _stacked(judged["probabilities"]), chains_of(judged), replaced(judged)
    values = {
        "right": right,
        "confidence": confidence,
        "p_truth": p_truth,
        "log_loss": log_loss(p_truth),
        # sum over verdicts of (p - [is true])^2
        "brier": (p**2).sum(axis=1) - 2 * p_truth + 1,
    }
    difference = {"overconfidence": ("confidence", "right")}
    row = all_columns(means(chains, values, minus=difference, how=how), _OF_STEPS)
    verdicts = numbers(judged["n_steps"]) + 1
    row |= {
        "p_truth_uniform": float((1 / verdicts).mean()),
        "log_loss_uniform": float(np.log(verdicts).mean()),
        "brier_uniform": float((1 - 1 / verdicts).mean()),
        "ece": calibration_error(right, confidence),
    }
    row |= columns("auroc_right", auroc(chains, right, confidence, how))
    return row | columns("auroc_broken", auroc(chains, broken, 1 - p[:, 0], how))


def _of_scores(judged: pd.DataFrame, truth: np.ndarray, how: Drawing) -> dict[str, Any]:
    scale = str(judged["scale"].iloc[0])
    p, expected, chains = _stacked(judged["probabilities"]), _expected(judged), chains_of(judged)
    values = {
        "expected_share": expected,
        "bias": expected - truth,
        "mae": np.abs(expected - truth),
        "rps": rps(p, truth),
    }
    row: dict[str, Any] = {"truth_share": float(truth.mean())}
    row |= all_columns(means(chains, values, how=how), _OF_SCORES)
    below = below_cuts(judged, scale)
    errors = [calibration_error(truth < cut, p_below) for cut, p_below in below.items()]
    row |= {
        "rps_score": float(np.abs(numbers(judged["score"]) / maximum(scale) - truth).mean()),
        "rps_uniform": float(rps(np.full_like(p, 1 / p.shape[1]), truth).mean()),
        "rps_base": _mean_difference(truth) / 2,
        "ece": float(np.mean(errors)),
    }
    row |= columns("spearman", spearman(chains, expected, truth, how)[0])
    return row | columns("auroc", auroc(chains, truth < INFLATED, below[INFLATED], how))


def _scored(frame: pd.DataFrame, key: list[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Every way of judging that gives probabilities, or was to give them."""
    for way, judged in groups(frame, key):
        if way["reading"] == "scored" or len(_with_probabilities(judged)):
            yield way, judged


def by_condition(
    localisation: pd.DataFrame,
) -> Iterator[tuple[dict[str, Any], pd.DataFrame, int]]:
    """Every way and condition: the judgements with probabilities, and how many have none."""
    for key, judged in _scored(localisation, [*WAY]):
        for condition, values in CONDITIONS.items():
            of_condition = where(judged, condition=values)
            known = _with_probabilities(of_condition)
            yield key | {"condition": condition}, known, len(of_condition) - len(known)


def with_truths(
    coverage: pd.DataFrame,
) -> Iterator[tuple[dict[str, Any], pd.DataFrame, np.ndarray]]:
    """Every way and truth: the judgements that have it and probabilities, and the truth."""
    for key, judged in _scored(coverage, OF):
        known = _with_probabilities(judged)
        for name in TRUTHS:
            if name == "kept" or key["reference_judge"]:
                truth = _truth(known, name)
                there = ~np.isnan(truth)
                counts = {"n_without_verdict": len(judged) - len(known)}
                counts |= {"truth": name, "n_without_truth": int((~there).sum())}
                yield key | counts, keep(known, there), truth[there]


def outcomes(judged: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows,) whether the verdict is the truth, and the probabilities of either."""
    verdict = numbers(judged["predicted"]).astype(int)
    truth = np.where(replaced(judged), numbers(judged["target"]), NO_STEP).astype(int)
    p, each = _stacked(judged["probabilities"]), np.arange(len(judged))
    # the first probability is that of -1
    return verdict == truth, p[each, verdict - NO_STEP], p[each, truth - NO_STEP]


def _truth(judged: pd.DataFrame, name: str) -> np.ndarray:
    """(rows,) shares of the scale; NaN where the reference gave no score."""
    if name == "kept":
        return 1 - numbers(judged["n_removed"]) / numbers(judged["n_middle"])
    return numbers(judged["reference"]) / numbers(judged["scale"].map(maximum))


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


def _with_probabilities(judged: pd.DataFrame) -> pd.DataFrame:
    """The rows in which every verdict has its probability."""
    return keep(judged, numbers(judged["probabilities"].map(len)) > 0)


def _stacked(distributions: Iterable[tuple[float, ...]]) -> Float[np.ndarray, "rows verdicts"]:
    """Distributions as rows of one array, 0 where one is shorter than the longest."""
    given = list(distributions)
    stacked = np.zeros((len(given), max(map(len, given), default=0)))
    for row, p in zip(stacked, given, strict=True):
        row[: len(p)] = p
    return stacked


def chains_of(judged: pd.DataFrame) -> np.ndarray:
    return judged["chain"].to_numpy()


def replaced(judged: pd.DataFrame) -> np.ndarray:
    return (judged["condition"] == PERTURBED).to_numpy()


def _mean_difference(values: np.ndarray) -> float:
    """The mean of |a - b| over all pairs, each with itself too."""
    ordered, n = np.sort(values), len(values)
    return float(2 * ((2 * np.arange(1, n + 1) - n - 1) * ordered).sum() / n**2)
