"""The planted table's formulas by hand and against scikit-learn and scipy, on made-up scores."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from probe_records import table_of
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from faithscope.experiments.data.planted.data import is_true
from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.data.planted.questions import named_step, problem_asked
from faithscope.experiments.studies.slrc.tables.measures import (
    MEASURES,
)
from faithscope.experiments.studies.slrc.tables.planted import (
    PLANTED,
    SHIPPED,
    auroc,
    calibration,
    has_planted_truth,
    rank_correlation,
    short_table,
    step_hits,
)
from faithscope.experiments.studies.slrc.tables.sources import Sources


def rigidity(model: str, item: str, depth: float, option: float | None = None) -> dict:
    task = "planted_select" if model == "planted:select" else "planted"
    record = {"probe": "rigidity", "model": model, "task": task, "item": item, "depth": depth}
    return record | {"option_depth": option}


def tracing(model: str, item: str, delta: list[float], p_before: float) -> dict:
    task = "planted_select" if model == "planted:select" else "planted"
    return {
        "probe": "tracing",
        "model": model,
        "task": task,
        "item": item,
        "p_before": p_before,
        "rise": 1 - p_before,
        "early_depth": 1.0,
        "horizon_depth": 1.0,
        "largest": None,
        "spearman": None,
        "delta": delta,
        "steps": list(range(len(delta))),
        "n_steps": len(delta),
        "n_cuts": 9,
    }


def of(table: pd.DataFrame, measure: str) -> dict:
    (row,) = table[table["measure"] == measure].to_dict("records")
    return row


def test_auroc_by_hand_with_ties_as_scikit_learn_has_it():
    found = auroc([0.9, 0.5, 0.5], [0.1, 0.5])
    # of six pairs four are won and two are ties
    assert found.value == pytest.approx((4 + 2 * 0.5) / 6)
    peer = roc_auc_score([1, 1, 1, 0, 0], [0.9, 0.5, 0.5, 0.1, 0.5])
    assert found.value == pytest.approx(peer)
    assert found.low <= found.value <= found.high
    assert found.n == 5
    assert math.isnan(auroc([1.0], []).value)


def test_perfect_separation_keeps_a_width_and_few_items_have_no_interval():
    every = auroc([2, 3, 4], [0, 1, 0])
    assert (every.value, every.high) == (1, 1)
    assert 0.3 < every.low < 0.8
    assert auroc([0, 1, 0], [2, 3, 4]).low == 0
    assert math.isnan(auroc([2, 3], [0, 1]).low)


def test_rank_correlation_is_scipys():
    by_p = {0.0: [0.1, 0.3], 0.5: [0.2, 0.4], 1.0: [0.9, 0.3]}
    p = [0, 0, 0.5, 0.5, 1, 1]
    found = rank_correlation(by_p, seed=0, resamples=200)
    assert found.value == pytest.approx(spearmanr(p, [0.1, 0.3, 0.2, 0.4, 0.9, 0.3]).statistic)
    assert found.low <= found.value <= found.high
    assert math.isnan(rank_correlation({0.0: [1], 1.0: [2]}, seed=0, resamples=10).value)
    flat = {0.0: [1.0], 0.5: [1.0], 1.0: [1.0]}
    assert math.isnan(rank_correlation(flat, seed=0, resamples=10).value)


def test_calibration_is_the_mean_distance_of_means_from_p():
    assert calibration({0.0: [0.0, 0.2], 0.5: [0.5], 1.0: [0.7]}) == pytest.approx(
        (0.1 + 0.0 + 0.3) / 3
    )
    assert math.isnan(calibration({0.0: [0.0], 1.0: [1.0]}))


def test_a_hit_is_the_named_step_and_ties_share_it():
    items = [f"planted_select-7-{i}" for i in range(3)]
    named = [named_step(item) for item in items]
    steps = []
    for item, right, kind in zip(items, named, ("hit", "tie", "miss"), strict=True):
        for step in range(3):
            score = {"hit": step == right, "tie": True, "miss": step != right}[kind]
            steps.append({"item": item, "step": step, "score": float(score)})
    hits, chances = step_hits(pd.DataFrame(steps))
    assert hits == pytest.approx([1, 1 / 3, 0])
    assert chances == pytest.approx([1 / 3] * 3)


def test_a_step_that_is_never_credited_is_not_hit_by_chance():
    item = "planted_select-7-0"
    named = named_step(item)
    others = [step for step in range(3) if step != named]
    without = [{"item": item, "step": step, "score": 1.0} for step in others]
    assert step_hits(pd.DataFrame(without)) == ([0], [0])
    rest = [{"item": item, "step": step, "score": 1.0} for step in (named, others[0])]
    assert step_hits(pd.DataFrame(rest)) == ([0.5], [0.5])


def records() -> list[dict]:
    depths = {"faithful": 0.9, "decorative": 0.2, "hint_no_deletions": 0.9, "hint": 0.1}
    depths |= {"mixture_25": 0.3, "mixture_50": 0.5, "mixture_75": 0.6}
    made = [rigidity(f"planted:{m}", f"i{i}", d) for m, d in depths.items() for i in range(4)]
    made += [
        tracing(f"planted:{m}", f"i{i}", [0.0, 0.0, 1 - p], p)
        for m, p in (("faithful", 0.1), ("decorative", 1.0))
        for i in range(4)
    ]
    for i in range(6):
        item = f"planted_select-0-{i}"
        delta = [0.8 if step == named_step(item) else 0.1 for step in range(3)]
        made.append(tracing("planted:select", item, delta, 0.1))
    return made


def test_the_table_says_who_is_told_from_whom():
    table = table_of("planted", records(), 100)
    assert list(table.columns) == PLANTED.header
    depth = of(table, "rigidity_depth")
    assert (depth["auroc"], depth["auroc_confound"], depth["auroc_hint"]) == (1, 0.5, 1)
    assert depth["spearman_p"] == pytest.approx(1)
    assert math.isnan(depth["step_hit_rate"])
    assert math.isnan(depth["auroc_5_steps"])
    assert (depth["n"], depth["forwards"]) == (8, 1)


def test_a_measure_that_points_down_is_turned_by_theory_alone():
    table = table_of("planted", records(), 100)
    before = of(table, "tracing_p_before")
    assert before["auroc"] == 1
    assert math.isnan(before["auroc_confound"])
    effect = of(table, "tracing_effect")
    assert effect["step_hit_rate"] == 1
    assert effect["step_chance"] == pytest.approx(1 / 3)
    assert effect["forwards"] == 4


def interchanged(model: str, item: str, kept: list[bool], led: list[float]) -> dict:
    task = PLANTS[model].task
    return {
        "probe": "interchange",
        "model": f"planted:{model}",
        "task": task,
        "item": f"{task}-0-{item}",
        "parts": ["kept"] * len(kept),
        "score": sum(kept) / len(kept),
        **dict.fromkeys(("predicted", "redirected", "unmoved"), 1.0),
        "kept": sum(kept) / len(kept),
        "steps": list(range(len(led))),
        "n_steps": len(led),
        "held": [1.0] * len(led),
        "led": led,
        "carried": [None] * len(led),
    }


def test_items_of_one_model_are_compared_by_the_truth_of_each():
    true = [
        is_true("half_silent", problem_asked("half_silent", f"planted_4-0-{i}")) for i in "012345"
    ]
    assert set(true) == {True, False}
    made = [interchanged("half_silent", i, [t], [1.0]) for i, t in zip("012345", true, strict=True)]
    made.append(interchanged("faithful", "0", [True, False], [1.0]))
    table = table_of("planted", made, 100)
    score = of(table, "interchange")
    assert score["auroc_half_silent"] == 1
    # of the items of half_silent only the unfaithful ones count, and all were called so
    assert (score["detected"], score["false_alarms"]) == (1, 1)
    assert of(table, "interchange_predicted")["detected"] == 0


def test_true_sentences_are_told_from_untrue_ones_within_a_model():
    credits = {"false_source": [1, 1, 0], "wrong_operation": [0, 0, 1]}
    made = [interchanged(m, i, [True], led) for m, led in credits.items() for i in "01"]
    made.append(interchanged("faithful", "0", [True], [1.0] * 3))
    table = table_of("planted", made, 100)
    # right in one model, and the wrong way in the other
    assert of(table, "interchange")["step_auroc"] == 0.5
    some = [r for r in made if r["model"] != "planted:wrong_operation"]
    assert math.isnan(of(table_of("planted", some, 100), "interchange")["step_auroc"])


def test_a_measure_without_a_rule_calls_nothing_unfaithful():
    table = table_of("planted", records(), 100)
    assert math.isnan(of(table, "rigidity_depth")["false_alarms"])


def test_a_measure_without_a_score_has_no_row():
    names = set(table_of("planted", records(), 10)["measure"])
    assert "rigidity_option_depth" not in names
    assert "tracing_spearman" not in names


def test_the_table_needs_models_that_can_be_compared():
    assert has_planted_truth(Sources(records()))
    assert not has_planted_truth(
        Sources([rigidity("planted:faithful", "i", 1), rigidity("m", "i", 1)])
    )
    twins = [rigidity("planted:faithful", "i", 1), rigidity("planted:hint", "i", 1)]
    assert not has_planted_truth(Sources(twins))


def test_correlations_are_scipys_over_the_items_that_have_both():
    rng = np.random.default_rng(0)
    depth, option = rng.random(12), rng.random(12)
    made = [
        rigidity("m", f"i{i}", d, None if i == 0 else o)
        for i, (d, o) in enumerate(zip(depth, option, strict=True))
    ]
    (row,) = table_of("measure_correlations", made).to_dict("records")
    assert (row["measure"], row["other"]) == ("rigidity_depth", "rigidity_option_depth")
    assert row["n"] == 11
    assert row["spearman"] == pytest.approx(spearmanr(depth[1:], option[1:]).statistic)
    flat = [r | {"depth": 0.5} for r in made]
    assert table_of("measure_correlations", flat).empty


def test_means_of_measures_leave_out_items_without_one():
    made = [rigidity("m", f"i{i}", i / 4, None if i else 1.0) for i in range(5)]
    table = table_of("measures", made, 200)
    depth, option = of(table, "rigidity_depth"), of(table, "rigidity_option_depth")
    assert (depth["score"], depth["n"]) == (0.5, 5)
    assert depth["score_low"] < 0.5 < depth["score_high"]
    assert (option["score"], option["n"]) == (1.0, 1)


ROOT = Path(__file__).parents[5]


def test_the_short_table_has_what_was_measured_and_a_dash_for_what_was_not():
    table = pd.DataFrame(
        {
            "measure": ["corrupt_prefix_generated", "attention_gap", "tracing_rise"],
            "auroc": [1.0, 0.478, 0.6],
            "auroc_confound": [0.996, 0.5, 0.5],
            "auroc_silent_step": [0.5, 0.4, 0.5],
            "auroc_half_silent": [0.5, 0.6, 0.5],
            "auroc_false_source": [0.5, math.nan, 0.5],
            "auroc_wrong_operation": [0.5, 0.5, 0.5],
            "step_auroc": [0.7, math.nan, math.nan],
            "spearman_p": [0.85, -0.041, 0.1],
            "step_hit_rate": [1.0, math.nan, math.nan],
            "forwards": [4.0, 4.0, 2.0],
        }
    )
    assert short_table(table).splitlines()[2:] == [
        "| frozen corruption flips the answer | reliance "
        "| 1.00 | 1.00 | 0.50 | 0.50 | 0.50 | 0.50 | 0.70 | 0.85 | 1.00 | 4 |",
        "| attention, real − shuffled | reliance "
        "| 0.48 | 0.50 | 0.40 | 0.60 | – | 0.50 | – | −0.04 | – | 4 |",
    ]


def test_the_page_of_measures_shows_the_shipped_run():
    shipped = pd.read_csv(ROOT / SHIPPED)
    assert list(shipped.columns) == PLANTED.header
    assert set(shipped["measure"]) <= set(MEASURES)
    assert short_table(shipped) in (ROOT / "docs" / "measures.md").read_text("utf-8")
