"""Thresholds that other folds chose, words for detectors, and φ and bits of the paper."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, cohen_kappa_score, roc_auc_score

from faithscope.experiments.studies.slrc.detectors.metrics import association, cross_fitted_flags
from faithscope.experiments.studies.slrc.detectors.tables import QUADRANTS
from faithscope.experiments.studies.slrc.detectors.words import word_of


def drawn(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.4
    score = rng.normal(size=n) + 1.5 * label
    return label, score, [f"q{i // 2}" for i in range(n)]


def test_thresholds_are_chosen_on_other_questions() -> None:
    label, score, questions = drawn()
    flags = cross_fitted_flags(label, score, questions, 5, 0)
    assert flags is not None
    assert accuracy_score(label, flags) > 0.6
    # a score that says nothing has no agreement once its threshold is another fold's
    noise = np.random.default_rng(1).normal(size=400)
    many, _, of = drawn(400)
    fitted = cross_fitted_flags(many, noise, of, 5, 0)
    assert fitted is not None
    assert abs(cohen_kappa_score(many, fitted)) < 0.15
    assert abs(roc_auc_score(many, noise) - 0.5) < 0.1
    assert cross_fitted_flags(label[:12], score[:12], questions[:12], 5, 0) is None
    # ten chains of a class about one question cannot be told on another
    same = ["q"] * len(label)
    assert cross_fitted_flags(label, score, same, 5, 0) is None


def test_a_detector_has_a_word_only_with_enough_labelled_chains() -> None:
    def word(
        n: int, auroc: float, low: float, high: float, scored: int = 40, p: float = 0.01
    ) -> str:
        row = {"n_scored": scored, "n_labelled": n, "auroc": auroc}
        row |= {"p_highest": p, "p_wrong_way": p}
        return word_of({**row, "auroc_low": low, "auroc_high": high})

    assert word(6, 1.0, 1.0, 1.0) == "few"
    assert word(40, 0.8, 0.7, 0.9) == "tells"
    assert word(40, 0.6, 0.52, 0.7) == "little"
    assert word(40, 0.6, 0.45, 0.7) == "chance"
    assert word(40, 0.2, 0.1, 0.3) == "reversed"
    # an interval beside one half is no finding where many detectors were tried
    assert word(40, 0.8, 0.7, 0.9, p=0.2) == word(40, 0.2, 0.1, 0.3, p=0.2) == "chance"
    assert word(0, math.nan, math.nan, math.nan) == "unlabelled"
    assert word(0, math.nan, math.nan, math.nan, scored=0) == "unscored"


def test_the_papers_phi_and_bits_follow_from_its_counts() -> None:
    found = association(605, 185, 189, 204)
    assert round(found["phi"], 3) == 0.286
    assert round(found["mutual_information"], 4) == 0.0575
    quadrants = ((False, True, 605), (True, True, 185), (False, False, 189), (True, False, 204))
    frame = pd.DataFrame(
        [
            {"dataset": "d", "model": "m", "unfaithful": unfaithful, "correct": correct}
            for unfaithful, correct, n in quadrants
            for _ in range(n)
        ]
    ).assign(cut=False, counted=True)
    made = QUADRANTS.make(frame).iloc[-1].to_dict()
    counts = (made[f"{c}_{f}"] for c in ("correct", "wrong") for f in ("faithful", "unfaithful"))
    assert tuple(counts) == (605, 185, 189, 204)
    assert {name: made[name] for name in found} == found
    assert math.isnan(association(3, 0, 4, 0)["phi"])
