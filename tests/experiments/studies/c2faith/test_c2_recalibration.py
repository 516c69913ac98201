"""A wrong scale told apart from no knowledge: judges whose knowledge is known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from c2_frames import made_up, table_of
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from faithscope.experiments.analysis.statistics.calibration import FOLDS, recalibrated
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.studies.c2faith.metrics.calibration import FEW, RECALIBRATION
from faithscope.experiments.studies.c2faith.metrics.frames import Frames

HOW = Bootstrap(seed=1, resamples=100)
N = 1200


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


def row_of(p: np.ndarray, happened: np.ndarray) -> dict:
    """The table's row of detection with these probabilities, a chain per item."""
    i = np.arange(len(p))
    judged = pd.DataFrame(
        {"judge": "a", "reading": "scored", "prompt": "c2", "outcome": "parsed"}
        | {"item": [f"i{k}" for k in i], "chain": [f"c{k}" for k in i]}
        | {"condition": np.where(happened, "perturbed", "control")}
        | {"score": (p < 0.5).astype(float), "p_flag": p}
    )
    (row,) = table_of(RECALIBRATION, Frames(detection=judged), HOW).to_dict("records")
    return row


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
    table = table_of(RECALIBRATION, made_up(1, 40, mute=True), HOW)
    told = table.groupby("task")["event"].apply(lambda of: sorted(set(of)))
    assert told["detection"] == ["step_replaced"]
    assert told["localisation"] == ["step_replaced", "verdict_right"]
    assert told["coverage"] == ["below_three_quarters", "reference_below_three_quarters"]
    assert (table["n_without_verdict"] > 0).any()
    fitted = table[table["reason"] == ""]
    assert (fitted["gain_low"] <= fitted["gain"]).all()
    assert table_of(RECALIBRATION, Frames(), HOW).empty
