"""Probabilities of every verdict against what is true: by hand, and against scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import spearmanr
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from faithscope.experiments.analysis.statistics.calibration import calibration_error, curve
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.c2faith.metrics.frames import Frames
from faithscope.experiments.studies.c2faith.metrics.probabilities import (
    COVERAGE,
    EXPECTED,
    LOCALISATION,
    below_cuts,
    rps,
)

HOW = Bootstrap(seed=3, resamples=100)
P = Sequence[float]


def placed(perturbed: Sequence[P], control: Sequence[P], target: int = 1) -> pd.DataFrame:
    """A row per chain, of the probabilities of -1 and of every step; () is no verdict."""
    made = [
        {"judge": "a", "reading": "scored", "prompt": "c2", "item": f"i{i}", "chain": f"c{i}"}
        | {"condition": condition, "n_steps": len(p) - 1 if p else 4, "target": target}
        | {"outcome": "parsed" if p else "overflow"}
        | {"predicted": int(np.argmax(p)) - 1 if p else math.nan}
        | {"p_target": p[target + 1] if p else math.nan, "probabilities": p}
        | {"n_middle": 1, "final_score": None}
        for condition, all_p in (("perturbed", perturbed), ("control", control))
        for i, p in enumerate(all_p)
    ]
    return Frames(localisation=pd.DataFrame(made)).localisation


def rated(
    p: Sequence[P],
    removed: Sequence[int],
    references: Sequence[float] = (),
    *,
    level: float = 0.5,
    scale: str = "0-4",
) -> pd.DataFrame:
    """A row per chain of eight middle steps, of the probabilities of every score."""
    made = [
        {"judge": "a", "reading": "scored", "prompt": "c2", "item": f"i{i}:{level}"}
        | {"chain": f"c{i}", "outcome": "parsed" if of else "overflow", "scale": scale}
        | {"level": level, "n_middle": 8, "n_removed": removed[i], "probabilities": of}
        | {"score": int(np.argmax(of)) if of else math.nan, "expected": math.nan}
        | {"reference": references[i] if references else math.nan}
        | {"reference_judge": "r" if references else ""}
        for i, of in enumerate(p)
    ]
    return Frames(coverage=pd.DataFrame(made)).coverage


def drawn(n: int, verdicts: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(verdicts, 0.7), size=n)


def binned_error(happened: np.ndarray, p: np.ndarray) -> float:
    """The calibration error over ten bins, by scikit-learn's curve."""
    share, mean = calibration_curve(happened, p, n_bins=10)
    counts, _ = np.histogram(p, bins=10, range=(0, 1))
    return float(np.average(np.abs(share - mean), weights=counts[counts > 0]))


def one(table: pd.DataFrame, **of: str) -> dict:
    (row,) = where(table, **of).to_dict("records")
    return row


def test_the_curve_and_its_error_by_hand() -> None:
    p = np.array([0.05, 0.15, 0.18, 1.0, 0.95])
    happened = np.array([False, True, False, True, True])
    found = curve(happened, p, "p", "x")
    assert [(r["bin"], r["n"]) for r in found] == [(0, 1), (1, 2), (9, 2)]
    assert found[1]["mean_p"] == pytest.approx(0.165)
    assert found[1]["share_x"] == 0.5
    gaps = 1 * 0.05 + 2 * (0.5 - 0.165) + 2 * (1 - 0.975)
    assert calibration_error(happened, p) == pytest.approx(gaps / 5)
    assert math.isnan(calibration_error(happened[:0], p[:0]))


def test_localisation_by_hand() -> None:
    # right with .7; wrong with .6, .1 on the target; no verdict | right with .5; wrong with .9
    perturbed = [(0.1, 0.1, 0.7, 0.1), (0.6, 0.2, 0.1, 0.1), ()]
    table = LOCALISATION.make(
        placed(perturbed, [(0.5, 0.25, 0.25, 0.0), (0.1, 0.9, 0.0, 0.0)]), how=HOW
    )
    broken, intact = one(table, condition="perturbed"), one(table, condition="control")
    assert (broken["n"], broken["n_without_verdict"]) == (2, 1)
    assert broken["right"] == 0.5
    assert broken["confidence"] == pytest.approx(0.65)
    assert broken["overconfidence"] == pytest.approx(0.15)
    assert broken["p_truth"] == pytest.approx(0.4)
    assert broken["log_loss"] == pytest.approx(-(math.log(0.7) + math.log(0.1)) / 2)
    first = 0.1**2 + 0.1**2 + 0.3**2 + 0.1**2
    assert broken["brier"] == pytest.approx((first + 0.36 + 0.04 + 0.81 + 0.01) / 2)
    assert broken["log_loss_uniform"] == pytest.approx(math.log(4))
    assert (broken["p_truth_uniform"], broken["brier_uniform"]) == (0.25, 0.75)
    # two bins, of one chain each
    assert broken["ece"] == pytest.approx((0.3 + 0.6) / 2)
    assert math.isnan(broken["auroc_broken"])
    assert (intact["right"], intact["p_truth"]) == (0.5, pytest.approx(0.3))
    both = one(table, condition="both")
    assert (both["n"], both["right"], both["n_without_verdict"]) == (4, 0.5, 1)
    # of .7 and .5 right, .6 and .9 wrong, one pair in four is in order
    assert both["auroc_right"] == pytest.approx(0.25)
    # P(some step): .9 and .4 of broken chains, .5 and .9 of intact ones
    assert both["auroc_broken"] == pytest.approx((1 + 0.5) / 4)


