"""Measures held against each other and against labels: numbers of peers, and planted truths."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import permutation_test, spearmanr
from sklearn.metrics import (
    average_precision_score,
    cohen_kappa_score,
    matthews_corrcoef,
    roc_auc_score,
)
from statsmodels.stats.multitest import multipletests
from synthetic_comparison import joined_of, run_of

from faithscope.experiments.analysis.comparison.agreement import (
    agreement_table,
    step_agreement_table,
    step_hits_table,
    verdicts,
)
from faithscope.experiments.analysis.comparison.combining import (
    TOO_FEW_KNOWN,
    ablation_table,
    combined_table,
)
from faithscope.experiments.analysis.comparison.disagreements import parting_tables
from faithscope.experiments.analysis.comparison.join import Joined, join
from faithscope.experiments.analysis.comparison.scores import (
    STEP_LABEL,
    Scores,
    item_row,
    of_correctness,
)
from faithscope.experiments.analysis.comparison.scores_vs_labels import (
    against_tables,
    targets,
)
from faithscope.experiments.analysis.comparison.step_labels import (
    PLACE_OF_STEP,
    TOO_SPARSE_STEPS,
    step_against_table,
)
from faithscope.experiments.analysis.comparison.trust import (
    FRONT,
    TOO_FEW_OF_KIND,
    TOO_SPARSE,
    trust_table,
)
from faithscope.experiments.analysis.statistics import agreement as pairs_of
from faithscope.experiments.analysis.statistics import detection
from faithscope.experiments.analysis.statistics.resampling import Drawing
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.studies.compare.sentences import answers
from faithscope.experiments.studies.compare.words import cautions
from faithscope.interp.errors import UserError

HOW = Drawing(0, 200)
NOTHING = {
    "trust": pd.DataFrame(columns=["label", "told"]),
    "families": pd.DataFrame(columns=["family", "other_family", "spearman"]),
    "agreement": pd.DataFrame(
        {k: pd.Series(dtype=bool) for k in ("discovered", "reversed", "one_probe")}
    ).assign(p=math.nan, within=math.nan),
}
"""Tables of which the page says nothing."""


def gwet(left: np.ndarray, right: np.ndarray) -> float:
    """AC1 by its definition, category by category (Gwet 2008, eq. 4 to 6)."""
    agreed = float(np.mean([a == b for a, b in zip(left, right, strict=True)]))
    shares = [(np.mean(left == k) + np.mean(right == k)) / 2 for k in (0, 1)]
    chance = sum(p * (1 - p) for p in shares) / (2 - 1)
    return float((agreed - chance) / (1 - chance))


def test_agreement_equals_that_of_peers() -> None:
    rng = np.random.default_rng(3)
    x, y, z = rng.normal(size=(3, 60))
    y = x + y
    z = np.where(np.arange(60) % 5 == 0, math.nan, -x + z)
    joined = joined_of({"x": ("logit", x), "y": ("internal", y), "z": ("judged", z)})
    table = agreement_table(joined, HOW, 0.05)
    called, _ = verdicts(joined)
    for row in rows(table):
        both = joined.oriented[[row["measure"], row["other"]]].dropna().to_numpy()
        peer: Any = spearmanr(both[:, 0], both[:, 1])
        assert row["n"] == len(both)
        assert row["spearman"] == pytest.approx(peer.statistic)
        assert row["spearman_low"] < row["spearman"] < row["spearman_high"]
        a, b = called[[row["measure"], row["other"]]].dropna().to_numpy().T
        assert row["kappa"] == pytest.approx(cohen_kappa_score(a, b))
        assert row["phi"] == pytest.approx(matthews_corrcoef(a, b))
        assert row["ac2"] == pytest.approx(gwet(a, b))
    assert table["q"].to_numpy() == pytest.approx(multipletests(table["p"], method="fdr_bh")[1])
    assert table["discovered"].to_numpy().all()


def test_few_draws_do_not_hide_what_agrees_and_unrelated_measures_are_not_discovered() -> None:
    n, rng = 120, np.random.default_rng(9)
    shared = rng.normal(size=n)
    pair = {f"s{i}": ("logit", shared + rng.normal(scale=0.5, size=n)) for i in range(2)}
    noise = {f"n{i}": ("judged", rng.normal(size=n)) for i in range(28)}
    # 435 pairs at 200 draws: of no single pair could q be less than 2 / 201 × 435
    table = agreement_table(joined_of(pair | noise), HOW, 0.05)
    found = [(r["measure"], r["other"]) for r in rows(table.loc[table["discovered"]])]
    assert ("s0", "s1") in found
    assert len(found) <= 3
    # five questions say little, however well they agree: of 120 orders two are as far out
    few = agreement_table(joined_of({k: ("logit", np.arange(5.0)) for k in "ab"}), HOW, 0.05)
    assert few["p"].iloc[0] == pytest.approx(2 / 120, rel=0.3)


def test_p_values_of_agreement_are_those_of_a_permutation_test() -> None:
    rng = np.random.default_rng(2)
    x = np.round(rng.normal(size=(14, 3)), 1)  # with ties
    x[:, 1] += 0.8 * x[:, 0]
    clusters = np.arange(14).astype(str)
    p = pairs_of.exchanged(x, np.zeros(14), clusters, 0)
    for i, j in itertools.combinations(range(3), 2):
        peer = permutation_test(
            (x[:, i],), lambda v, j=j: spearmanr(v, x[:, j])[0], permutation_type="pairings",
            n_resamples=2_000, rng=np.random.default_rng(1),
        )  # fmt: skip
        assert (p[i, j], p[j, i]) == pytest.approx((peer.pvalue, peer.pvalue), abs=0.03)
    # two models that answer each question alike hold as many questions as one
    twice = pairs_of.exchanged(
        np.concatenate([x, x]), np.repeat([0, 1], 14), np.tile(clusters, 2), 0
    )
    assert twice == pytest.approx(p, abs=1e-9)
    # questions of which none has rows in the same models as another cannot be exchanged
    answered = [of for k in (1, 2, 3) for of in itertools.combinations("abc", k)]
    asked = np.repeat(np.arange(7), [len(of) for of in answered]).astype(str)
    lonely = pairs_of.exchanged(rng.normal(size=(12, 2)), np.concatenate(answered), asked, 0)
    assert (lonely == 1).all()


@pytest.mark.parametrize("n", [12, 30, 100])
def test_measures_that_know_nothing_of_each_other_are_not_beyond_chance(n: int) -> None:
    """However far apart they put the models, and however few values they have."""
    models, said = ("a", "b", "c"), 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(3, n, 20)) + rng.normal(size=(n, 20)) + 2 * rng.normal(
            size=(3, 1, 20)
        )  # fmt: skip
        scores[..., ::3] = scores[..., ::3] > 1
        scores[..., 1::3] *= rng.random((3, n, 7)) < 0.2
        both = rng.normal(size=(3, n)) + scores[..., 2]
        values = {f"x{i}": ("logit", scores[..., i].ravel()) for i in range(20)}
        joined = joined_of(values | {"copy": ("judged", both.ravel())}, models=models)
        table = agreement_table(joined, HOW, 0.05).set_index(["measure", "other"])
        said += table["discovered"].sum() - table.loc[("x2", "copy"), "discovered"]
        assert n == 12 or table.loc[("x2", "copy"), "discovered"]
    assert said <= 1  # of 3 × 209 pairs


def test_agreement_of_models_that_is_none_of_traces_is_flagged() -> None:
    base = np.repeat([0.0, 10.0, 20.0], 30)
    inside = np.tile(np.arange(30) / 10, 3)
    joined = joined_of(
        {"x": ("logit", base + inside), "y": ("logit", base - inside)}, models=("a", "b", "c")
    )
    (row,) = rows(agreement_table(joined, HOW, 0.05))
    assert row["spearman"] > 0.7
    assert row["within"] == pytest.approx(-1)
    assert row["across"] == pytest.approx(1)
    assert row["reversed"]


def test_agreement_within_models_is_of_the_traces_that_both_have_and_the_models_that_vary() -> None:
    n, rng = 300, np.random.default_rng(8)
    x, y = rng.normal(size=(2, 2 * n))
    # a model's low scores by one measure lack the other, the other model's high ones: what is left
    # lies high in one model and low in the other, by both
    model = np.repeat([0, 1], n)
    gone = np.where(model == 0, x < 0, x > 0) & (np.arange(2 * n) % 10 > 0)
    kept = np.where(gone, math.nan, y)
    low = np.where(model == 0, y < 0, y > 0) & (np.arange(2 * n) % 10 > 0)
    values = {"x": ("logit", np.where(low, math.nan, x)), "y": ("logit", kept)}
    (row,) = rows(agreement_table(joined_of(values, models=("a", "b")), HOW, 0.05))
    both = ~gone & ~low
    peers: list[Any] = [spearmanr(x[both & (model == m)], y[both & (model == m)]) for m in (0, 1)]
    assert max(abs(peer.statistic) for peer in peers) < 0.35
    assert min(p.statistic for p in peers) <= row["within"] <= max(p.statistic for p in peers)
    assert row["n_within"] == 2
    # where one is constant in a model, the model says nothing of the two
    same = np.where(model == 0, x, 0.0)
    stuck = {"x": ("logit", same), "y": ("logit", np.where(model == 0, x, y))}
    (row,) = rows(agreement_table(joined_of(stuck, models=("a", "b")), HOW, 0.05))
    assert row["within"] == pytest.approx(1)
    assert row["n_within"] == 1


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
    assert good == {best: None, other: True, "noise": False, "few": None}
    front = {r["measure"]: (r["on_front"], r["reason"]) for r in rows(FRONT.make(trust))}
    assert front["few"] == (False, TOO_SPARSE)
    assert front["x"] == (True, "")
    # no measure of a label with nine of a kind is called the best
    label = np.where(np.cumsum(~truth) <= 9, truth, 1).astype(float)
    rare = trusted(joined_of({"x": ("logit", score)}, label=label))
    assert rare["reason"].tolist() == [TOO_FEW_OF_KIND]


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


def test_items_that_a_judge_lies_on_and_insides_are_shuffled_on_head_the_lists() -> None:
    n, rng = 200, np.random.default_rng(6)
    truth = np.linspace(0, 1, n)
    order = rng.permutation(n)
    unused, lies = order[order < 80][:20], order[order >= 120][:20]
    judge = (truth > 0.5).astype(float)
    judge[unused] = 1.0  # the judge calls faithful what is not used
    inside = truth.copy()
    inside[lies] = rng.permutation(truth[order[order < 80][20:40]])  # insides lose what is used
    joined = joined_of({"judge": ("judged", judge), "inside": ("internal", inside)})
    tables = parting_tables(joined, HOW, 40)
    count = {r["kind"]: r["n"] for r in rows(tables["parting"])}
    assert count["judged_faithful_unused_inside"] >= 38
    listed = where(tables["parting_items"], kind="judged_faithful_unused_inside")
    planted = {f"i{i}" for i in (*unused, *lies)}
    assert len(planted & set(listed["item"])) >= 38
    silent = where(tables["parting"], kind="answer_moves_unused_inside")
    assert silent["reason"].tolist() == ["no measure of behaviour varies within a model and task"]


def test_sides_that_tell_models_apart_do_not_part_on_traces() -> None:
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(3, 40))
    # judges find the first model faithful and the insides the last, and of each they say the same
    offset = 10 * np.arange(3)[:, None]
    values = {"judge": ("judged", truth - offset), "inside": ("internal", truth + offset)}
    flat = {name: (family, of.ravel()) for name, (family, of) in values.items()}
    table = parting_tables(joined_of(flat, models=("a", "b", "c")), HOW, 5)["parting"]
    assert table["n"].tolist()[:2] == [0, 0]
    assert table["expected"].tolist()[:2] == [30, 30]
    assert table["beyond_high"].to_numpy()[:2].max() < 0
    # a model of which a side has said nothing of all but one trace has no upper half
    flat["judge"][1][1:40] = math.nan
    table = parting_tables(joined_of(flat, models=("a", "b", "c")), HOW, 5)["parting"]
    assert table["n_items"].tolist()[:2] == [80, 80]


def test_sides_that_know_nothing_of_each_other_part_no_more_than_by_chance() -> None:
    said = 0
    for seed in range(30):
        values = np.random.default_rng(seed).normal(size=(3, 60))
        families = zip(("judged", "internal", "logit"), values, strict=True)
        joined = joined_of({f: (f, v) for f, v in families})
        table = parting_tables(joined, HOW, 1)["parting"]
        assert table["beyond"].to_numpy() == pytest.approx(table["n"] - table["expected"])
        said += bool((table["beyond_low"] > 0).any())
        words = answers({"parting": table, **NOTHING}, joined)[-1].words
        assert ("the most beyond chance" in words) == bool(table["beyond_low"].max() > 0)
    assert said <= 5
    opposite = joined_of({"judge": ("judged", values[0]), "in": ("internal", -values[0])})
    table = parting_tables(opposite, HOW, 1)["parting"]
    assert np.nanmax(table["beyond_low"].to_numpy()) > 0


def test_steps_are_ranked_and_the_labelled_one_is_named() -> None:
    about = {"dataset": "d", "task": "t", "model": "m"}
    credit = {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0], "c": [3.0, 2.0, math.nan]}
    steps = [
        about | {"item": f"i{i}", "measure": name, "family": family, "step": k, "value": v}
        | {"higher_is_faithful": True}
        for i in range(4)
        for name, family, of in (
            *((n, "logit", v) for n, v in credit.items()), ("named", "label", [0.0, 0.0, 1.0])
        )
        for k, v in enumerate(of)
        if not math.isnan(v)
    ]  # fmt: skip
    whole = run_of({"x": ("logit", np.arange(4.0))})
    joined = join({"a": Scores(whole.items, whole.traces, pd.DataFrame(steps))}, None, "text")
    table = {(r["measure"], r["other"]): r for r in rows(step_agreement_table(joined, HOW))}
    assert table["a", "b"]["spearman"] == 1
    assert table["a", "b"]["same_top"] == 1
    assert table["a", "b"]["chance"] == pytest.approx(1 / 3)
    # over the two steps that both have
    assert table["a", "c"]["spearman"] == -1
    assert table["a", "c"]["same_top"] == 0
    hits = {r["measure"]: r["hit"] for r in rows(step_hits_table(joined, HOW))}
    assert hits == {"a": 1, "b": 1, "c": 0}


def test_measures_are_held_against_labels_of_steps() -> None:
    rng = np.random.default_rng(0)
    about = {"dataset": "d", "task": "t", "model": "m", "higher_is_faithful": True}
    unfaithful, credit = rng.random((40, 3)) < 0.4, rng.random((40, 3))
    credit[unfaithful] *= 0.6  # what is unfaithful has less credit
    steps = [
        about | {"item": f"i{i}", "step": k, "measure": name, "family": family, "value": float(v)}
        | ({} if up else {"higher_is_faithful": False})
        for name, family, up, values in (
            *(("credit", "logit", True, credit), ("fault", "judged", False, -credit)),
            *(("half", "logit", True, credit[:20]), ("wrong", STEP_LABEL, False, unfaithful)),
            *(("fine", STEP_LABEL, True, ~unfaithful), ("one", "label", True, unfaithful[:, :1])),
        )
        for i, of in enumerate(values)
        for k, v in enumerate(of)
    ]  # fmt: skip
    whole = run_of({"credit": ("logit", np.arange(40.0))})
    costs = whole.items.assign(forwards=7.0)
    joined = join({"a": Scores(costs, whole.traces, pd.DataFrame(steps))}, None, "text")
    table = {(r["label"], r["measure"]): r for r in rows(step_against_table(joined, HOW, 4))}
    assert len(table) == 8
    place = [-k for _ in range(40) for k in range(3)]  # what has read nothing
    held = roc_auc_score(unfaithful.ravel(), place)
    assert table["wrong", PLACE_OF_STEP]["auroc"] == pytest.approx(held)
    kind, score = unfaithful.ravel(), -credit.ravel()
    for row in (table["wrong", "credit"], table["fine", "credit"], table["wrong", "fault"]):
        assert row["auroc"] == pytest.approx(roc_auc_score(kind, score))
        assert row["average_precision"] == pytest.approx(average_precision_score(kind, score))
        assert (row["n"], row["n_items"], row["n_missing"]) == (120, 40, 0)
        assert 0 < row["g_mean_squared"] < 1
        assert row["auroc_low"] < row["auroc"] < row["auroc_high"]
    assert table["wrong", "credit"]["forwards"] == 7
    assert math.isnan(table["wrong", "fault"]["forwards"])
    half = table["wrong", "half"]
    assert (half["n"], half["n_missing"], half["reason"]) == (60, 60, TOO_SPARSE_STEPS)
    assert [*table][-1] == ("wrong", "half")  # whatever it is worth
    assert len(step_agreement_table(joined, HOW)) == 3  # labels are no measures


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
    parts = parting_tables(joined, HOW, 1)["parting"]
    trust = trust_table(held, of_labels, HOW)
    tables = NOTHING | {"trust": trust, "combined": combined, "parting": parts}
    (said, *_) = answers(tables, joined)
    assert "of which it speaks against 40" in said.words
    assert "faithful" not in said.words
    assert "not whether the reasoning is faithful" in cautions(tables, joined, of_labels)[0]


def test_every_pair_of_patterns_of_gaps_is_counted_over_what_both_have() -> None:
    rng = np.random.default_rng(7)
    values = {
        name: ("logit", np.where(rng.random(40) < share, math.nan, rng.normal(size=40)))
        for name, share in (("a", 0.0), ("b", 0.2), ("c", 0.5), ("d", 0.9))
    }
    joined = joined_of(values)
    table = {(r["measure"], r["other"]): r for r in rows(agreement_table(joined, HOW, 0.05))}
    for one, other in itertools.combinations(values, 2):
        both = joined.wide()[[one, other]].dropna()
        row = table[one, other]
        assert row["n"] == len(both)
        if len(both) >= 5:
            peer: Any = spearmanr(both[one], both[other])
            assert row["spearman"] == pytest.approx(peer.statistic)
        else:
            assert math.isnan(row["spearman"])
            assert row["reason"]


@pytest.mark.parametrize("value", [math.inf, -math.inf, np.float64("inf")])
def test_an_infinite_score_names_its_measure_and_item(value: float) -> None:
    about = {"item": "aqua/7", "model": "m"}
    with pytest.raises(UserError, match=r"^my_ratio: the score of item 'aqua/7' of 'm' is -?inf"):
        item_row(about, "my_ratio", "logit", value, higher_is_faithful=True)
    for there in (1.5, 0.0, None, math.nan):
        row = item_row(about, "my_ratio", "logit", there, higher_is_faithful=True)
        assert math.isnan(row["value"]) == (there is None or there != there)
