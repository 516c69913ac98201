"""Reliability of probabilities: by hand, against scikit-learn, and of judges whose knowledge is
known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from c2_frames import made_up, table_of
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from faithscope.experiments.analysis.statistics.calibration import (
    FOLDS,
    calibration_error,
    curve,
    recalibrated,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import OVERALL
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.c2faith.tables.frames import Frames
from faithscope.experiments.studies.c2faith.tables.reliability import FEW, RELIABILITY, p_below

HOW = Bootstrap(seed=1, resamples=100)
N = 1200
P = Sequence[float]


def odds(p: np.ndarray) -> np.ndarray:
    return np.log(p / (1 - p))


def of_odds(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.fixture(scope="module")
def honest() -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, and events that hold as often as they say."""
    rng = np.random.default_rng(0)
    p = rng.beta(1.5, 1.5, size=N)
    return p, rng.random(N) < p


def overall(frames: Frames, event: str, **of: str) -> dict:
    """The table's row of one event over all bins."""
    table = table_of(RELIABILITY, frames, HOW)
    (row,) = where(table, event=event, bin=OVERALL, **of).to_dict("records")
    return row


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


def row_of(p: np.ndarray, happened: np.ndarray) -> dict:
    """The table's row of detection with these probabilities, a chain per item."""
    i = np.arange(len(p))
    judged = pd.DataFrame(
        {"judge": "a", "reading": "scored", "prompt": "c2", "outcome": "parsed"}
        | {"item": [f"i{k}" for k in i], "chain": [f"c{k}" for k in i]}
        | {"condition": np.where(happened, "perturbed", "control")}
        | {"score": (p < 0.5).astype(float), "p_flag": p}
    )
    return overall(Frames(detection=judged), "step_replaced")


def test_the_scale_is_taken_out_and_the_knowledge_stays(
    honest: tuple[np.ndarray, np.ndarray],
) -> None:
    p, happened = honest
    plain, sure, turned = (
        row_of(q, happened) for q in (p, of_odds(4 * odds(p)), of_odds(-odds(p)))
    )
    assert plain["brier"] == pytest.approx(brier_score_loss(happened, p))
    assert plain["brier_recalibrated"] == pytest.approx(plain["brier"], abs=0.005)
    assert plain["slope"] == pytest.approx(1, abs=0.15)
    # four times the log-odds: a quarter of the slope, and the same once it is put right
    assert sure["brier"] > plain["brier"] + 0.02
    assert sure["slope"] == pytest.approx(plain["slope"] / 4, rel=1e-6)
    assert sure["brier_recalibrated"] == pytest.approx(plain["brier_recalibrated"])
    assert sure["ece_recalibrated"] < 0.05 < sure["ece"]
    # the wrong way round: knows as much
    assert turned["slope"] == pytest.approx(-plain["slope"])
    assert turned["gain"] == pytest.approx(plain["gain"])
    for row in (plain, sure, turned):
        assert row["gain_low"] > 0.03
        assert row["gain"] == pytest.approx(row["brier_base"] - row["brier_recalibrated"])


def test_a_judge_that_knows_nothing_gains_nothing(honest: tuple[np.ndarray, np.ndarray]) -> None:
    p, happened = honest
    row = row_of(np.random.default_rng(5).permutation(p), happened)
    assert row["gain_low"] < 0.002
    assert abs(row["gain"]) < 0.01
    assert abs(row["slope"]) < 0.1
    share = happened.mean()
    assert row["brier_base"] == pytest.approx(share * (1 - share), abs=0.002)


def test_a_chain_is_recalibrated_by_other_chains_alone() -> None:
    """Items that come back word for word in their chain are not learnt by heart."""
    rng = np.random.default_rng(3)
    chains = np.repeat([f"c{i}" for i in range(40)], 5)
    p = np.repeat(rng.random(40), 5)
    happened = np.repeat(rng.random(40) < 0.5, 5)
    found = recalibrated(chains, happened, p)
    assert found is not None
    by_curve, by_share, _ = found
    x = odds(p)[:, None]
    for train, test in GroupKFold(FOLDS).split(x, happened, chains):
        assert not set(chains[train]) & set(chains[test])
        scale = StandardScaler().fit(x[train])
        fitted = LogisticRegression().fit(scale.transform(x[train]), happened[train])
        assert by_curve[test] == pytest.approx(fitted.predict_proba(scale.transform(x[test]))[:, 1])
        assert by_share[test] == pytest.approx(happened[train].mean())


def test_too_little_to_fit_is_said() -> None:
    p = np.linspace(0.1, 0.9, 30)
    row = row_of(p, p > 0.75)
    assert row["reason"] == FEW
    assert math.isnan(row["gain"])
    assert row["ece"] > 0
    assert recalibrated(["one"] * 40, np.arange(40) % 2 == 0, np.linspace(0.1, 0.9, 40)) is None


def test_every_task_has_its_events() -> None:
    table = table_of(RELIABILITY, made_up(1, 40, mute=True), HOW)
    told = table.groupby("task")["event"].apply(lambda of: sorted(set(of)))
    assert told["detection"] == ["step_replaced"]
    assert told["localisation"] == ["step_replaced", "verdict_right"]
    assert told["coverage"] == ["below_three_quarters", "reference_below_three_quarters"]
    assert (table["n_without_verdict"] > 0).any()
    fitted = table[table["reason"] == ""]
    assert (fitted["gain_low"] <= fitted["gain"]).all()
    keys = ["task", "judge", "reading", "prompt", "scale", "reference_judge", "event"]
    for _, of in table.groupby(keys, dropna=False):
        whole, bins = of[of["bin"] == OVERALL], of[of["bin"] != OVERALL]
        assert len(whole) == 1
        assert whole["n"].item() == bins["n"].sum()
        assert whole["mean_p"].fillna(0).item() * whole["n"].item() == pytest.approx(
            (bins["mean_p"] * bins["n"]).sum()
        )
    assert table_of(RELIABILITY, Frames(), HOW).empty


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


