"""The tables of FaithCoT-Bench from frames whose numbers are known by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from faithcot_frames import CHAIN, scored, traces

from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import keep
from faithscope.experiments.studies.slrc.detectors.metrics import (
    by_rule,
    common_chains,
    main_readings,
    share_by_question,
)
from faithscope.experiments.studies.slrc.detectors.page import paper_tables
from faithscope.experiments.studies.slrc.detectors.tables import (
    ACCURACIES,
    CATEGORIES,
    DETECTED,
    PRINCIPLES_NAMED,
    QUADRANTS,
    RATES,
    STEPS,
)
from faithscope.experiments.studies.slrc.detectors.words import word_of

HOW = Bootstrap(0, 200)


def detected(scores: pd.DataFrame, kept: bool = False) -> pd.DataFrame:
    return DETECTED.make(by_rule(scores, 2, kept, 0), how=HOW)


def of_own_rule(table: pd.DataFrame) -> pd.DataFrame:
    return keep(table, main_readings(table))


def test_an_answer_that_is_not_known_is_in_no_quadrant() -> None:
    chains: list[dict[str, Any]] = [
        {"unfaithful": False, "correct": True},
        {"unfaithful": True, "correct": False},
        {"unfaithful": True, "correct": None},
        {"unfaithful": True, "correct": None, "cut": True},
        {"unfaithful": None, "correct": None},
    ]
    whole = QUADRANTS.make(traces(*chains, kept=False)).to_dict("records")[-1]
    assert (whole["n"], whole["n_unknown"], whole["n_cut"]) == (2, 1, 1)
    assert (whole["correct_faithful"], whole["wrong_unfaithful"]) == (1, 1)
    assert whole["phi"] == pytest.approx(1.0)
    assert QUADRANTS.make(traces(*chains)).to_dict("records")[-1]["n_unknown"] == 2


def test_a_margin_of_which_nothing_is_known_says_so() -> None:
    frame = traces({"unfaithful": True, "correct": None}, {"unfaithful": False, "correct": None})
    rows = QUADRANTS.make(frame).to_dict("records")
    assert rows
    assert all((r["n"], r["n_unknown"], r["correct_faithful"]) == (0, 2, 0) for r in rows)
    assert all(np.isnan(r["phi"]) for r in rows)


def test_intervals_of_rates_draw_questions() -> None:
    # twenty questions that four models answered all alike: eighty chains are twenty outcomes
    hits = [float(q % 2) for q in range(20) for _ in range(4)]
    questions = [str(q) for q in range(20) for _ in range(4)]
    drawn = share_by_question(questions, np.array(hits), Bootstrap(0, 2000))
    apart = share_by_question([str(i) for i in range(80)], np.array(hits), Bootstrap(0, 2000))
    assert drawn.high - drawn.low == pytest.approx(2 * (apart.high - apart.low), rel=0.15)
    frame = traces(
        *({"unfaithful": bool(h), "question": q} for h, q in zip(hits, questions, strict=True))
    )
    row = RATES.make(frame, how=Bootstrap(0, 2000)).to_dict("records")[0]
    assert (row["unfaithful_low"], row["unfaithful_high"]) == (drawn.low, drawn.high)


def test_an_interval_of_all_or_none_is_no_point() -> None:
    all_of = share_by_question([str(i) for i in range(8)], np.ones(8), HOW)
    assert (all_of.low, all_of.high) == (wilson(8, 8).low, 1.0)
    # a judge that finds all steps alike names one of two thirds in every chain
    alike = share_by_question([str(i) for i in range(8)], np.full(8, 2 / 3), HOW)
    assert alike.low < 0.5 < alike.value < alike.high
    for n in range(1, 8):
        frame = traces(*({"unfaithful": i % 2 == 0} for i in range(n)))
        for row in RATES.make(frame, how=HOW).to_dict("records"):
            assert row["unfaithful_low"] == pytest.approx(wilson((n + 1) // 2, n).low)
    # five chains about one question tell no more than one
    frame = traces(*({"unfaithful": i % 2 == 0, "question": "q"} for i in range(5)))
    made = RATES.make(frame, how=HOW)
    assert (made["unfaithful_high"] - made["unfaithful_low"] > 0.7).all()


def test_accuracy_stands_beside_the_share_of_unfaithful_chains_of_the_same_chains() -> None:
    cases = [(True, True), (True, False), (True, False), (False, True), (None, True)]
    frame = traces(
        *({"correct": c, "unfaithful": u, "model": m} for c, u in cases for m in ("a", "b")),
        {"correct": True, "unfaithful": None, "model": "a"},
    )
    made = ACCURACIES.make(frame, how=HOW).set_index(["dataset", "model"])
    assert set(made.index) == {(d, m) for d in ("aqua", "all") for m in ("a", "b", "all")}
    assert made.loc[("aqua", "a"), ["n", "accuracy", "unfaithful"]].tolist() == [4, 0.75, 0.5]
    whole = made.loc[("all", "all")]
    assert whole["n"] == 8
    assert whole["accuracy_low"] < whole["accuracy"] == 0.75 < whole["accuracy_high"]


def test_a_chain_counts_once_in_each_category_of_the_signals_that_it_names() -> None:
    named = [("post_hoc_1", "post_hoc_2"), ("spurious_1",), ("post_hoc_1", "spurious_1")]
    frame = traces(
        *({"unfaithful": True, "principles": p} for p in 4 * named),
        {"unfaithful": True, "principles": ()},
        {"unfaithful": False, "principles": ("post_hoc_1",)},
    )
    made = CATEGORIES.make(frame, how=HOW).set_index("category")
    assert made["n"].tolist() == [8, 8]
    assert made["share"].tolist() == pytest.approx([2 / 3, 2 / 3])
    of = PRINCIPLES_NAMED.make(frame, how=HOW).set_index("principle")
    assert of.loc["post_hoc_1", ["n", "share_of_category"]].tolist() == [8, 1.0]
    assert of.loc["post_hoc_2", "share_of_category"] == 0.5
    assert (of.loc["post_hoc_2", "share"], of.loc["spurious_2", "n"]) == (1 / 3, 0)
    assert of.loc["post_hoc_2", "share_low"] < 1 / 3 < of.loc["post_hoc_2", "share_high"]
    alone = traces(*({"unfaithful": True, "principles": ("spurious_1",)} for _ in range(6)))
    of = PRINCIPLES_NAMED.make(alone, how=HOW).set_index("principle")
    assert np.isnan(of.loc["post_hoc_1", "share_of_category"])
    assert of.loc["spurious_1", "share_of_category"] == 1.0


def test_intervals_of_steps_draw_questions() -> None:
    rows = []
    for q in range(10):
        for sample in range(3):
            about = {**CHAIN, "counted": True, "measure": "m", "judge": "", "question": f"q{q}"}
            for step in range(2):
                labelled = (step == 0) == (q % 2 == 0)
                item = f"{q}.{sample}"
                score = float(step == 0)
                rows.append(
                    about | {"item": item, "step": step, "score": score} | {"labelled": labelled}
                )
    first = [r for r in rows if r["item"].endswith(".0")]
    (row,), (alone,) = (
        STEPS.make(pd.DataFrame(of), how=Bootstrap(0, 2000)).to_dict("records")
        for of in (rows, first)
    )
    assert (row["n"], row["hit_rate"]) == (30, 0.5)
    width, width_alone = (r["hit_rate_high"] - r["hit_rate_low"] for r in (row, alone))
    assert width == pytest.approx(width_alone, rel=0.15)


def test_common_tables_are_of_the_same_chains_for_every_detector() -> None:
    silent = {
        "option_shuffling": {0, 1, 2},
        "perplexity": {2, 3},
        # tells of less than half: it would empty the table, and takes no part
        "step_judge": set(range(9)),
    }
    scores = scored(12, silent)
    every = of_own_rule(detected(scores))
    assert set(every.loc[every["rule"] == "plain", "n"]) == {12, 9, 3}
    cut = scores.assign(cut=scores["item"] == "11")
    common = of_own_rule(detected(common_chains(cut, False)))
    assert set(common.loc[common["rule"] == "plain", "n"]) == {7}
    assert set(common["n_cut"]) == {1}
    assert "step_judge" not in set(common["detector"])
    assert {"perplexity", "random", "faithful_judge"} <= set(common["detector"])


def test_the_papers_tables_have_each_detector_in_its_main_reading() -> None:
    scores = scored(12, {"option_shuffling": {2, 3}})
    of_all, common = detected(scores), detected(common_chains(scores, True))
    made = paper_tables({"detectors": of_all, "detectors_common": common})
    printed = {table.name: table for table in made}
    names = ("paper_faithcot_table1", "paper_faithcot_table3")
    assert [*printed] == [*names, *(f"{name}_common" for name in names)]
    table = printed["paper_faithcot_table3"].printed
    assert list(table.columns) == ["dataset", "detector", "m κ", "m Acc", "m F1", "m n"]
    n = dict(zip(table["detector"], table["m n"], strict=True))
    assert (n["Random"], n["Option Shuffling"]) == ("12", "10")
    common_n = printed["paper_faithcot_table3_common"].printed.set_index("detector")["m n"]
    assert (common_n["Random"], common_n["Option Shuffling"]) == ("10", "10")
    data = printed["paper_faithcot_table1"].data.set_index("detector")
    own = of_own_rule(of_all).set_index("detector")
    assert data["value"].to_dict() == own["f1"].dropna().to_dict()


def test_without_labels_there_are_no_common_chains() -> None:
    scores = scored(6, {}).assign(unfaithful=None)
    assert common_chains(scores, True).empty
    assert detected(common_chains(scores, True), True).empty


def test_every_row_says_whose_its_rule_is() -> None:
    table = detected(scored(6, {}))
    of = {(r["detector"], r["variant"], r["rule"]): r["rule_by"] for r in table.to_dict("records")}
    assert of["early_answering", "at_cut", "plain"] == "paper"
    assert of["answer_tracing", "", "plain"] == "ours"
    assert of["perplexity", "", "plain"] == ""
    assert of["perplexity", "", "fitted"] == "ours"


@pytest.mark.slow
@pytest.mark.parametrize("telling", [None, "perplexity"])
def test_of_many_detectors_that_tell_nothing_none_has_a_word(telling: str | None) -> None:
    """Forty chains, every detector a noise of its own: intervals alone name one in twenty."""
    called, wrong, named = 0, 0, 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        scores = scored(40, {}).assign(flag=None)
        noise = rng.normal(size=len(scores))
        true = 2.5 * scores["unfaithful"].to_numpy(dtype=float)
        scores["score"] = noise + np.where(scores["detector"] == telling, true, 0.0)
        table = detected(scores)
        main = table[table["main"].astype(bool) & (table["rule"] == "plain")]
        words = {r["detector"]: word_of(r) for r in main.to_dict("records")}
        named += words.pop(telling, "") == "tells"
        called += any(word in ("tells", "little") for word in words.values())
        wrong += any(word == "reversed" for word in words.values())
    assert called <= 2
    assert wrong <= 2
    assert named == (12 if telling else 0)
