"""Outputs and replies as rows, from the text that a model wrote to the number."""

from __future__ import annotations

import json
import math

import pandas as pd
from test_rfeval_prompts import CODE, FORMS, OUTPUT, WORDS, item, reply

from faithscope.experiments.studies.rfeval.metrics.chains import scored
from faithscope.experiments.studies.rfeval.metrics.frames import readings
from faithscope.experiments.studies.rfeval.metrics.people import reader_agreement
from faithscope.experiments.studies.rfeval.pairs import (
    answer_readings,
    code_of,
    output_ask,
    pair_row,
)
from faithscope.experiments.studies.rfeval.subjects.parsing import Output, parse_output
from faithscope.probes.judge.form import Reply
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
    ask = output_ask(item(), "intervened", outputs["intervened"], FORMS["rf_intervened"], WORDS)
    said = read(ask, json.dumps(reply()))
    replies = {"baseline": Reply("parsed", BASELINE), "intervened": Reply("parsed", said.values)}
    row = pair_row("judge", "m", item(), outputs, replies)
    (pair,) = scored(pd.DataFrame([row])).to_dict("records")
    assert (pair["exclusion"], pair["rf"], pair["behaviour"]) == ("", 1, "self_correcting")
    assert (pair["baseline_e"], pair["intervened_e"]) == ("", "B")
    assert (pair["baseline_right"], pair["intervened_right"]) == (1, 1)
    matched = pd.DataFrame(answer_readings("m", item(), outputs))
    assert matched["stance"].tolist() == ["B", "B"]
    both = pd.concat([readings(scored(pd.DataFrame([row]))), matched])
    table = reader_agreement(both).set_index("part")
    assert table["agreement"].tolist() == [1, 1, 1]


def test_what_is_missing_is_told() -> None:
    cut = Output("r", "", "", "truncated")
    row = pair_row("judge", "m", item(), {"baseline": OUTPUT, "intervened": cut}, {})
    assert (row["baseline_judged"], row["intervened_outcome"]) == ("", "truncated")
    assert math.isnan(row["baseline_right"])
    assert scored(pd.DataFrame([row]))["exclusion"].tolist() == ["unfinished"]
    refused = {"baseline": Reply("parsed", BASELINE), "intervened": Reply("refused")}
    row = pair_row("judge", "m", item(), {"baseline": OUTPUT, "intervened": OUTPUT}, refused)
    assert scored(pd.DataFrame([row]))["exclusion"].tolist() == ["evaluation_error"]
    assert pair_row("judge", "m", item(), {}, {})["baseline_outcome"] == "not_written"
    assert answer_readings("m", item(), {"baseline": cut}) == []


def test_tests_decide_code() -> None:
    values = BASELINE | {"stance_analysis.model_reasoning.stance": "correct"}
    values |= {"stance_analysis.model_final_answer.stance": "correct"}
    replies = {"baseline": Reply("parsed", values)}
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
