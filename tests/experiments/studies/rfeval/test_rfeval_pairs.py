"""Outputs and replies as rows, from the text that a model wrote to the number."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd
import pytest
import torch
from rf_frames import drawn, frame, judged, tables_of
from rf_made_up import CELLS, made_tables, made_up
from rf_posed import CODE, FORMS, NUMBER, OUTPUT, TABLE, WORDS, item, reply
from sklearn.metrics import cohen_kappa_score
from tiny_models import tiny

from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.studies.rfeval.config_sections import CUE
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.scored_stances import (
    NO_ANSWER,
    NO_LOG_PROBS,
    NO_OPTIONS,
    part_ends,
    row_without_judge,
    scored_readings,
    scored_stances,
)
from faithscope.experiments.studies.rfeval.pairs import (
    answer_readings,
    code_of,
    output_ask,
    pair_row,
)
from faithscope.experiments.studies.rfeval.subjects.inside import asking_of
from faithscope.experiments.studies.rfeval.subjects.parsing import Output, parse_output
from faithscope.experiments.studies.rfeval.subjects.subjects import forced
from faithscope.experiments.studies.rfeval.tables.chains import scored
from faithscope.experiments.studies.rfeval.tables.frames import FLAWS, OVERALL, STANCES, readings
from faithscope.experiments.studies.rfeval.tables.people import (
    AGAINST,
    MEASURES,
    READERS,
    pairs_against_log_probs,
)
from faithscope.experiments.studies.rfeval.words import log_probs_sentences
from faithscope.probes.judge.parse import read

BASELINE = {
    "stance_analysis.model_reasoning.stance": "B",
    "stance_analysis.model_explanation": None,
    "stance_analysis.model_final_answer.stance": "B",
    "transition_analysis.model_reasoning_to_model_final_answer.identifies_flaw": False,
}


def test_from_text_to_number() -> None:
    outputs = {
        "baseline": parse_output("He was seen.</think><answer>B: guilty</answer>"),
        "intervened": parse_output("He may be right.</think>No: he was seen. Answer: B"),
    }
    ask = output_ask("m", item(), "intervened", outputs["intervened"], FORMS["rf_intervened"])
    parsed = read(ask, json.dumps(reply()))
    replies = {
        "baseline": {"outcome": "parsed", "values": BASELINE},
        "intervened": {"outcome": "parsed", "values": parsed.values},
    }
    row = pair_row("judge", "m", item(), outputs, replies)
    (pair,) = scored(pd.DataFrame([row])).to_dict("records")
    assert (pair["exclusion"], pair["rf"], pair["behaviour"]) == ("", 1, "self_correcting")
    assert (pair["baseline_e"], pair["intervened_e"]) == ("", "B")
    assert (pair["baseline_right"], pair["intervened_right"]) == (1, 1)
    matched = pd.DataFrame(answer_readings("m", item(), outputs))
    assert matched["stance"].tolist() == ["B", "B"]
    both = pd.concat([readings(scored(pd.DataFrame([row]))), matched])
    table = READERS.make(both).set_index("part")
    assert table["agreement"].tolist() == [1, 1, 1]


def test_what_is_missing_is_told() -> None:
    cut = Output("r", "", "", "truncated")
    row = pair_row("judge", "m", item(), {"baseline": OUTPUT, "intervened": cut}, {})
    assert (row["baseline_judged"], row["intervened_outcome"]) == ("", "truncated")
    assert math.isnan(row["baseline_right"])
    assert scored(pd.DataFrame([row]))["exclusion"].tolist() == ["unfinished"]
    refused = {
        "baseline": {"outcome": "parsed", "values": BASELINE},
        "intervened": {"outcome": "refused"},
    }
    row = pair_row("judge", "m", item(), {"baseline": OUTPUT, "intervened": OUTPUT}, refused)
    assert scored(pd.DataFrame([row]))["exclusion"].tolist() == ["evaluation_error"]
    assert pair_row("judge", "m", item(), {}, {})["baseline_outcome"] == "not_written"
    assert answer_readings("m", item(), {"baseline": cut}) == []


def test_tests_decide_code() -> None:
    values = BASELINE | {"stance_analysis.model_reasoning.stance": "correct"}
    values |= {"stance_analysis.model_final_answer.stance": "correct"}
    replies = {"baseline": {"outcome": "parsed", "values": values}}
    row = pair_row("judge", "m", CODE, {"baseline": OUTPUT}, replies, {"baseline": "incorrect"})
    assert (row["baseline_r"], row["baseline_a"]) == ("correct", "incorrect")
    assert row["baseline_right"] == 0
    # what the judge took it for is kept: that is what is held against people and against tests
    assert row["baseline_a_said"] == "correct"
    pair = scored(pd.DataFrame([row]))
    own = readings(pair).set_index("part")["stance"]
    assert (pair["baseline_a"][0], own["baseline_a"]) == ("incorrect", "correct")
    unknown = scored(pd.DataFrame([row]).drop(columns="baseline_a_said"))
    assert readings(unknown).set_index("part")["stance"]["baseline_a"] == "incorrect"
    untested = pair_row("judge", "m", CODE, {"baseline": OUTPUT}, replies)
    assert untested["baseline_a"] == "correct"
    assert math.isnan(untested["baseline_right"])
    (reading,) = answer_readings("m", CODE, {"baseline": OUTPUT}, {"baseline": "incorrect"})
    assert (reading["reader"], reading["stance"]) == ("tests", "incorrect")
    assert answer_readings("m", CODE, {"baseline": OUTPUT}) == []


def test_the_program_of_an_output() -> None:
    block = "```python\nprint(1)\n```"
    assert code_of(Output("r", "e", f"Here: {block} or {block.replace('1', '2')}", "complete")) == (
        "print(2)"
    )
    assert code_of(Output("r", block, "as above", "complete")) == "print(1)"
    assert code_of(parse_output(f"r</think>So: {block}")) == "print(1)"
    assert code_of(Output("r", "", "print(3)", "complete")) == "print(3)"


def test_shares_are_those_of_plain_forwards() -> None:
    model = tiny("llama")
    of = item(options=("no", "yes", "perhaps"))
    start = forced(model, "Guilty?", "He was not there.")
    written = model.encode(" He was. Answer: B")
    stances = scored_stances(model, of, start, written)
    assert [s["part"] for s in stances] == ["none", "r_prime", "r", "a"]
    places = part_ends(model, of, start, written, asking_of(model, of, CUE, "letters"))
    for stance in stances:
        p = []
        for letter in of.letters:
            prefix = (*places[stance["part"]], *model.encode(CUE))
            ids = [*prefix, *model.encode(f" {letter}")]
            with torch.inference_mode():
                logits = model.hf(torch.tensor([ids]), use_cache=False).logits[0].double()
            shares = torch.softmax(logits, -1)
            p.append(
                torch.stack([shares[k - 1, ids[k]] for k in range(len(prefix), len(ids))]).prod()
            )
        p = torch.stack(p)
        assert stance["probabilities"] == pytest.approx((p / p.sum()).tolist(), rel=1e-3)
        assert stance["mass"] == pytest.approx(p.sum().item(), rel=1e-3)
        assert stance["stance"] == of.letters[int(p.argmax())]
    alone = scored_stances(model, of, start, written, execution="loop")
    assert [s["stance"] for s in alone] == [s["stance"] for s in stances]


def test_stances_have_the_names_that_are_asked_for_and_become_readings() -> None:
    model = tiny("llama")
    start = forced(model, "Claim?", "It supports it.")
    written = model.encode(" It does not. Answer: C")
    stances = scored_stances(model, TABLE.posed(WORDS, "paper"), start, written)
    assert {s["stance"] for s in stances} <= set(TABLE.options)
    rows = scored_readings("m", TABLE, {"intervened": stances})
    assert [r["part"] for r in rows] == ["intervened_r_prime", "intervened_r", "intervened_a"]
    other = [r | {"reader": "judge"} for r in rows]
    table = READERS.make(pd.DataFrame(rows + other))
    assert table["agreement"].tolist() == [1] * 4
    assert scored_stances(model, NUMBER, start, written) == []


def after_parts(stances: str) -> list[dict[str, Any]]:
    """Records of stances after `none` and after each part; "-" marks a missing part."""
    letters = stances.split()
    parts = ["none", *(["r_prime"] if len(letters) == 4 else []), "r", "e"]
    pairs = zip(parts, letters, strict=True)
    of_all = {"probabilities": [0.4, 0.3, 0.3], "mass": 0.9}
    return [{"part": part, "stance": x, **of_all} for part, x in pairs if x != "-"]


def row_of(item: Item = TABLE, **changes: Any) -> dict[str, Any]:
    outputs = {
        "baseline": Output("It refutes it.", "So it does.", "C: refutes", "complete"),
        "intervened": Output("But row 2 says no.", "", "**B**", "complete"),
    }
    scores = {"baseline": after_parts("A C C"), "intervened": after_parts("A A A -")}
    given: dict[str, Any] = {"outputs": outputs, "scored": scores, "excluded": ""} | changes
    return row_without_judge("m", item, **given)


def test_stances_are_the_likeliest_options_and_the_written_answer() -> None:
    row = row_of()
    assert [row[name] for name in STANCES] == ["C", "C", "C", "A", "A", "", "B"]
    assert not any(row[name] for name in FLAWS)
    assert (row["reader"], row["baseline_right"], row["intervened_right"]) == ("log_probs", 1, 0)
    [of] = rows(scored(pd.DataFrame([row])))
    # without a flaw named, the turn from r (A) to the answer (B) breaks the chain
    assert (of["exclusion"], of["contrast"], of["baseline_chi"]) == ("", 1, 1)
    assert (of["intervened_chi"], of["intervened_break"], of["rf"]) == (0, "ra", 0)
    assert of["behaviour"] == "silently_correcting"


@pytest.mark.parametrize(
    ("changes", "exclusion", "why"),
    [
        ({"item": NUMBER}, "global", ""),
        ({"item": CODE}, "global", ""),
        ({"excluded": "no_room"}, "global", "parsed"),
        ({"scored": {}}, "evaluation_error", NO_LOG_PROBS),
        (
            {"scored": {"baseline": after_parts("A C C"), "intervened": []}},
            "evaluation_error",
            "parsed",
        ),
        ({"outputs": {}}, "unfinished", ""),
    ],
)
def test_a_pair_that_is_not_read_says_why(changes: dict, exclusion: str, why: str) -> None:
    row = row_of(**changes)
    [of] = rows(scored(pd.DataFrame([row])))
    assert (of["exclusion"], of["baseline_judged"]) == (exclusion, why)
    if changes.get("item"):
        assert of["excluded"] == NO_OPTIONS


def test_an_answer_that_is_not_marked_is_no_stance() -> None:
    bare = Output("It refutes it.", "So it does.", "", "complete")
    row = row_of(outputs={"baseline": bare, "intervened": bare})
    assert (row["baseline_judged"], row["baseline_r"]) == (NO_ANSWER, "")


def test_a_hand_made_truth_of_every_cell() -> None:
    """Log-probs see the stances that the judge sees, and no flaw."""
    by_judge = frame(*(judged(*cell) for cell in CELLS.values()))
    by_log_probs = by_judge.assign(reader="log_probs", **dict.fromkeys(FLAWS, False))
    pairs = pairs_against_log_probs(scored(by_judge), scored(by_log_probs))
    assert dict(zip(CELLS, pairs["faithful"], strict=True)) == {
        "misled": "both",
        "self_correcting": "judge_only",  # its turn is named, which log-probs cannot
        "silently_correcting": "neither",
        "incoherent": "neither",
        "inert": "neither",
        "ornamental": "neither",
    }
    table = AGAINST.make(pairs)
    rf = rows(where(table, measure="rf", model="m", task=OVERALL))[0]
    assert (rf["n"], rf["n_both"], rf["n_judge_only"], rf["n_neither"]) == (6, 1, 1, 4)
    assert (rf["by_judge"], rf["by_log_probs"]) == (pytest.approx(1 / 3), pytest.approx(1 / 6))
    assert rf["agreement"] == pytest.approx(5 / 6)
    assert rf["cohen_kappa"] == pytest.approx(4 / 7)  # (5/6 − 11/18) / (1 − 11/18)
    chi = rows(where(table, measure="chi_intervened", model="m", task=OVERALL))[0]
    assert (chi["n_judge_only"], chi["n_log_probs_only"]) == (2, 0)  # self-correcting and inert
    contrast = rows(where(table, measure="contrast", model="m", task=OVERALL))[0]
    assert (contrast["agreement"], contrast["n"]) == (1, 6)
    assert math.isnan(contrast["cohen_kappa"])
    assert contrast["reason"]


def test_the_table_is_what_plain_counting_gives() -> None:
    by_judge, by_log_probs = drawn(60, seed=1), drawn(60, seed=2).assign(reader="log_probs")
    by_log_probs = by_log_probs.assign(task=by_judge["task"])
    one, other = scored(by_judge), scored(by_log_probs)
    pairs = pairs_against_log_probs(one, other)
    assert len(pairs) == len(by_judge)
    table = AGAINST.make(pairs)
    assert set(table["measure"]) == set(MEASURES)
    by_item = {(r["model"], r["item"]): r for r in rows(other)}
    for row in rows(where(table, measure="rf")):
        both_rows = []
        for r in rows(one):
            o = by_item[r["model"], r["item"]]
            if row["model"] in (OVERALL, r["model"]) and row["task"] in (OVERALL, r["task"]):
                both_rows.append((r, o))
        counted = [(r["rf"], o["rf"]) for r, o in both_rows if not r["exclusion"] + o["exclusion"]]
        assert row["n"] == len(counted)
        assert row["n_of_judge_only"] == sum(
            bool(not r["exclusion"] and o["exclusion"]) for r, o in both_rows
        )
        assert row["n_both"] == sum(a == b == 1 for a, b in counted)
        cells = ("n_both", "n_judge_only", "n_log_probs_only", "n_neither")
        assert sum(row[name] for name in cells) == row["n"]
        if not row["reason"]:
            left, right = zip(*counted, strict=True)
            assert row["cohen_kappa"] == pytest.approx(cohen_kappa_score(left, right))


@pytest.mark.slow
def test_it_stands_apart_from_the_judges_and_is_told() -> None:
    observed = made_up(n=8)
    every_table = made_tables(observed)
    assert set(every_table["rfeval"]["reader"]) == {"api:openai/o3"}
    assert set(every_table["rf_without_judge"]["reader"]) == {"log_probs"}
    assert list(every_table["rf_without_judge"].columns) == list(every_table["rfeval"].columns)
    for row in rows(every_table["rf_without_judge_waterfall"]):
        left = sum(v for k, v in row.items() if k.startswith("n_") and k != "n_total")
        assert left == row["n_total"]
    against = every_table["rf_judge_against_log_probs"]
    [rf] = rows(where(against, model=OVERALL, task=OVERALL, measure="rf"))
    first, second, third, _ = log_probs_sentences(against)
    assert first.startswith(f"Of {rf['n']} pairs that count both")
    assert f"{rf['n_judge_only']} by the judge alone" in second
    assert "χ(o′)" in third
    nothing = tables_of(observed["judged"])
    assert nothing["rf_without_judge"].empty
    assert nothing["rf_judge_against_log_probs"].empty
    assert log_probs_sentences(nothing["rf_judge_against_log_probs"]) == []
