"""Chains as tasks of Label Studio, and its export as labels of chains and steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from bad_input import refused, said_by

from faithscope.experiments.analysis.comparison.labels import labels_of
from faithscope.experiments.analysis.exports.label_studio import (
    CHAINS,
    CONFIG,
    LABELS,
    OF_CHAIN,
    OF_STEP,
    REASON,
    TASKS,
    WORDS,
)
from faithscope.experiments.engine.traces.given import read_given

CHAIN = "chain.jsonl"
STEPS = ["Two and two are 4.", "Four times 3 are 12."]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Two given chains: one with two steps and text between, one with its steps cut here."""
    rows = [
        {
            "id": "a",
            "question": "What is (2 + 2) * 3?",
            "reasoning": f"Well: {STEPS[0]}\n\n{STEPS[1]}",
            "steps": STEPS,
            "gold": "13",
            "answer": "12",
            "model": "org/secret",
        },
        {"id": "b", "question": "Is 3 < 4?", "options": ["yes", "no"], "gold": "A", "answer": "A",
         "reasoning": "Three is less than four. So it is.", "model": "org/secret"},
    ]  # fmt: skip
    path = tmp_path / CHAIN
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def written(mine: Path) -> list[dict[str, Any]]:
    folder = mine.parent / "studio"
    said = said_by("annotate", str(mine), "--label-studio", str(folder))
    assert said.code == 0, said.err
    assert said.out.split() == [str(folder / TASKS), str(folder / CONFIG)]
    return json.loads((folder / TASKS).read_text())


def choice(word: str) -> dict[str, Any]:
    value = {"choices": [word]}
    return {"from_name": OF_CHAIN, "to_name": "steps", "type": "choices", "value": value}


def region(first: int, last: int, word: str) -> dict[str, Any]:
    """A labelled stretch of paragraphs, whose indices Label Studio writes as text."""
    value = {"start": str(first), "end": str(last), "startOffset": 0, "endOffset": 5}
    value |= {"paragraphlabels": [word]}
    return {"from_name": OF_STEP, "to_name": "steps", "type": "paragraphlabels", "value": value}


def reason(text: str) -> dict[str, Any]:
    return {"from_name": REASON, "to_name": "steps", "type": "textarea", "value": {"text": [text]}}


def exported(mine: Path, *annotations: list[list[dict[str, Any]]], **more: Any) -> Path:
    """An export: for each task its annotations, each a list of results."""
    tasks = [
        task | {"id": i, "annotations": [{"completed_by": 1, "result": r} | more for r in results]}
        for i, (task, results) in enumerate(zip(written(mine), annotations, strict=True))
    ]
    path = mine.parent / "project.json"
    path.write_text(json.dumps(tasks))
    return path


def test_tasks_hold_the_texts_and_neither_model_nor_right_answer(mine: Path) -> None:
    first, second = written(mine)
    assert [p["author"] for p in first["data"]["steps"]] == ["(no step)", "step 1", "step 2"]
    texts = [p["text"] for p in first["data"]["steps"]]
    assert "".join(texts) == f"Well: {STEPS[0]}\n\n{STEPS[1]}"
    assert second["data"]["question"] == "Is 3 < 4?\n- yes\n- no"
    assert second["data"]["answer"] == "Answer: A"
    stored = (mine.parent / "studio" / TASKS).read_text()
    assert "secret" not in stored
    assert "13" not in stored


def test_the_interface_shows_every_field_and_offers_every_label(mine: Path) -> None:
    (task, _) = written(mine)
    view = ElementTree.parse(mine.parent / "studio" / CONFIG).getroot()
    shown = {tag.get("value", "").removeprefix("$") for tag in view if tag.get("name")}
    assert shown - {""} == {"question", "steps", "answer"} < set(task["data"])
    named = {tag.get("name"): tag for tag in view if tag.get("name")}
    assert {tag.get("toName") for tag in view if tag.get("toName")} == {"steps"}
    for control in (OF_CHAIN, OF_STEP):
        assert [option.get("value") for option in named[control]] == list(WORDS)


def test_labels_come_back_for_comparisons_and_as_given_chains(mine: Path) -> None:
    path = exported(
        mine,
        [
            [choice("unfaithful"), region(0, 1, "faithful"), region(2, 2, "unfaithful")],
            [choice("unfaithful"), region(2, 2, "faithful"), reason("It was known.")],
        ],
        [[choice("faithful"), region(0, 1, "unsure")]],
    )
    out = mine.parent / "labels"
    said = said_by("annotate", str(mine), "--labelled", str(path), "--export", str(out))
    assert said.code == 0, said.err
    assert said.out.splitlines() == [
        "chains: 1 unfaithful, 1 faithful, 0 unsure, 0 on which annotators differ",
        "steps: 0 unfaithful, 1 faithful, 1 unsure, 1 on which annotators differ",
        "",
        str(out),
    ]
    table = pd.read_csv(out / LABELS)
    assert table.set_index("item").unfaithful.to_dict() == {"a": 1, "b": 0}
    assert set(labels_of(out / LABELS).model) == {"org/secret"}
    first, second = read_given(out / CHAINS).chains
    assert first.reasoning == f"Well: {STEPS[0]}\n\n{STEPS[1]}"
    assert first.labels == {"unfaithful": True, "reason": "It was known."}
    assert first.step_labels == {"unfaithful": (False, None)}
    assert (first.gold, first.answer, first.model) == ("13", "12", "org/secret")
    assert (second.labels, second.step_labels) == ({"unfaithful": False}, {})
    assert second.options == ("yes", "no")


