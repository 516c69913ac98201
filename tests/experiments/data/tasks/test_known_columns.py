"""Columns that look like options or answers are read, or refused by name: none is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows

from faithscope.experiments.cli import execute
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

OWN = get_task("own")


def asked(folder: Path, header: str, *lines: str) -> list[Question]:
    path = folder / "mine.csv"
    path.write_text("\n".join((header, *lines)) + "\n", encoding="utf-8")
    return list(OWN.load(LoadSettings(path=path)))


def chain(folder: Path, **row: Any) -> GivenChain:
    (read,) = read_chains(write_rows(folder / "c.jsonl", {"question": "?", **row})).chains
    return read


@pytest.mark.parametrize(
    "header",
    [
        "question,Choice A,Choice B,Choice C,Correct Answer",
        "question,A,B,C,Answer",
        "Question,option_a,option_b,option_c,gold",
        "QUESTION,optionA,optionB,optionC,target",
        "question,(A),(B),(C),ANSWER",
        "question,Option 1,Option 2,Option 3,correct_answer",
        "question,choice0,choice1,choice2,correctAnswer",
        "question,Answer 1,Answer 2,Answer 3,Correct-Answer",
        "question,A,B,Option C,answerKey",
        "question,opa,opb,opc,target",
        "question,1,2,3,answer",
        "question,options.0,options.1,options.2,gold",
    ],
)
def test_options_and_answers_are_known_by_other_names(tmp_path: Path, header: str) -> None:
    right = "otter" if any(digit in header for digit in "0123") else "B"
    (read,) = asked(tmp_path, header, f"Which swims?,owl,otter,crow,{right}")
    assert (read.kind, read.options, read.gold) == ("choice", ("owl", "otter", "crow"), "B")
    row = dict(zip(header.split(","), ("Which?", "owl", "otter", "crow", right), strict=True))
    if header.split(",")[-1].casefold() != "answer":
        (given,) = read_chains(
            write_rows(tmp_path / "c.jsonl", row | {"Reasoning": "It swims.", "Answer": "A"})
        ).chains
        assert (given.options, given.gold, given.answer) == (read.options, "B", "A")


@pytest.mark.parametrize(
    ("header", "cells", "problem"),
    [
        (
            "question,distractor1,distractor2,Correct Answer",
            "q,3,4,5",
            "column 'distractor1' could",
        ),
        ("Question,Correct Answer,Incorrect Answer 1", "q,3,4", "'Incorrect Answer 1' could hold"),
        ("question,choices.text,answer", "q,3,4", "'choices.text' could hold options"),
        ("question,options,label", "q,x|y,A", "column 'label' could hold the right answer"),
        ("question,A,B,correct_option", "q,x,y,A", "column 'correct_option' could hold the right"),
        ("question,Solution", "q,7", "'Solution' could hold the right answer, and is not known"),
        (
            "question,groundTruth",
            "q,7",
            "known are answer, gold, target, correct_answer, answer_idx",
        ),
        ("question,expected output", "q,7", "rename it, or take it out"),
        ("question,a,b,answer", "q,3,4,3", "columns a, b could be options; call them A, B if"),
        ("question,A,Option A,B,answer", "q,x,y,z,A", "'A' and 'Option A' are both option A"),
        ("question,answer,gold", "q,7,8", "'answer' is '7' and 'gold' is '8', which are different"),
        ("question,A,B,answer,target", "q,x,y,A,y", "'answer' is 'A' and 'target' is 'y', which"),
        ("question,answer,Answer", "q,7,8", "'answer' is '7' and 'Answer' is '8'"),
        ("question,reasoning,answer", "q,So.,7", "'answer' could be the right answer, or that of"),
        ("question,A,C,answer", "q,x,y,C", "has options A, C, and no option B"),
    ],
)
def test_what_could_be_an_option_or_an_answer_is_not_passed_over(
    tmp_path: Path, header: str, cells: str, problem: str
) -> None:
    with pytest.raises(UserError) as refused:
        asked(tmp_path, header, cells)
    assert "mine.csv, line 2: " in str(refused.value)
    assert problem in str(refused.value)


def test_answers_that_agree_are_one(tmp_path: Path) -> None:
    assert asked(tmp_path, "question,answer,gold", 'q,"1,000",1000.0')[0].gold == "1000"
    (read,) = asked(tmp_path, "question,A,B,answer,gold,target", "q,x,y,B,y,B: y")
    assert read.gold == "B"


def test_columns_that_are_neither_are_left_alone(tmp_path: Path) -> None:
    header = "question,answer,answer_type,solution,N,n_tokens,source"
    (read,) = asked(tmp_path, header, "q,7,exact,so,3,4,book")
    assert (read.kind, read.gold) == ("number", "7")
    (read,) = asked(tmp_path, "question,a,b,answer,kind", "q,3,4,3,number")
    assert (read.kind, read.gold) == ("number", "3")
    # the answer of a chain is not that of its question
    (read,) = asked(tmp_path, "question,reasoning,answer,gold", "q,So 8.,8,7")
    assert read.gold == "7"
    # a row without an answer in a file that has some
    first, second = asked(tmp_path, "question,answer,solution", "q,7,so", "r,,so")
    assert (first.gold, second.gold) == ("7", None)


def test_in_a_chain_the_answer_is_its_own(tmp_path: Path) -> None:
    read = chain(tmp_path, reasoning="So 7.", answer="7")
    assert (read.answer, read.gold) == ("7", None)
    for name in ("gold", "target", "correct_answer", "Correct Answer", "answerKey"):
        read = chain(tmp_path, reasoning="So 7.", answer="7", **{name: "8"})
        assert (read.answer, read.gold, read.kind) == ("7", "8", "number")
    with pytest.raises(UserError, match="'gold' is '8' and 'target' is '9', which are different"):
        chain(tmp_path, reasoning="So.", gold="8", target="9")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"label": 1}, "column 'label' could hold the right answer"),
        (
            {"correct": True},
            "or label_NAME for a label of the chain: say what it holds, as in --set",
        ),
        ({"is_correct": "False"}, "'traces.columns={labels: [is_correct]}'"),
        ({"gt": "7", "truth": 7, "pred": 7}, "{gold: gt, answer: pred}'"),
        ({"ground_truth": "7"}, "'ground_truth' could hold the right answer"),
        ({"model_answer": "7"}, "'model_answer' could hold what the chain answered"),
        ({"prediction": "7", "gold": "7"}, "it, and is not known; known are answer; for the right"),
        ({"candidates": ["x", "y"]}, "column 'candidates' could hold options"),
    ],
)
def test_a_chain_passes_over_no_answer(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError) as refused:
        chain(tmp_path, reasoning="So 7.", **row)
    assert "c.jsonl, line 1: " in str(refused.value)
    assert problem.removeprefix("it, ") in str(refused.value)


def test_a_conversation_has_its_answer_in_the_reply(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "3 + 4?"},
        {"role": "assistant", "content": "<think>7.</think>7"},
    ]
    read = chain(tmp_path, messages=messages, correct_answer="8")
    assert (read.answer, read.gold) == ("7", "8")
    with pytest.raises(UserError, match="line 1: 'answer' could be the right answer or the one in"):
        chain(tmp_path, messages=messages, answer="8")


@pytest.mark.parametrize("how", ["data.path", "traces.path"])
def test_a_run_says_of_how_many_questions_the_right_answer_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    more = {"answer": "7"} if how == "traces.path" else {}
    rows = [{"question": f"{i} + 4?"} | more for i in range(3)]
    if how == "traces.path":
        rows = [row | {"reasoning": "We add four. So it is 7."} for row in rows]
    path = write_rows(tmp_path / "mine.jsonl", *rows, rows[0] | {"question": "1?", "gold": "1"})
    sets = ["tasks=[own]", f"{how}={path}", f"out={tmp_path}", "data.limit=10"]
    args = [part for text in sets for part in ("--set", text)]
    assert execute(["run", "slrc", *args, "--dry-run"]) == 0
    said = capsys.readouterr().err
    assert "\nown: the right answer is known of 1 of 4 questions; it is read from " in said
    assert said.count("the right answer is known") == 1
    assert ("from gold, target" in said) == (how == "traces.path")


def test_columns_of_other_cases_are_the_same(tmp_path: Path) -> None:
    read = chain(tmp_path, **{"Steps": ["Owls fly.", "So 2."], "ID": "x7", "Model": "org/w"})
    assert (read.id, read.model, len(read.steps or ())) == ("x7", "org/w", 2)
    (asks,) = asked(tmp_path, "ID,Question,Kind,Options,Answer", "q9,Is it?,label,yes|no,No")
    assert (asks.id, asks.kind, asks.gold) == ("q9", "label", "no")