def test_localisation_against_scikit_learn() -> None:
    p, q, verdicts = drawn(60, 6, 1), drawn(60, 6, 2), 6
    judged = placed([tuple(x) for x in p], [tuple(x) for x in q], target=3)
    row = one(LOCALISATION.make(judged, how=HOW), condition="both")
    together, truth = np.concatenate([p, q]), np.repeat([4, 0], 60)
    assert row["log_loss"] == pytest.approx(log_loss(truth, together, labels=range(verdicts)))
    per_verdict = [brier_score_loss(truth == k, together[:, k]) for k in range(verdicts)]
    assert row["brier"] == pytest.approx(sum(per_verdict))
    right, confidence = together.argmax(axis=1) == truth, together.max(axis=1)
    assert row["auroc_right"] == pytest.approx(roc_auc_score(right, confidence))
    assert row["auroc_broken"] == pytest.approx(roc_auc_score(truth == 4, 1 - together[:, 0]))
    assert row["ece"] == pytest.approx(binned_error(right, confidence))
    for name in ("right", "overconfidence", "log_loss", "auroc_right", "auroc_broken"):
        assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]


def test_a_judge_that_means_what_it_says_and_one_that_overstates_it() -> None:
    p = drawn(1500, 5, 4)
    rng = np.random.default_rng(5)
    # chains that are broken where the judge believes it, as often as it believes
    truth = np.array([rng.choice(5, p=x) for x in p])
    sharp = p**4 / (p**4).sum(axis=1, keepdims=True)
    found = {}
    for name, said in (("honest", p), ("sharp", sharp)):
        parts = [
            placed([tuple(x) for x in said[truth == k]], [], target=k - 1).assign(
                item=[f"{k}-{i}" for i in range((truth == k).sum())],
                chain=[f"{k}-{i}" for i in range((truth == k).sum())],
            )
            for k in range(1, 5)
        ]
        parts.append(placed([], [tuple(x) for x in said[truth == 0]]))
        judged = pd.concat(parts)
        found[name] = one(LOCALISATION.make(judged, how=HOW), condition="both")
    honest, sharp_row = found["honest"], found["sharp"]
    assert honest["overconfidence_low"] < 0 < honest["overconfidence_high"]
    assert honest["ece"] < 0.04
    assert sharp_row["overconfidence_low"] > 0.1
    assert sharp_row["ece"] > 0.1
    assert honest["log_loss"] < sharp_row["log_loss"]
    assert honest["brier"] < sharp_row["brier"]
    # the order of the probabilities is the same: so is what is named
    assert honest["right"] == sharp_row["right"]


def test_what_is_impossible_to_the_judge_costs_no_infinity() -> None:
    row = one(
        LOCALISATION.make(placed([(1.0, 0.0, 0.0)], []), how=HOW),
        condition="perturbed",
    )
    assert row["log_loss"] == pytest.approx(-math.log(np.finfo(float).eps))


def test_the_ranked_probability_score_is_its_definition() -> None:
    p, y = drawn(30, 5), np.random.default_rng(2).integers(0, 5, size=30)
    by_definition = [
        sum((x[: k + 1].sum() - (truth <= k)) ** 2 for k in range(4)) / 4
        for x, truth in zip(p, y, strict=True)
    ]
    assert rps(p, y / 4) == pytest.approx(by_definition)
    # between two scores: the integral over the scale
    for x, truth in zip(p[:5], (0.0, 0.1, 0.33, 0.875, 1.0), strict=True):
        steps = np.concatenate([[0], x]).cumsum()
        area, _ = quad(
            lambda s, steps=steps, truth=truth: (steps[min(int(s), 4) + 1] - (s >= 4 * truth)) ** 2,
            *(0, 4),
            points=[1, 2, 3, 4 * truth],
        )
        assert rps(x[None], np.array([truth])) == pytest.approx(area / 4, abs=1e-6)
    assert rps(np.eye(5), np.arange(5) / 4) == pytest.approx(np.zeros(5))
    assert rps(np.eye(5)[:1], np.ones(1)) == pytest.approx(np.ones(1))


