"""Measures held against labels of whole chains: numbers of peers, and planted truths."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    average_precision_score,
    roc_auc_score,
)
from synthetic_comparison import HOW, NOTHING, joined_of, run_of

from faithscope.experiments.analysis.comparison.combining import (
    TOO_FEW_KNOWN,
    ablation_table,
    combined_table,
)
from faithscope.experiments.analysis.comparison.conclusions import answers
from faithscope.experiments.analysis.comparison.disagreements import disagreement_tables
from faithscope.experiments.analysis.comparison.join import Joined, join
from faithscope.experiments.analysis.comparison.prose import cautions
from faithscope.experiments.analysis.comparison.scores import (
    Scores,
    item_row,
    of_correctness,
)
from faithscope.experiments.analysis.comparison.scores_vs_labels import (
    against_tables,
    targets,
)
from faithscope.experiments.analysis.comparison.trust import (
    FRONT,
    TOO_FEW_OF_KIND,
    TOO_SPARSE,
    trust_table,
)
from faithscope.experiments.analysis.statistics import detection
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.interp.errors import UserError


def trusted(joined: Joined, bound: float = 0.05) -> pd.DataFrame:
    of_labels = targets(joined, 5, 0)
    against = against_tables(joined, of_labels, HOW, parts=False)["against"]
    return trust_table(against, of_labels, HOW, bound)


def labelled(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    truth = np.arange(n) % 3 > 0
    return truth, np.where(truth, 1.0, 0.0) + np.random.default_rng(4).normal(scale=0.7, size=n)


def test_what_is_told_against_a_label_equals_peers_and_an_independent_cross_fit() -> None:
    truth, score = labelled()
    joined = joined_of(
        {"x": ("logit", score), "w": ("internal", -score)}, label=truth.astype(float)
    )
    of_labels = targets(joined, 5, 0)
    table = where(against_tables(joined, of_labels, HOW)["against"], by="all").set_index("measure")
    row, against = table.loc["x"], table.loc["w"]
    # places of the table are those of its traces, in their order
    value, unfaithful = joined.oriented["x"].to_numpy(), joined.wide()["faithful"].to_numpy() == 0
    assert row["n_unfaithful"] == (~truth).sum()
    assert row["auroc"] == pytest.approx(roc_auc_score(unfaithful, -value))
    assert row["average_precision"] == pytest.approx(average_precision_score(unfaithful, -value))
    # a measure that points the wrong way is shown so
    assert against["auroc"] == pytest.approx(1 - row["auroc"])
    fold = of_labels[0].fold
    assert fold is not None
    called = np.zeros(len(value), dtype=bool)
    for i in range(5):
        train = fold != i
        cuts = np.unique(-value[train].round(6))
        worth = [
            (np.mean(-value[train & unfaithful] >= c) * np.mean(-value[train & ~unfaithful] < c), c)
            for c in cuts
        ]
        called[~train] = -value[~train].round(6) >= max(worth)[1]
    by_hand = called[unfaithful].mean() * (~called[~unfaithful]).mean()
    assert row["g_mean_squared"] == pytest.approx(by_hand)
    assert row["bias"] == pytest.approx(called.mean() - unfaithful.mean())
    assert 0 < row["brier"] < 0.25
    assert row["calibration"].startswith("Platt")


def test_a_measure_that_points_the_wrong_way_is_not_turned_round_by_its_curve() -> None:
    truth, score = labelled()
    values = {"x": ("logit", -score), "y": ("internal", -score - truth)}
    of_labels = targets(joined_of(values, label=truth.astype(float)), 5, 0)
    (found, *_) = rows(combined_table(of_labels, HOW))
    assert found["single_auroc"] < 0.6
    table = against_tables(joined_of(values, label=truth.astype(float)), of_labels, HOW)["against"]
    wrong = where(table, by="all", measure="x").iloc[0]
    # all that is left is the share of the kind on the other questions
    share = np.mean(~truth)
    assert wrong["brier"] == pytest.approx(share * (1 - share), abs=0.01)


def test_operating_points_keep_what_they_promise_where_they_are_chosen() -> None:
    truth, score = labelled(600)
    cut = detection.threshold_for(truth, score, precision=0.9)
    assert cut is not None
    assert truth[score >= cut].mean() >= 0.9
    assert all(truth[score >= other].mean() < 0.9 for other in np.unique(score) if other < cut)
    recalled = detection.threshold_for(truth, score, recall=0.9)
    assert recalled is not None
    assert (score[truth] >= recalled).mean() >= 0.9
    best = truth[score >= recalled].mean()
    kept = [c for c in np.unique(score) if (score[truth] >= c).mean() >= 0.9]
    assert best == max(truth[score >= c].mean() for c in kept)
    assert detection.threshold_for(truth, np.zeros(600), precision=0.9) is None


def test_a_cheaper_measure_that_is_as_good_takes_the_front() -> None:
    truth, score = labelled()
    better = np.where(truth, 1.0, 0.0)
    joined = joined_of(
        {"dear": ("logit", better), "cheap": ("logit", score)}, label=truth.astype(float)
    )
    # the first costs 1, the second 2: nothing is left for the second to be good at
    front = FRONT.make(trusted(joined))
    on = set(front.loc[front["on_front"], "measure"])
    assert on == {"dear"}


def test_equals_of_one_cost_are_both_on_the_front_and_a_dearer_equal_is_not() -> None:
    truth, score = labelled()
    whole = run_of(
        {n: ("logit", score) for n in ("x", "twin", "dearer")}, label=truth.astype(float)
    )
    cost = whole.items["measure"].map({"x": 1.0, "twin": 1.0, "dearer": 2.0})
    priced = Scores(whole.items.assign(forwards=cost), whole.traces)
    front = FRONT.make(trusted(join({"a": priced}, None, "text")))
    assert dict(zip(front["measure"], front["on_front"], strict=True)) == {
        "x": True,
        "twin": True,
        "dearer": False,
    }


def test_a_measure_of_few_traces_is_neither_the_best_nor_a_standard_for_others() -> None:
    truth, score = labelled()
    few = np.where(np.arange(120) < 4, truth, math.nan)
    dear = score + np.random.default_rng(1).normal(scale=0.1, size=120)
    values = {"few": ("judged", few), "x": ("logit", score), "dear": ("internal", dear)}
    joined = joined_of(values | {"noise": ("logit", -score)}, label=truth.astype(float))
    trust = trusted(joined)
    assert trust["measure"].iloc[-1] == "few"
    assert trust["reason"].iloc[-1] == TOO_SPARSE
    good = dict(zip(trust["measure"], trust["as_good"], strict=True))
    best, other = trust["measure"].iloc[:2]
    assert {best, other} == {"x", "dear"}
    # 60 traces of a class cannot show, corrected for two, that few are not turned round
    assert good == {best: None, other: False, "noise": False, "few": None}
    front = {r["measure"]: (r["on_front"], r["reason"]) for r in rows(FRONT.make(trust))}
    assert front["few"] == (False, TOO_SPARSE)
    assert front["x"] == (True, "")
    # no measure of a label with nine of a kind is called the best
    label = np.where(np.cumsum(~truth) <= 9, truth, 1).astype(float)
    rare = trusted(joined_of({"x": ("logit", score)}, label=label))
    assert rare["reason"].tolist() == [TOO_FEW_OF_KIND]


@pytest.mark.slow
def test_measures_are_compared_with_the_best_measure_and_monitors_with_monitors() -> None:
    truth, score = labelled()
    whole = run_of({"x": ("logit", score)}, label=truth.astype(float))
    places = [tuple(str(r[k]) for k in ("dataset", "task", "item", "model")) for r in
              rows(whole.traces)]  # fmt: skip
    seen = {p: np.array([float(t), 0.0]) for p, t in zip(places, truth, strict=True)}
    noise = {p: np.random.default_rng(i).normal(size=2) for i, p in enumerate(places)}
    read = Scores(whole.items, whole.traces, features={"seen": seen, "noise": noise})
    joined = join({"a": read}, None, "text")
    row = {r["measure"]: r for r in rows(trusted(joined))}
    assert row["monitor: seen"]["auroc"] == 1
    assert row["x"]["auroc"] < 0.9
    assert row["x"]["behind"] == 0
    assert row["x"]["as_good"] is None
    assert math.isnan(row["monitor: seen"]["p_highest"])
    assert not row["monitor: noise"]["as_good"]


@pytest.mark.slow
def test_a_combiner_gains_where_measures_know_different_things_and_says_none_where_not() -> None:
    n, rng = 300, np.random.default_rng(5)
    truth = np.arange(n) % 2 == 0
    one, two = (np.where(truth, 1.0, 0.0) + rng.normal(scale=1.2, size=n) for _ in range(2))
    label = truth.astype(float)
    gaps = np.where(np.arange(n) % 9 == 0, math.nan, two)
    both = joined_of({"x": ("judged", one), "y": ("internal", gaps)}, label=label)
    (found, *_) = rows(combined_table(targets(both, 5, 0), HOW))
    assert found["gain"] > 0.02
    assert found["verdict"] == "gain"
    # gaps of faithful traces alone would tell a classifier which traces are faithful
    hang = joined_of(
        {"x": ("judged", one), "y": ("internal", np.where(np.arange(n) % 10 == 0, math.nan, two))},
        label=label,
    )
    assert combined_table(targets(hang, 5, 0), HOW)["reason"].tolist() == [TOO_FEW_KNOWN]
    ablated = where(ablation_table(targets(both, 5, 0), HOW), families="internal + judged")
    assert set(ablated["verdict"]) == {"gain"}
    copies = joined_of({"x": ("judged", one), "y": ("internal", one)}, label=label)
    verdicts_of = {r["verdict"] for r in rows(combined_table(targets(copies, 5, 0), HOW))}
    assert "gain" not in verdicts_of


def test_a_label_of_correctness_is_not_said_to_be_of_faithfulness() -> None:
    names = ("correct", "final_answer_correct", "isIncorrect", "wrong_answer", "faithful", "intact")
    assert [n for n in names if of_correctness(n)] == list(names[:4])
    truth, score = labelled()
    whole = run_of({"x": ("logit", score)}, label=truth.astype(float))
    named = whole.items.replace({"measure": {"faithful": "correct"}})
    joined = join({"a": Scores(named, whole.traces)}, None, "text")
    of_labels = targets(joined, 5, 0)
    held = against_tables(joined, of_labels, HOW)["against"]
    combined = pd.DataFrame(columns=["label", "trained_on", "gain", "auroc", "pooled"])
    parts = disagreement_tables(joined, HOW, 1)["disagreements"]
    trust = trust_table(held, of_labels, HOW)
    tables = NOTHING | {"trust": trust, "combined": combined, "disagreements": parts}
    (said, *_) = answers(tables, joined)
    assert "of which it speaks against 40" in said.words
    assert "faithful" not in said.words
    assert "not whether the reasoning is faithful" in cautions(tables, joined, of_labels)[0]


@pytest.mark.parametrize("value", [math.inf, -math.inf, np.float64("inf")])
def test_an_infinite_score_names_its_measure_and_item(value: float) -> None:
    about = {"item": "aqua/7", "model": "m"}
    with pytest.raises(UserError, match=r"^my_ratio: the score of item 'aqua/7' of 'm' is -?inf"):
        item_row(about, "my_ratio", "logit", value, higher_is_faithful=True)
    for there in (1.5, 0.0, None, math.nan):
        row = item_row(about, "my_ratio", "logit", there, higher_is_faithful=True)
        assert math.isnan(row["value"]) == (there is None or there != there)
