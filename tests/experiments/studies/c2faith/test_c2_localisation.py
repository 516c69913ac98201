"""C2-Faith's localisation tables and figure, against numbers computed by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from c2_judgements import placed

from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.studies.c2faith.figures.verdicts import localisation_picture
from faithscope.experiments.studies.c2faith.tables.frames import Frames
from faithscope.experiments.studies.c2faith.tables.localisation import (
    LOCALISATION,
    SIGNED_ERROR,
    WITHIN,
)

HOW = Bootstrap(seed=3, resamples=200)


def frame(*parts: pd.DataFrame) -> pd.DataFrame:
    return Frames(localisation=pd.concat(parts)).localisation


def test_by_hand():
    said = frame(placed([5, 5, 4, 2, 7, -1, None], [-1, -1, 5, 3, None, -1]))
    (row,) = LOCALISATION.make(said, how=HOW).to_dict("records")
    assert [row[x] for x in ("n", "n_without_verdict", "n_control", "n_detected")] == [6, 1, 5, 5]
    assert row["n_control_without_verdict"] == 1
    assert row["exact"] == pytest.approx(2 / 6)
    assert row["detection"] == pytest.approx(5 / 6)
    assert row["fpr"] == pytest.approx(2 / 5)
    assert row["net"] == pytest.approx(5 / 6 - 2 / 5)
    assert row["gap"] == pytest.approx(3 / 6)
    # -1 stands six steps before step 5, as in the paper
    assert row["mae_all"] == pytest.approx((0 + 0 + 1 + 3 + 2 + 6) / 6)
    assert row["mae_detected"] == pytest.approx(6 / 5)
    assert (row["within_1"], row["within_2"]) == (pytest.approx(3 / 5), pytest.approx(4 / 5))
    assert row["signed_error"] == pytest.approx(-2 / 5)
    assert (row["early"], row["late"]) == (pytest.approx(2 / 5), pytest.approx(1 / 5))
    assert row["exact_chance"] == pytest.approx(1 / 10)
    assert row["exact_chance_middle"] == pytest.approx(1 / 7)
    assert row["exact_control"] == pytest.approx(1 / 5)
    # no reply of these has a final score
    assert row["n_final_score"] == 0
    assert all(math.isnan(row[x]) for x in ("contradicts", "detection_final_score"))
    assert row["net_low"] <= row["net"] <= row["net_high"]


def test_the_mean_over_all_is_made_of_the_detected_and_the_sentinels():
    said = frame(placed([5, 1, -1, -1], []))
    (row,) = LOCALISATION.make(said, how=HOW).to_dict("records")
    missed = 1 - row["detection"]
    assert row["mae_all"] == row["detection"] * row["mae_detected"] + missed * (5 + 1)


def test_distributions_are_of_the_detected_alone():
    said = frame(placed([5, 5, 4, 2, 7, -1, None], [3]))
    errors = SIGNED_ERROR.make(said)
    assert errors["signed_error"].tolist() == [-3, -1, 0, 2]
    assert errors["share"].tolist() == pytest.approx([0.2, 0.2, 0.4, 0.2])
    assert set(errors["n"]) == {5}
    assert set(errors["n_without_verdict"]) == {1}
    near = WITHIN.make(said)
    assert near["k"].tolist() == [0, 1, 2, 3]
    assert near["within"].tolist() == pytest.approx([0.4, 0.6, 0.8, 1.0])


def test_a_judge_that_names_no_step_has_no_error_to_speak_of():
    said = frame(placed([-1, -1], [-1, -1]), placed([5, 4], [-1, 5], judge="b"))
    row, _ = LOCALISATION.make(said, how=HOW).to_dict("records")
    assert (row["detection"], row["mae_all"], row["n_detected"]) == (0, 6, 0)
    assert all(math.isnan(row[x]) for x in ("mae_detected", "within_1", "signed_error", "early"))
    assert SIGNED_ERROR.make(said).iloc[0]["n"] == 0
    assert WITHIN.make(said)["n"].tolist() == [0, 0, 2, 2]


def test_what_contradicts_itself_is_counted_and_the_index_rules():
    #       agrees: broken, valid; contradicts: broken but valid, valid but broken; not known
    said = placed([5, -1, 4, -1, 3], [2, -1], final_scores=[0, 1, 1, 0, None, 1, 1])
    (row,) = LOCALISATION.make(frame(said), how=HOW).to_dict("records")
    assert row["n_final_score"] == 6
    assert row["contradicts"] == pytest.approx(3 / 6)
    assert row["contradicts_low"] <= 3 / 6 <= row["contradicts_high"]
    assert (row["detection"], row["fpr"]) == (pytest.approx(3 / 5), pytest.approx(1 / 2))
    assert row["detection_final_score"] == pytest.approx(2 / 4)
    assert row["fpr_final_score"] == 0
    told = localisation_picture(LOCALISATION.make(frame(said), how=HOW)).caption
    assert "contradict themselves in 50 % of 6" in told
    silent = LOCALISATION.make(frame(placed([5], [-1])), how=HOW)
    assert "final score" not in localisation_picture(silent).caption


def test_a_step_beyond_the_chain_is_refused():
    with pytest.raises(ValueError, match=r"predicted = 10\.0 cannot be \(item i0"):
        frame(placed([10], []))
