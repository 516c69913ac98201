"""What a judge's probabilities of every score say of how much is missing (ours).

The truth is held as a share of the scale: the reference judge's score over the maximum
(C2-Faith, §4.2), or the share of the middle steps that is still there, which asks no judge. Steps
differ in weight, so a fair judge need not meet the latter on every item.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from faithscope.experiments.analysis.resampling import Drawing, auroc, ratios, spearman
from faithscope.experiments.analysis.tidy import columns, where, with_interval
from faithscope.experiments.studies.c2faith.metrics.coverage import INFLATED, OF
from faithscope.experiments.studies.c2faith.metrics.frames import groups, keep, maximum, numbers
from faithscope.experiments.studies.c2faith.metrics.reliability import (
    calibration_error,
    curve,
    curve_columns,
    stacked,
    with_probabilities,
)

CUTS = (0.25, 0.5, INFLATED, 1.0)
"""Shares of the scale below which a score lies or does not: on 0-4 below 1, 2, 3 and 4, which
are all there are; below .75 it is not inflated."""
TRUTHS = ("kept", "reference")
EXPECTED = [*OF, "level", "n", "n_without_verdict", *with_interval("expected_share")]
EXPECTED += ["score_share", "share_kept", "reference_share"]
_MEANS = ("expected_share", "bias", "mae", "rps")
PROBABILITIES = [*OF, "truth", "n", "n_without_verdict", "n_without_truth", "truth_share"]
PROBABILITIES += [*with_interval(*_MEANS), "rps_score", "rps_uniform", "rps_base", "ece"]
PROBABILITIES += with_interval("spearman", "auroc")
CALIBRATION = [*OF, "truth", "below", "n_without_verdict", *curve_columns("p_below", "below")]


def coverage_expected_table(coverage: pd.DataFrame, how: Drawing) -> pd.DataFrame:
    """A row per judge, reading, prompt, scale and level: the mean score under the probabilities.

    `expected_share` of the maximum, beside `score_share`, the same of the likeliest score alone,
    `share_kept` of the middle steps and `reference_share`, the mean of those items that have one.
    Intervals are from drawing chains.
    """
    made = []
    for key, judged in _scored(coverage):
        top = maximum(key["scale"])
        for level in sorted(set(judged["level"])):
            of_level = where(judged, level=level)
            mine = with_probabilities(of_level)
            every = np.ones(len(mine), dtype=bool)
            means = {
                "expected_share": (_expected(mine), every),
                "score_share": (numbers(mine["score"]) / top, every),
                "share_kept": (_truth(mine, "kept"), every),
                "reference_share": _held(_truth(mine, "reference")),
            }
            found = ratios(mine["chain"].to_numpy(), means, how=how)
            counts = {"n": len(mine), "n_without_verdict": len(of_level) - len(mine)}
            row = key | {"level": level} | counts
            row |= columns("expected_share", found["expected_share"])
            row |= {name: found[name].value for name in means if name != "expected_share"}
            made.append(row)
    return pd.DataFrame(made, columns=EXPECTED)


def coverage_probabilities_table(coverage: pd.DataFrame, how: Drawing) -> pd.DataFrame:
    """A row per judge, reading, prompt, scale and truth, all levels together.

        truth        kept | reference, of the `n` items that have it; `truth_share`, its mean
        bias, mae    of the expected score, as a share of the scale, against the truth
        spearman     rank correlation of the expected score with the truth
        rps          ranked probability score (Epstein, 1969), the mean over the scale of
                     (P(score <= x) - [truth <= x])^2: 0 is best, 1 worst. In its continuous
                     form, as a share of steps kept lies between scores
        rps_score    of the likeliest score alone: its distance from the truth
        rps_uniform  of a judge to which every score is as likely
        rps_base     of a judge that gives to every item the truths of all these items as they
                     are spread: below it, a judge knows one item from another
        ece          calibration error of P(score < cut), the mean over the cuts of `CUTS`
        auroc        of the probability that the score is not inflated (below three quarters of
                     the scale), items whose truth lies below there against the others

    Intervals are from drawing chains.
    """
    made = []
    for key, judged, truth in with_truths(coverage):
        held = ~np.isnan(truth)
        counts = {"n": int(held.sum()), "n_without_truth": int((~held).sum())}
        mine, row = keep(judged, held), key | counts
        if len(mine):
            row |= _numbers(mine, truth[held], key["scale"], how)
        made.append(row)
    return pd.DataFrame(made, columns=PROBABILITIES)


def coverage_calibration_table(coverage: pd.DataFrame) -> pd.DataFrame:
    """Reliability of P(score < cut): a row per truth, cut and bin that holds items.

    `below` is the cut as a share of the scale; `share_below`, how often the truth lies below it,
    against `mean_p_below`, the probability that the judge gives to scores below it. Wilson
    intervals take the levels of a chain for independent, which they are not.
    """
    made = []
    for key, judged, truth in with_truths(coverage):
        held = ~np.isnan(truth)
        mine = keep(judged, held)
        for cut, below in below_cuts(mine, key["scale"]):
            happened = truth[held] < cut
            of_bins = curve(happened, below, "p_below", "below") or [{"n": 0}]
            made += [key | {"below": cut} | of_bin for of_bin in of_bins]
    return pd.DataFrame(made, columns=CALIBRATION)


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


def _scored(coverage: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    for key, judged in groups(coverage, OF):
        if key["reading"] == "scored" or len(with_probabilities(judged)):
            yield key, judged


def with_truths(
    coverage: pd.DataFrame,
) -> Iterator[tuple[dict[str, Any], pd.DataFrame, np.ndarray]]:
    """Every way of judging with every truth that it can be held against."""
    for key, judged in _scored(coverage):
        mine = with_probabilities(judged)
        without = {"n_without_verdict": len(judged) - len(mine)}
        for name in TRUTHS:
            if name == "kept" or key["reference_judge"]:
                yield key | without | {"truth": name}, mine, _truth(mine, name)


def _truth(judged: pd.DataFrame, name: str) -> np.ndarray:
    """(rows,) shares of the scale; NaN where the reference gave no score."""
    if name == "kept":
        return 1 - numbers(judged["n_removed"]) / numbers(judged["n_middle"])
    return numbers(judged["reference"]) / numbers(judged["scale"].map(maximum))


def _held(truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    held = ~np.isnan(truth)
    return np.where(held, truth, 0.0), held


def _expected(judged: pd.DataFrame) -> np.ndarray:
    """(rows,) the mean score under the probabilities, as a share of the maximum."""
    p = stacked(judged["probabilities"])
    return p @ np.linspace(0, 1, p.shape[1])


def below_cuts(judged: pd.DataFrame, scale: str) -> Iterator[tuple[float, np.ndarray]]:
    """Every cut of `CUTS`, and (rows,) the probability of the scores below it."""
    p, top = stacked(judged["probabilities"]), maximum(scale)
    for cut in CUTS:
        # sums of many probabilities may pass 1 by rounding
        yield cut, np.minimum(1.0, p[:, np.arange(p.shape[1]) < cut * top].sum(axis=1))


def _numbers(judged: pd.DataFrame, truth: np.ndarray, scale: str, how: Drawing) -> dict[str, Any]:
    top = maximum(scale)
    p, expected = stacked(judged["probabilities"]), _expected(judged)
    chains, every = judged["chain"].to_numpy(), np.ones(len(judged), dtype=bool)
    values = {
        "expected_share": expected,
        "bias": expected - truth,
        "mae": np.abs(expected - truth),
        "rps": rps(p, truth),
    }
    found = ratios(chains, {name: (value, every) for name, value in values.items()}, how=how)
    row: dict[str, Any] = {"truth_share": float(truth.mean())}
    for name in _MEANS:
        row |= columns(name, found[name])
    flat = np.full_like(p, 1 / (top + 1))
    below = dict(below_cuts(judged, scale))
    cuts = [calibration_error(truth < cut, p_below) for cut, p_below in below.items()]
    row |= {
        "rps_score": float(np.abs(numbers(judged["score"]) / top - truth).mean()),
        "rps_uniform": float(rps(flat, truth).mean()),
        "rps_base": _mean_difference(truth) / 2,
        "ece": float(np.mean(cuts)),
    }
    row |= columns("spearman", spearman(chains, expected, truth, how)[0])
    return row | columns("auroc", auroc(chains, truth < INFLATED, below[INFLATED], how))


def _mean_difference(values: np.ndarray) -> float:
    """The mean of |a - b| over all pairs, each with itself too."""
    ordered, n = np.sort(values), len(values)
    return float(2 * ((2 * np.arange(1, n + 1) - n - 1) * ordered).sum() / n**2)
