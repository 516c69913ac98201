"""Agreement with annotators against scikit-learn and statsmodels; φ and bits of the paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score, roc_auc_score
from statsmodels.stats.inter_rater import cohens_kappa

from faithscope.experiments.analysis.statistics.resampling import Drawing
from faithscope.experiments.studies.faithcot.metrics import (
    agreement,
    association,
    average_precision,
    cross_fitted_flags,
    quadrants,
)
from faithscope.experiments.studies.faithcot.verdict import word_of

HOW = Drawing(0, 200)


def drawn(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.4
    score = rng.normal(size=n) + 1.5 * label
    return label, score, [f"q{i // 2}" for i in range(n)]


def test_agreement_is_that_of_scikit_learn_and_statsmodels() -> None:
    label, score, questions = drawn()
    flag = score > 0.8
    found = agreement(label, flag, questions, HOW)
    of = {name: estimate.value for name, estimate in found.of.items()}
    assert found.n == 80
    assert of["kappa"] == pytest.approx(cohen_kappa_score(label, flag))
    table = [[int(((label == a) & (flag == b)).sum()) for b in (0, 1)] for a in (0, 1)]
    assert of["kappa"] == pytest.approx(cohens_kappa(np.array(table)).kappa)
    assert of["accuracy"] == pytest.approx(accuracy_score(label, flag))
    assert of["f1"] == pytest.approx(f1_score(label, flag))
    assert of["f1_faithful"] == pytest.approx(f1_score(~label, ~flag))
    for estimate in found.of.values():
        assert estimate.low < estimate.value < estimate.high


def test_ac2_is_gwets_of_a_table_by_hand_and_does_not_collapse() -> None:
    # 96 of 100 agree, nearly all on one class
    label = np.array([True] * 2 + [False] * 98)
    flag = np.array([False] * 2 + [True] * 2 + [False] * 96)
    found = agreement(label, flag, list(map(str, range(100))), HOW)
    q = 0.02
    by_hand = (0.96 - 2 * q * (1 - q)) / (1 - 2 * q * (1 - q))
    assert found.of["ac2"].value == pytest.approx(by_hand)
    assert found.of["kappa"].value < 0
    assert found.saturated is True
    balanced, flags, questions = drawn()
    assert agreement(balanced, flags > 0.8, questions, HOW).saturated is False


def test_one_class_alone_and_no_chain_have_no_number_that_they_cannot_have() -> None:
    never = np.zeros(5, dtype=bool)
    found = agreement(never, never, list("abcde"), HOW)
    assert math.isnan(found.of["kappa"].value)
    assert math.isnan(found.of["f1"].value)
    assert found.of["accuracy"].value == 1
    assert math.isnan(average_precision(never, np.arange(5.0)))
    none = agreement(never[:0], never[:0], [], HOW)
    assert (none.n, none.saturated) == (0, None)


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
    pairs = [(True, True)] * 605 + [(True, False)] * 185 + [(False, True)] * 189
    pairs += [(False, False)] * 204
    made = quadrants([c for c, _ in pairs], [f for _, f in pairs])
    assert made == {
        "n": 1183,
        "correct_faithful": 605,
        "correct_unfaithful": 185,
        "wrong_faithful": 189,
        "wrong_unfaithful": 204,
        **found,
    }
    assert math.isnan(association(3, 0, 4, 0)["phi"])