def test_detection_against_scikit_learn(honest: tuple[np.ndarray, np.ndarray]) -> None:
    p, happened = honest
    row = row_of(p, happened)
    assert (row["n"], row["share_happened"]) == (N, pytest.approx(happened.mean()))
    assert row["mean_p"] == pytest.approx(p.mean())
    assert row["auroc"] == pytest.approx(roc_auc_score(happened, p))
    assert row["ece"] == pytest.approx(binned_error(happened, p))


def test_localisation_by_hand() -> None:
    # right with .7; wrong with .6, .1 on the target; no verdict | right with .5; wrong with .9
    perturbed = [(0.1, 0.1, 0.7, 0.1), (0.6, 0.2, 0.1, 0.1), ()]
    control = [(0.5, 0.25, 0.25, 0.0), (0.1, 0.9, 0.0, 0.0)]
    frames = Frames(localisation=placed(perturbed, control))
    right = overall(frames, "verdict_right")
    assert (right["n"], right["n_without_verdict"], right["share_happened"]) == (4, 1, 0.5)
    assert right["mean_p"] == pytest.approx((0.7 + 0.6 + 0.5 + 0.9) / 4)
    assert right["ece"] == pytest.approx((0.3 + 0.6 + 0.5 + 0.9) / 4)
    # of .7 and .5 right, .6 and .9 wrong, one pair in four is in order
    assert right["auroc"] == pytest.approx(0.25)
    assert right["reason"] == FEW
    broken = overall(frames, "step_replaced")
    # P(some step): .9 and .4 of broken chains, .5 and .9 of intact ones
    assert broken["auroc"] == pytest.approx((1 + 0.5) / 4)
    assert broken["brier"] == pytest.approx((0.1**2 + 0.6**2 + 0.5**2 + 0.9**2) / 4)


def test_coverage_by_hand() -> None:
    p = [tuple(x) for x in drawn(40, 5)]
    removed = np.random.default_rng(3).integers(1, 8, size=40).tolist()
    references: list[float] = [4.0, 3.0, 2.0, 1.0] * 9 + [math.nan] * 4
    frames = Frames(coverage=rated([*p, ()], [*removed, 4], [*references, 1.0]))
    kept = overall(frames, "below_three_quarters")
    reference = overall(frames, "reference_below_three_quarters")
    assert (kept["n"], kept["n_without_verdict"]) == (40, 1)
    assert (reference["n"], reference["n_without_verdict"]) == (36, 1)
    below = np.array(p)[:, :3].sum(axis=1)
    truth = 1 - np.array(removed) / 8 < 0.75
    assert kept["share_happened"] == pytest.approx(truth.mean())
    assert kept["auroc"] == pytest.approx(roc_auc_score(truth, below))
    assert kept["brier"] == pytest.approx(brier_score_loss(truth, below))
    held = np.array(references[:36]) / 4 < 0.75
    assert reference["ece"] == pytest.approx(binned_error(held, below[:36]))


def test_a_finer_scale_is_cut_at_the_same_share() -> None:
    p = np.zeros(10)
    p[[2, 6, 7]] = 0.5, 0.3, 0.2
    judged = rated([tuple(p)], [6], scale="0-9")
    # 7 is from three quarters of 9
    assert p_below(judged, 0.75 * 9) == pytest.approx([0.8])
    assert overall(Frames(coverage=judged), "below_three_quarters")["mean_p"] == pytest.approx(0.8)


def test_a_judge_that_means_what_it_says_and_one_that_overstates_it() -> None:
    p = drawn(1500, 5, 4)
    rng = np.random.default_rng(5)
    # chains that are broken where the judge believes it, as often as it believes
    truth = np.array([rng.choice(5, p=x) for x in p])
    sharp = p**4 / (p**4).sum(axis=1, keepdims=True)
    found = []
    for said in (p, sharp):
        parts = [
            placed([tuple(x) for x in said[truth == k]], [], target=k - 1).assign(
                item=[f"{k}-{i}" for i in range((truth == k).sum())],
                chain=[f"{k}-{i}" for i in range((truth == k).sum())],
            )
            for k in range(1, 5)
        ]
        parts.append(placed([], [tuple(x) for x in said[truth == 0]]))
        found.append(overall(Frames(localisation=pd.concat(parts)), "verdict_right"))
    honest, over = found
    assert honest["share_happened_low"] < honest["mean_p"] < honest["share_happened_high"]
    assert over["mean_p"] > over["share_happened_high"] + 0.1
    assert honest["ece"] < 0.04
    assert over["ece"] > 0.1
    assert honest["brier"] < over["brier"]
    # the order of the probabilities is the same: so is what is named
    assert honest["share_happened"] == over["share_happened"]


def test_a_judge_without_probabilities_is_left_out_and_a_silent_one_is_not() -> None:
    written = placed([(0.1, 0.2, 0.7)], []).assign(reading="generated", probabilities=[()])
    silent = placed([()], [()]).assign(judge="silent")
    frames = Frames(localisation=pd.concat([written, silent]), coverage=rated([(), ()], [2, 4]))
    table = table_of(RELIABILITY, frames, HOW)
    assert set(where(table, task="localisation")["judge"]) == {"silent"}
    assert table["bin"].tolist() == [OVERALL] * 3
    assert table["n"].tolist() == [0, 0, 0]
    assert table["n_without_verdict"].tolist() == [2, 2, 2]
    assert table["auroc"].isna().all()


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
