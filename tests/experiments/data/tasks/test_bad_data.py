"""Bad data through the command line: exit code 2, one line with place, value and remedy."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from bad_input import said_by

from faithscope.experiments.data.tasks.sources.rows import MAX_CHARS

GOOD = {"id": "a", "question": "Which is a mammal?", "options": ["trout", "otter"], "answer": "B"}


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def changed(**changes: Any) -> dict[str, Any]:
    row = GOOD | {"id": "b"} | changes
    return {k: v for k, v in row.items() if v != "absent"}


def complaint(folder: Path, path: Path, task: str = "own", *more: str) -> str:
    """What a dry run says, and a real one too: it stops at the data, before any weights."""
    config = {
        "name": "t",
        "out": str(folder / "runs"),
        "model": {"name": "bundled:smollm2-135m"},
        "tasks": [task],
        "data": {"path": str(path)},
    }
    (folder / "x.yaml").write_text(yaml.safe_dump(config))
    dry, real = (said_by("run", str(folder / "x.yaml"), *how, *more) for how in (["--dry-run"], []))
    assert dry == real
    assert dry.wrong() == ""
    assert dry.err.count("\n") == 1, dry.err
    assert not (folder / "runs").exists(), "the run folder was made"
    assert len(dry.err) < 700, "one line that a person reads"
    return dry.err.strip()


CASES: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "no field": ("jsonl", lines(GOOD, changed(question="absent")),
        ("line 2: no column 'question'; it has id, options, answer",)),
    "null field": ("jsonl", lines(changed(question=None)), ("line 1: no column 'question'",)),
    "empty question": ("jsonl", lines(GOOD, changed(question=" \n")),
        ("line 2: 'question' is empty; fill it, or take the row out",)),
    "question of another type": ("jsonl", lines(changed(question=["a"])),
        ("line 1: 'question' is a list; give a text",)),
    "same id twice": ("jsonl", lines(GOOD, changed(), GOOD),
        ("line 3: id 'a' is that of", "line 1; give each row an id of its own")),
    "one option": ("jsonl", lines(GOOD, changed(options=["otter"], answer="A")),
        ("line 2: has one option ['otter']; give 2 to 26",)),
    "one option in columns": ("csv", b"question,A,B,answer\nWhich?,otter,,A\n",
        ("line 2: has one option ['otter']; give 2 to 26",)),
    "27 options": ("jsonl", lines(changed(options=[str(i) for i in range(27)], answer="5")),
        ("line 1: has 27 options", "give 2 to 26")),
    "empty option": ("jsonl", lines(changed(options=["x", " "], answer="A")),
        ("line 1: option B is empty",)),
    "gold is no option": ("jsonl", lines(GOOD, changed(answer="E")),
        ("line 2: answer 'E' is none of the options A (trout), B (otter); give the letter",)),
    "gold is a position": ("jsonl", lines(changed(answer=1)),
        ("answer '1' is none of the options",)),
    "gold is ambiguous": ("jsonl", lines(changed(options=["B", "A"], answer="A")),
        ("answer 'A' could be any of A, B of the options A (B), B (A); name one",)),
    "gold is a letter with another's text": ("jsonl", lines(changed(answer="A: otter")),
        ("answer 'A: otter' is none of the options",)),
    "gold is no number": ("jsonl", lines(changed(options="absent", answer="Paris")),
        ("answer 'Paris' is not one number that can be read whole; give plain digits",)),
    "gold is several numbers": ("jsonl", lines(changed(options="absent", answer="2 or 3")),
        ("answer '2 or 3' is not one number",)),
    "kind that is none": ("jsonl", lines(changed(kind="essay")),
        ("line 1: kind 'essay' is none of number, label, choice; give one",)),
    "kind without options": ("jsonl", lines(changed(kind="label", options="absent")),
        ("line 1: no column 'options'",)),
    "kind with options": ("jsonl", lines(changed(kind="number", answer=3)),
        ("kind 'number' takes no options",)),
    "labels alike": ("jsonl", lines(changed(kind="label", options=["No", "no"], answer="absent")),
        ("label 'No' is there twice",)),
    "too long": ("jsonl", lines(GOOD, changed(question="x" * 10_000_000)),
        ("line 2: 'question' has 10,000,000 characters, the limit is 1,000,000; shorten it",)),
    "too long in a cell": ("csv", b"question,answer\n" + b"x" * 2_000_000 + b",1\n",
        ("line 2: 'question' has 2,000,000 characters",)),
    "NUL escaped": ("jsonl", lines(changed(question="a\0b")),
        ("line 1: 'question' holds the character '\\x00'; take it out",)),
    "half a surrogate": ("jsonl", b'{"question": "a\\ud800"}\n',
        ("line 1: 'question' holds the character '\\ud800'",)),
    "NUL bytes": ("csv", b"question,answer\nWhat\0?,1\n", ("line 2: holds a NUL byte; save",)),
    "UTF-16": ("csv", "question,answer\nWhat?,1\n".encode("utf-16"), ("line 1: is not UTF-8",)),
    "Latin-1": ("jsonl", lines(GOOD) + b'{"question": "caf\xe9"}\n',
        ("line 2: is not UTF-8", "save the file as UTF-8")),
    "torn line": ("jsonl", lines(GOOD) + b'{"question": "Wh',
        ("line 2: is not JSON", "give one object per line")),
    "nested too deep": ("jsonl", b"[" * 200_000 + b"\n", ("line 1: is not JSON",)),
    "nested deeper than data is": ("jsonl",
        lines(GOOD) + b'{"question": "q", "labels": ' + b"[" * 900 + b"]" * 900 + b"}\n",
        ("line 2: holds lists or objects nested more than 100 deep; flatten them",)),
    "nested so in a list": ("json", b'[{"question": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}]",
        ("row 1: holds lists or objects nested more than 100 deep",)),
    "a key twice": ("jsonl", lines(GOOD) + b'{"question": "q", "answer": 1, "answer": 2}\n',
        ("line 2: key 'answer' stands twice in one object; keep one of the two",)),
    "a key twice inside": ("jsonl", b'{"question": "q", "options": {"A": "x", "A": "y"}}\n',
        ("line 1: key 'A' stands twice",)),
    "a key twice in a list": ("json", b'[{"question": "q", "answer": 1},\n\n {"question": "r",\n'
        b'"answer": 1,\n"answer": 2}]', ("line 3: key 'answer' stands twice",)),
    "a key twice in lines of a list's name": ("json", lines(GOOD) + b'{"id": "a", "id": "b"}\n',
        ("line 2: key 'id' stands twice",)),
    "a key twice in a cell": ("csv", b'question,options\nWhich?,"{""A"": ""x"", ""A"": ""y""}"\n',
        ("line 2: 'options': key 'A' stands twice",)),
    "a row that is a list": ("jsonl", lines(GOOD, ["Which?", "A"]),
        ("line 2: is a list; give one object per line",)),
    "a row of a list that is none": ("json", json.dumps([GOOD, 3]).encode(),
        ("row 2: is a int; give a list of objects",)),
    "too many cells": ("csv", b"question,answer\nOne, two?,1\n",
        ("line 2: has 3 cells, the header has 2; quote cells",)),
    "too few cells": ("tsv", b"question\tanswer\nOne\n",
        ("line 2: has 1 cells, the header has 2; write every cell",)),
    "open quote": ("csv", b'question,answer\n"One?,1\n', ("is no CSV", "check its quotes")),
    "a column twice": ("csv", b"question,question\na,b\n",
        ("line 1: column 'question' is there twice",)),
    "empty file": ("jsonl", b"", ("holds no rows; give a file with some",)),
    "blank lines only": ("jsonl", b"\n\n", ("holds no rows",)),
    "empty list": ("json", b"[]", ("holds no rows",)),
    "header only": ("csv", b"question,answer\n", ("holds no rows",)),
    "wrong suffix": ("xlsx", b"PK", ("cannot read '.xlsx'; give one of .jsonl, .json",)),
    "no suffix": ("", b"{}", ("cannot read ''; give one of .jsonl",)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_file_that_cannot_be_used(tmp_path: Path, case: str) -> None:
    suffix, content, expected = CASES[case]
    path = tmp_path / (f"mine.{suffix}" if suffix else "mine")
    path.write_bytes(content)
    said = complaint(tmp_path, path)
    assert str(path) in said
    for part in expected:
        assert part in said


def test_a_file_or_a_split_that_is_not_there(tmp_path: Path) -> None:
    said = complaint(tmp_path, tmp_path / "mnie.jsonl")
    assert "no such file or folder: " in said
    assert "check the path" in said
    folder = tmp_path / "data"
    folder.mkdir()
    assert "no file of split 'test'; it holds no data file" in complaint(tmp_path, folder)
    (folder / "train.jsonl").write_bytes(lines(GOOD))
    said = complaint(tmp_path, folder)
    assert "no file of split 'test'; it holds train.jsonl" in said
    assert "set data.split" in said
    said = complaint(tmp_path, folder, "own", "--set", "data.split=tset")
    assert "no file of split 'tset'" in said


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(lines(GOOD))
    path.chmod(0)
    said = complaint(tmp_path, path)
    assert f"{path}: cannot be read (Permission denied); check its permissions" in said
    folder = tmp_path / "closed"
    folder.mkdir(mode=0)
    assert f"{folder}: cannot be read (Permission denied)" in complaint(tmp_path, folder)


def test_own_questions_that_nobody_gave(tmp_path: Path) -> None:
    said = complaint(tmp_path, tmp_path, "own", "--set", "data.path=null")
    assert "give them with --set data.path.own=FILE" in said


ROWS = [
    ("gsm8k", {"question": "q", "answer": "nothing"}, "no number after '####'"),
    ("sst2", {"sentence": "s", "label": 3}, "label 3 is neither of 1/positive"),
    ("sentiment", {"text": "s", "label": ""}, "'label' is empty"),
    ("ag_news", {"text": "t", "label": 4}, "label 4 is none of 0 World, 1 Sports"),
    ("ag_news", {"label": 1}, "no column 'text'; it has label"),
    ("medqa", {"question": "q", "options": {"A": "x"}, "answer_idx": "A"}, "has one option"),
    (
        "medqa",
        {"question": "q", "options": {"A": "x", "B": "y"}, "answer_idx": "C"},
        "answer 'C' is none of the options A (x), B (y)",
    ),
    (
        "commonsense_qa",
        {"question": "q", "choices": {"label": ["A"], "text": ["x", "y"]}, "answerKey": "A"},
        "'choices' has 1 labels and 2 texts; give one of each per option",
    ),
    ("arc_challenge", {"id": "i", "question": "q", "answerKey": "A"}, "no column 'options' or"),
    (
        "gsm8k",
        {"question": "x" * (MAX_CHARS + 1), "answer": "#### 1"},
        "the limit is 1,000,000",
    ),
]


@pytest.mark.parametrize(("task", "row", "expected"), ROWS)
def test_the_papers_tasks_refuse_rows_that_are_not_theirs(
    tmp_path: Path, task: str, row: dict, expected: str
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(lines(row))
    said = complaint(tmp_path, path, task)
    assert f"task {task!r}: {path}, line 1: " in said
    assert expected in said
