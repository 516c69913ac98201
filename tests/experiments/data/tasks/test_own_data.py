"""Questions of one's own: every form of options and answers, kinds, ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from faithscope.experiments.cli import execute
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data"
OWN = get_task("own")
FISH = ("trout", "otter")


def load(path: Path, **settings: Any) -> list[Question]:
    return list(OWN.load(LoadSettings(path=path, **settings)))


def one(folder: Path, **row: Any) -> Question:
    path = folder / "mine.jsonl"
    path.write_text(json.dumps({"question": "Which?"} | row) + "\n", encoding="utf-8")
    return load(path)[0]


@pytest.mark.parametrize(
    "options",
    [
        ["trout", "otter"],
        {"B": "otter", "A": "trout"},
        {"label": ["A", "B"], "text": ["trout", "otter"]},
        [{"label": "A", "text": "trout"}, {"label": "B", "text": "otter"}],
        "A: trout\nB: otter",
        "(A) trout\n(B) otter\n",
        ["A) trout", "B) otter"],
        "trout|otter",
        '["trout", "otter"]',
    ],
)
@pytest.mark.parametrize("answer", ["B", "b", "(B)", "otter", "Otter", "B: otter", "(B) otter"])
def test_options_in_every_form(tmp_path: Path, options: Any, answer: str) -> None:
    found = one(tmp_path, options=options, answer=answer)
    assert (found.kind, found.options, found.gold) == ("choice", FISH, "B")


def test_an_option_of_several_lines(tmp_path: Path) -> None:
    found = one(
        tmp_path, options="A: def f():\n    return 1\nB: def f():\n    return 2", answer="B"
    )
    assert found.options == ("def f():\n    return 1", "def f():\n    return 2")
    assert one(tmp_path, options="trout\notter", answer="B").options == FISH


def test_options_in_columns(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("question,A,B,C,answer\nWhich?,trout,otter,,B\nAnd?,x,y,z,z\nSum?,,,,12\n")
    first, second, third = load(path)
    assert (first.options, first.gold) == (FISH, "B")
    assert (second.options, second.gold) == (("x", "y", "z"), "C")
    assert (third.kind, third.gold) == ("number", "12")
    path.write_text("question,A,B,C\nWhich?,trout,,eel\n")
    with pytest.raises(UserError, match=r"mine\.csv, line 2: has options A, C, and no option B"):
        load(path)


@pytest.mark.parametrize(
    ("answer", "gold"), [(10, "10"), ("$1,234.50", "1234.5"), (0.5, "0.5"), ("3/4", "0.75")]
)
def test_without_options_the_answer_is_a_number(tmp_path: Path, answer: Any, gold: str) -> None:
    found = one(tmp_path, answer=answer)
    assert (found.kind, found.gold, found.options) == ("number", gold, None)


def test_an_answer_is_not_needed(tmp_path: Path) -> None:
    assert one(tmp_path).gold is None
    assert one(tmp_path, answer=None, options=list(FISH)).gold is None


def test_labels_say_so(tmp_path: Path) -> None:
    found = one(tmp_path, kind="label", options=["Yes", "no"], answer="yes")
    assert (found.kind, found.gold) == ("label", "Yes")
    assert OWN.parse("So the answer is yes.", found) == "Yes"
    assert {a for a, _ in OWN.labels(found, None)} == {"Yes", "no"}


def test_kinds_may_share_a_file(tmp_path: Path) -> None:
    rows = [
        {"id": 7, "question": "How many?", "answer": "12"},
        {"question": "Which?", "options": list(FISH), "answer": "A"},
        {"question": "Is it?", "options": ["yes", "no"], "kind": "label"},
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(rows))
    found = load(path)
    assert [q.id for q in found] == ["7", "mine-1", "mine-2"]
    assert [q.kind for q in found] == ["number", "choice", "label"]
    for q in found:
        assert OWN.parse(f"The final answer is {(q.labels or ['12'])[0]}.", q) is not None
        assert len(OWN.direct_prompts(q)) == 3
        assert get_task("own:alternative").cot_prompt(q) != OWN.cot_prompt(q)
    assert "A. trout\nB. otter" in OWN.cot_prompt(found[1])
    assert "Give the final numerical answer" in OWN.cot_prompt(found[0])
    assert load(path, limit=2) == found[:2]


def test_two_lines_of_config_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my.jsonl").write_text('{"question": "How many?"}\n')
    config = {
        "name": "t",
        "out": str(tmp_path / "runs"),
        "model": {"name": "bundled:smollm2-135m"},
        "tasks": ["own"],
        "data": {"path": str(tmp_path / "my.jsonl")},
    }
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(config))
    assert execute(["run", str(tmp_path / "x.yaml"), "--dry-run"]) == 0
    out = capsys.readouterr().out
    row = next(line.split() for line in out.splitlines() if line.startswith("bundled:"))
    assert row[:4] == ["bundled:smollm2-135m", "own", "1", "1"]


@pytest.mark.parametrize(
    ("file", "kind", "n"),
    [
        ("rfeval/logical_reasoning.jsonl", "choice", 120),
        ("medqa/us_4_options_test.jsonl", "choice", 400),
    ],
)
def test_real_files_are_read_as_they_are(file: str, kind: str, n: int) -> None:
    path = SHARED / file
    if not path.is_file():
        pytest.skip(f"the real rows of {file} are not here")
    found = load(path)
    assert len(found) == n
    assert {q.kind for q in found} == {kind}
    assert all(q.gold is not None for q in found)


def test_semicolons_of_a_spreadsheet_separate_cells(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text('question;answer\n"Сколько, 3 + 4?";7\n', encoding="utf-8-sig")
    (question,) = load(path)
    assert (question.text, question.gold) == ("Сколько, 3 + 4?", "7")