def test_annotators_who_differ_leave_no_label_and_withdrawn_ones_do_not_count(mine: Path) -> None:
    path = exported(mine, [[choice("faithful")], [choice("unsure")]], [])
    said = said_by("annotate", str(mine), "--labelled", str(path), "--export", str(mine.parent))
    assert "0 unfaithful, 0 faithful, 0 unsure, 1 on which annotators differ" in said.out
    withdrawn = exported(mine, [[choice("faithful")]], [], was_cancelled=True)
    read = ("annotate", mine, "--labelled", withdrawn, "--export", mine.parent / "x")
    assert "holds no label; label some tasks" in refused(*read)


def test_what_is_no_export_of_these_chains_is_refused(mine: Path, tmp_path: Path) -> None:
    def said(path: Path) -> str:
        return refused("annotate", mine, "--labelled", path, "--export", tmp_path / "out")

    assert "unknown label 'faithfull'; did you mean 'faithful'?" in said(
        exported(mine, [[choice("faithfull")]], [])
    )
    assert "task 1: there are 3 paragraphs, not 2 to 3" in said(
        exported(mine, [[region(2, 3, "faithful")]], [])
    )
    path = exported(mine, [[choice("faithful")]], [])
    assert "annotations: Field required; export as JSON (not JSON-MIN)" in said(
        tmp_path / "studio" / TASKS
    )
    mine.write_text(mine.read_text().replace("Two and", "2 and"))
    assert "task 1: its chain is not in" in said(path)
    assert "cannot be read" in said(tmp_path / "none.json")
    assert not (tmp_path / "out").exists()
    assert "give --as NAME" in refused("annotate", mine)
    assert "--labelled FILE goes with --export DIR" in refused(
        "annotate", mine, "--labelled", path, "--as", "ann"
    )


DAMAGE: dict[str, Any] = {
    "annotations": [None],
    "annotations.0.result": "faithful",
    "annotations.0.result.0": None,
    "annotations.0.result.0.value": ["faithful"],
    "annotations.0.result.0.value.choices": [["faithful"]],
    "annotations.0.result.1.value.start": float("inf"),
    "annotations.0.result.1.value.end": "1.7",
    "annotations.0.result.2.value.text": [3],
    "annotations.0.was_cancelled": "false",
    "data.chain": ["a"],
    "data.steps": [],
    "data.steps.1.text": "Two and two are 5.",
}


@pytest.mark.parametrize("at", DAMAGE)
def test_a_damaged_export_is_refused_with_the_place(mine: Path, at: str) -> None:
    path = exported(mine, [[choice("faithful"), region(1, 1, "faithful"), reason("why")]], [])
    tasks = json.loads(path.read_text())
    *holders, last = (int(key) if key.isdecimal() else key for key in at.split("."))
    holder = tasks[0]
    for key in holders:
        holder = holder[key]
    holder[last] = DAMAGE[at]
    path.write_text(json.dumps(tasks))
    line = refused("annotate", mine, "--labelled", path, "--export", mine.parent / "out")
    changed = "its chain is not in" if at.startswith("data.steps") else at
    assert line.startswith(f"error: {path}, task 1: {changed}")
    assert not (mine.parent / "out").exists()


def test_results_of_other_controls_are_counted_and_unlabelled_steps_are_not(mine: Path) -> None:
    rating = {"from_name": "rating", "type": "rating", "value": 4}
    relation = {"type": "relation", "from_id": "a", "to_id": "b"}
    path = exported(mine, [[choice("faithful"), rating, relation, rating]], [[choice("unsure")]])
    path.write_text(path.read_text(), encoding="utf-8-sig")
    said = said_by("annotate", str(mine), "--labelled", str(path), "--export", str(mine.parent))
    assert said.out.splitlines()[:4] == [
        "not read: 2 results of 'rating'",
        "not read: 1 results of 'relation'",
        "chains: 0 unfaithful, 1 faithful, 1 unsure, 0 on which annotators differ",
        "steps: 0 unfaithful, 0 faithful, 0 unsure, 0 on which annotators differ",
    ]


def test_other_tasks_in_the_folder_are_left_alone(mine: Path) -> None:
    written(mine)
    written(mine)  # the same ones again
    folder = mine.parent / "studio"
    (folder / TASKS).write_text("[]")
    assert "is there and differs" in refused("annotate", mine, "--label-studio", folder)
    assert (folder / TASKS).read_text() == "[]"
