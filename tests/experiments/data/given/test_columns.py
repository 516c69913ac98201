"""Columns of a file by the user's names for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows

from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.given.rules import ReadingRules
from faithscope.experiments.data.tasks.sources.rows import files_read
from faithscope.interp.errors import UserError

ROW: dict[str, Any] = {
    "problem": "Which animal barks?",
    "answer": 1,
    "choices": "(A) otter\n(B) dog",
    "out": {"cot": ["Otters swim. So a dog barks.", "B"], "by": "m/x"},
    "is_correct": True,
    "n_cue_answer": 3,
    "note": "kept by nobody",
}
COLUMNS = {
    "question": "problem",
    "reasoning": "out.cot.0",
    "answer": "out.cot.1",
    "options": "choices",
    "model": "out.by",
    "labels": ["is_correct"],
}


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_any_columns_are_read_by_a_mapping(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    if ending == "csv":
        import pandas as pd

        flat = {k: json.dumps(v) if isinstance(v, dict) else v for k, v in ROW.items()}
        pd.DataFrame([flat]).to_csv(path, index=False)
    else:
        write_rows(path, ROW)
    with files_read() as files:
        read = read_chains(path, columns=COLUMNS)
    (chain,) = read.chains
    assert (read.format, chain.question, chain.model) == ("rows", ROW["problem"], "m/x")
    assert (chain.reasoning, chain.answer, chain.gold) == (ROW["out"]["cot"][0], "B", None)
    assert (chain.options, chain.labels) == (("otter", "dog"), {"is_correct": True})
    # the right answer is not among what is mapped, and is said to be unread
    assert set(files[0].unused) == {"answer", "n_cue_answer", "note"}


def test_a_value_may_hold_for_all_rows_and_a_cue_has_its_places_filled(tmp_path: Path) -> None:
    row = {"q": "1 + 1?", "cot": "Two. So 2.", "hint": "I think it is {letter} {x}.", "letter": "3"}
    columns = {"question": "q", "reasoning": "cot", "cue": "hint", "cue_target": "letter"}
    path = write_rows(tmp_path / "x.jsonl", row)
    of_all = {"model": "=org/name-1.5b", "cue_mention": "=I think|it is", "cue_name": "=guess"}
    (chain,) = read_chains(path, columns=columns | of_all).chains
    assert (chain.model, chain.cue, chain.cue_target, chain.cue_mention, chain.cue_name) == (
        *("org/name-1.5b", "I think it is 3 {x}.", "3", "I think|it is", "guess"),
    )
    with pytest.raises(UserError, match=r"'cue_mention': '.*' is no regular expression"):
        read_chains(path, columns=columns | {"cue_mention": "=(I"})


def test_a_mapping_beside_the_file_is_used_and_the_commands_own_comes_first(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "x.jsonl", ROW | {"better": "So the dog. It barks."})
    (tmp_path / "x.columns.yaml").write_text(json.dumps(COLUMNS))
    read = read_chains(path)
    assert read.columns_from == str(tmp_path / "x.columns.yaml")
    assert read.chains[0].answer == "B"
    assert read_chains(path, columns={"reasoning": "better"}).chains[0].reasoning[:7] == "So the "
    (tmp_path / "x.columns.yaml").write_text("{reasonin: cot}")
    with pytest.raises(UserError, match=r"columns\.yaml: 'reasonin' is no column.*'reasoning'"):
        read_chains(path)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (
            {"question": "problems"},
            r"traces\.columns\.question: no row .* 'problems'; did you mean",
        ),
        ({"answer": "out.cot.7"}, r"traces\.columns\.answer: no row .* 'out\.cot\.7'"),
        ({"labels": ["is_corect"]}, r"traces\.columns\.labels: no row .* 'is_corect'; did you"),
        ({"questoin": "problem"}, r"'questoin' is no column that is read; did you mean 'question'"),
        ({"gold": ["answer", "note"]}, r"gold: must be the name of a column of the file, got"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(
    tmp_path: Path, columns: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UserError, match=problem):
        read_chains(write_rows(tmp_path / "x.jsonl", ROW), columns=COLUMNS | columns)


def test_what_columns_may_hold_is_proposed_in_one_line(tmp_path: Path) -> None:
    row = {"problem": "?", "model_output": "One and one. So two.", "gt_answer": 2, "pred": 2}
    path = write_rows(tmp_path / "x.jsonl", row)
    line = "question: problem, reasoning: model_output, gold: gt_answer, answer: pred"
    with pytest.raises(UserError) as refused:
        read_chains(path)
    assert f"'traces.columns={{{line}}}'" in str(refused.value)
    columns = {name: column for name, column in (p.split(": ") for p in line.split(", "))}
    (chain,) = read_chains(path, columns=columns).chains
    assert (chain.gold, chain.answer, chain.kind) == ("2", "2", "number")
    with pytest.raises(UserError, match="nothing in it is named like one: no question"):
        read_chains(write_rows(tmp_path / "y.jsonl", {"cot": "One and one. So two."}))


def test_a_star_reads_a_chain_for_each_entry(tmp_path: Path) -> None:
    row = {
        "question": "Does a dog bark?",
        "with_cue": [{"cot": "It barks. So yes.", "said": "yes"}, {"cot": "No.", "said": "no"}],
        "by_id": {"a.b": {"0": "It does. Yes."}, "c": {"0": "It may. Yes.", "1": "No."}},
    }
    path = write_rows(tmp_path / "x.jsonl", row)
    columns = {"reasoning": "with_cue.*.cot", "answer": "with_cue.*.said"}
    read = read_chains(path, columns=columns)
    assert [(c.reasoning, c.answer) for c in read.chains] == [
        ("It barks. So yes.", "yes"),
        ("No.", "no"),
    ]
    assert read.chains[1].where.endswith("x.jsonl, line 1, sample 1")
    deep = read_chains(path, columns={"reasoning": "by_id.*.*"}).chains
    assert [c.reasoning for c in deep] == ["It does. Yes.", "It may. Yes.", "No."]
    with pytest.raises(UserError, match=r"'\*' goes through 'by_id' and 'with_cue'"):
        read_chains(path, columns=columns | {"gold": "by_id.*.0"})
    with pytest.raises(UserError, match=r"line 1: 'question' is no list or object"):
        read_chains(path, columns={"reasoning": "question.*"})


def test_options_of_every_question_steps_in_one_text_and_a_cut_are_read(tmp_path: Path) -> None:
    row = {
        "question": "Do dogs bark?",
        "steps": "It barks.||So yes.",
        "answer": "yes",
        "gold": "NO",
    }
    path = write_rows(tmp_path / "x.jsonl", row, row | {"truncated": "True"})
    read = read_chains(path, rules=ReadingRules(options=("YES", "NO")))
    first, second = read.chains
    assert [first.reasoning[a:b] for a, b in first.steps or ()] == ["It barks.", "So yes."]
    assert (first.kind, first.options, first.gold) == ("label", ("YES", "NO"), "NO")
    assert (first.answer, first.cut, second.cut) == ("YES", False, True)
    wrong = write_rows(tmp_path / "y.jsonl", row | {"gold": "maybe"})
    with pytest.raises(UserError, match="answer 'maybe' is none of the options"):
        read_chains(wrong, rules=ReadingRules(options=("YES", "NO")))
