"""Bad data through the command line: exit code 2, one line with place, value and remedy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from bad_input import said_by
from hostile_inputs import CASES, GOOD, ROWS, lines


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


@pytest.mark.parametrize("case", CASES)
@pytest.mark.in_time(16)
def test_a_file_that_cannot_be_used(tmp_path: Path, case: str) -> None:
    suffix, content, expected = CASES[case]
    path = tmp_path / (f"mine.{suffix}" if suffix else "mine")
    path.write_bytes(content)
    said = complaint(tmp_path, path)
    assert str(path) in said
    for part in expected:
        assert part in said


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "own"])
def test_all_faults_of_a_file_are_said_together(tmp_path: Path, suffix: str) -> None:
    """Rows that a reader of files cannot read, and rows that a task cannot."""
    rows = [f'{{"question": "What is {i}?", "answer": {i}}}' for i in range(30)]
    bad = {4: "[1]", **dict.fromkeys(range(7, 20), '{"question": "x", ')}
    kinds = ["is a list; give", "is not JSON"]
    if suffix == "own":
        bad = {
            4: '{"answer": 3}',
            **dict.fromkeys(range(7, 20), '{"question": "Q", "answer": "x"}'),
        }
        kinds = ["no column 'question'", "answer 'x' is not one number"]
    if suffix == "csv":
        rows = ["question,answer", *(f"What is {i}?,{i}" for i in range(30))]
        bad = {4: "a", **dict.fromkeys(range(7, 20), "a,b,c")}
        kinds = ["has 1 cells, the header has 2", "has 3 cells, the header has 2"]
    rows = [bad.get(i, row) for i, row in enumerate(rows)]
    path = tmp_path / f"mine.{'csv' if suffix == 'csv' else 'jsonl'}"
    path.write_text("\n".join(rows) + "\n")
    (tmp_path / "x.yaml").write_text(
        yaml.safe_dump(
            {
                "name": "t",
                "out": str(tmp_path / "runs"),
                "model": {"name": "bundled:smollm2-135m"},
                "tasks": ["own"],
                "data": {"path": str(path)},
            }
        )
    )
    said = said_by("run", str(tmp_path / "x.yaml"), "--dry-run")
    assert said.code == 2
    one, many, last = [x for x in said.err.splitlines() if x.startswith("error: ")]
    assert f"{path}, line 5: {kinds[0]}" in one
    assert f"{path}, line 8: {kinds[1]}" in many
    assert many.endswith(
        "(the same in " + ", ".join(f"line {i}" for i in range(9, 19)) + " and 2 more)"
    )
    assert f"{path}: 14 of 30 rows cannot be read, the other 16 can; mend or delete them" in last


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


@pytest.mark.parametrize(("task", "row", "expected"), ROWS)
def test_the_papers_tasks_refuse_rows_that_are_not_theirs(
    tmp_path: Path, task: str, row: dict, expected: str
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(lines(row))
    said = complaint(tmp_path, path, task)
    assert f"task {task!r}: {path}, line 1: " in said
    assert expected in said