def test_coverage_by_hand_and_against_scipy() -> None:
    p = [tuple(x) for x in drawn(40, 5)]
    removed = np.random.default_rng(3).integers(1, 8, size=40).tolist()
    references: list[float] = [4.0, 3.0, 2.0, 1.0] * 9 + [math.nan] * 4
    judged = rated([*p, ()], [*removed, 4], [*references, 1.0])
    table = COVERAGE.make(judged, how=HOW)
    kept, reference = one(table, truth="kept"), one(table, truth="reference")
    assert (kept["n"], kept["n_without_verdict"], kept["n_without_truth"]) == (40, 1, 0)
    assert (reference["n"], reference["n_without_truth"]) == (36, 4)
    expected = np.array(p) @ np.arange(5) / 4
    truth = 1 - np.array(removed) / 8
    assert kept["expected_share"] == pytest.approx(expected.mean())
    assert kept["bias"] == pytest.approx((expected - truth).mean())
    assert kept["mae"] == pytest.approx(np.abs(expected - truth).mean())
    assert kept["spearman"] == pytest.approx(spearmanr(expected, truth).statistic)
    assert kept["rps"] == pytest.approx(rps(np.array(p), truth).mean())
    assert kept["rps_base"] == pytest.approx(np.abs(truth[:, None] - truth).mean() / 2)
    said = np.argmax(p, axis=1) / 4
    assert kept["rps_score"] == pytest.approx(np.abs(said - truth).mean())
    not_inflated = np.array(p)[:, :3].sum(axis=1)
    assert kept["auroc"] == pytest.approx(roc_auc_score(truth < 0.75, not_inflated))
    held = np.array(references[:36]) / 4
    assert reference["bias"] == pytest.approx((expected[:36] - held).mean())
    below = np.array(p[:36]).cumsum(axis=1)
    errors = [binned_error(held < (k + 1) / 4, below[:, k]) for k in range(4)]
    assert reference["ece"] == pytest.approx(np.mean(errors))


def test_the_uniform_judge_and_the_base_rate_are_their_own_yardsticks() -> None:
    removed = [0, 2, 4, 6, 8, 8]
    flat = one(COVERAGE.make(rated([(0.2,) * 5] * 6, removed), how=HOW), truth="kept")
    assert flat["rps"] == pytest.approx(flat["rps_uniform"])
    base = tuple(x / 6 for x in (2, 1, 1, 1, 1))
    marginal = one(COVERAGE.make(rated([base] * 6, removed), how=HOW), truth="kept")
    assert marginal["rps"] == pytest.approx(marginal["rps_base"])
    assert marginal["ece"] == pytest.approx(0)
    assert math.isnan(marginal["spearman"])


def test_a_finer_scale_is_cut_at_the_same_shares() -> None:
    p = np.zeros(10)
    p[[2, 3, 7]] = 0.5, 0.3, 0.2
    judged = rated([tuple(p)], [6], scale="0-9")
    # 2 is below a quarter of 9, 2 and 3 below its half, 7 from three quarters
    below = below_cuts(judged, "0-9")
    assert [float(of_cut[0]) for of_cut in below.values()] == pytest.approx([0.5, 0.8, 0.8, 1])
    level = one(EXPECTED.make(judged, how=HOW), scale="0-9")
    assert level["expected_share"] == pytest.approx((2 * 0.5 + 3 * 0.3 + 7 * 0.2) / 9)
    assert level["score_share"] == pytest.approx(2 / 9)
    assert level["share_kept"] == 0.25
    assert math.isnan(level["reference_share"])


def test_a_judge_without_probabilities_is_left_out_and_a_silent_one_is_not() -> None:
    written = placed([(0.1, 0.2, 0.7)], []).assign(reading="generated", probabilities=[()])
    silent = placed([()], [()]).assign(judge="silent")
    judged = Frames(localisation=pd.concat([written, silent])).localisation
    table = LOCALISATION.make(judged, how=HOW)
    assert table["judge"].unique().tolist() == ["silent"]
    assert table["n"].tolist() == [0, 0, 0]
    assert table["n_without_verdict"].tolist() == [1, 1, 2]
    assert table["right"].isna().all()
    quiet = rated([(), ()], [2, 4])
    assert COVERAGE.make(quiet, how=HOW)["n_without_verdict"].tolist() == [2]
    assert EXPECTED.make(quiet, how=HOW)["n"].tolist() == [0]


@pytest.mark.parametrize(
    "p",
    [(0.5, 0.5), (0.5, 0.2, 0.2, 0.05), (1.2, -0.2, 0.0, 0.0)],
    ids=["of too few verdicts", "not together 1", "below 0"],
)
def test_probabilities_that_cannot_be_are_refused(p: P) -> None:
    good = placed([(0.1, 0.1, 0.7, 0.1)], [])
    with pytest.raises(ValueError, match="probabilities = "):
        Frames(localisation=good.assign(probabilities=[p]))
    with pytest.raises(ValueError, match="probabilities = "):
        Frames(localisation=good.assign(outcome="refused", predicted=math.nan))
