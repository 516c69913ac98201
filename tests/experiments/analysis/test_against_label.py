"""Scores and flags against a label: numbers of scikit-learn and statsmodels, one table by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    cohen_kappa_score,
    f1_score,
    recall_score,
    roc_auc_score,
)
from statsmodels.stats.inter_rater import cohens_kappa

from faithscope.experiments.analysis.statistics.against_label import (
    OF_FLAGS,
    OF_SCORES,
    SATURATED,
    against_label,
    drawn_by_one,
    drawn_together,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap

HOW = Bootstrap(0, 200)
EVERY = (*OF_SCORES, *OF_FLAGS, SATURATED)


def drawn(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.4
    score = rng.normal(size=n) + 1.5 * label
    return label, score, [f"q{i // 2}" for i in range(n)]


@pytest.mark.parametrize("totals", [drawn_together, drawn_by_one])
def test_statistics_are_those_of_scikit_learn_and_statsmodels(totals) -> None:
    label, score, questions = drawn()
    flag = score > 0.8
    score[:3] = np.nan
    found = against_label(
        EVERY, label, questions, HOW, score=score, flag=flag.astype(float), totals=totals
    )
    of = {name: found[name].value for name in (*OF_FLAGS, "auroc", "pooled")}
    assert of["kappa"] == pytest.approx(cohen_kappa_score(label, flag))
    table = [[int(((label == a) & (flag == b)).sum()) for b in (0, 1)] for a in (0, 1)]
    assert of["kappa"] == pytest.approx(cohens_kappa(np.array(table)).kappa)
    assert of["accuracy"] == pytest.approx(accuracy_score(label, flag))
    assert of["f1"] == pytest.approx(f1_score(label, flag))
    assert of["f1_of_rest"] == pytest.approx(f1_score(~label, ~flag))
    both_right = recall_score(label, flag) * recall_score(~label, ~flag)
    assert of["g_mean_squared"] == pytest.approx(both_right)
    assert of["auroc"] == of["pooled"] == pytest.approx(roc_auc_score(label[3:], score[3:]))
    assert found["average_precision"] == pytest.approx(
        average_precision_score(label[3:], score[3:])
    )
    for name in of:
        assert found[name].low < found[name].value < found[name].high
        assert found[name].n == (77 if name in OF_SCORES else 80)


def test_ac2_is_gwets_of_a_table_by_hand_and_does_not_collapse() -> None:
    # 96 of 100 agree, nearly all on one class
    label = np.array([True] * 2 + [False] * 98)
    flag = np.array([False] * 2 + [True] * 2 + [False] * 96)
    found = against_label(EVERY, label, list(map(str, range(100))), HOW, flag=flag.astype(float))
    q = 0.02
    by_hand = (0.96 - 2 * q * (1 - q)) / (1 - 2 * q * (1 - q))
    assert found["ac2"].value == pytest.approx(by_hand)
    assert found["kappa"].value < 0
    assert found["saturated"] is True
    balanced, score, questions = drawn()
    found = against_label(EVERY, balanced, questions, HOW, flag=(score > 0.8).astype(float))
    assert found["saturated"] is False


def test_one_class_alone_and_no_item_have_no_number_that_they_cannot_have() -> None:
    never, score = np.zeros(5, dtype=bool), np.arange(5.0)
    found = against_label(EVERY, never, list("abcde"), HOW, score=score, flag=np.zeros(5))
    assert math.isnan(found["kappa"].value)
    assert math.isnan(found["f1"].value)
    assert math.isnan(found["auroc"].value)
    assert math.isnan(found["average_precision"])
    assert found["accuracy"].value == 1
    gone = np.full(5, np.nan)
    none = against_label(EVERY, never, list("abcde"), HOW, score=gone, flag=gone)
    assert (none["kappa"].n, none["auroc"].n, none["saturated"]) == (0, 0, None)
