"""RFEval's released rows, as the hub, as JSON, as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rf_data import SHARED, row, write

from faithscope.experiments.config.load import load_config
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.items import TASKS, CodeTests, TestCase
from faithscope.experiments.studies.rfeval.plan import RfPlan, plan
from faithscope.interp.errors import UserError


def code(**content: Any) -> dict[str, Any]:
    return row(
        "code_generation",
        options=None,
        answer=None,
        content={"source": "livecodebench_v6"} | content,
    )


@pytest.mark.parametrize(
    "options",
    [["the buyer", "the seller"], "A: the buyer\nB: the seller", "A) the buyer\n B) the seller"],
)
@pytest.mark.parametrize("answer", ["B: the seller", "B", "the seller", "B: The  Seller"])
def test_options_are_a_list_or_lettered_lines(tmp_path: Path, options: Any, answer: str) -> None:
    (item,), _ = read_rfeval(
        write(tmp_path / "x.jsonl", row(options=options, answer=answer)), ["legal_decision"]
    )
    assert item.options == ("the buyer", "the seller")
    assert (item.answer, item.gold) == ("B", "B: the seller")
    assert item.lettered == "A: the buyer\nB: the seller"
    assert item.id == "legal_decision/1"


def test_an_option_may_run_over_lines_and_hold_letters(tmp_path: Path) -> None:
    options = "A: first\nand on\nB: Figure C: second"
    path = write(tmp_path / "x.json", row(options=options, answer="A"))
    (item,), _ = read_rfeval(path, ["legal_decision"])
    assert item.options == ("first\nand on", "Figure C: second")


def test_a_folder_has_a_file_for_each_task_and_limits_hold_for_each(tmp_path: Path) -> None:
    write(tmp_path / "data" / "legal_decision.json", row(), row(id=2), row(id=3))
    numbers = [row("mathematical_reasoning", id=i, options=None, answer="42") for i in (1, 2, 3)]
    for made in numbers:
        del made["task"]
    write(tmp_path / "more" / "mathematical_reasoning.jsonl", *numbers)
    tasks = ["mathematical_reasoning", "legal_decision"]
    items, sources = read_rfeval(tmp_path, tasks, limit=2)
    assert [item.id for item in items] == [f"{task}/{i}" for task in tasks for i in (1, 2)]
    assert [(s.name, s.n_items) for s in sources] == [
        ("mathematical_reasoning.jsonl", 2),
        ("legal_decision.json", 2),
    ]
    assert items[0].answer == items[0].gold == "42"
    assert not items[0].letters


def test_the_tests_of_code(tmp_path: Path) -> None:
    functional = [{"input": "[1]\n2", "output": "3", "testtype": "functional"}]
    path = write(
        tmp_path / "code_generation.jsonl",
        code(public_test_cases=json.dumps([{"input": "1", "output": "2", "testtype": "stdin"}])),
        code(public_test_cases=functional) | {"id": 2},
        code(code_context="def test_execution(solution): ...", source="ds1000") | {"id": 3},
        code(public_test_cases="[]") | {"id": 4},
    )
    items, _ = read_rfeval(path, ["code_generation"])
    assert [item.tests for item in items] == [
        CodeTests("stdin", (TestCase("1", "2"),)),
        CodeTests("functional", (TestCase("[1]\n2", "3"),)),
        CodeTests("ds1000", context="def test_execution(solution): ..."),
        None,
    ]
    assert {item.answer for item in items} == {""}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"options": "yes or no"}, "has one option"),
        ({"options": ["only"]}, "has one option"),
        ({"options": 3}, "is a int"),
        ({"answer": "C: the judge"}, "none of the options A"),
        ({"answer": "A: the seller"}, r"none of the options A \(the buyer\)"),
        ({"answer": None}, "no column 'answer'"),
        ({"r_prime": " "}, "'r_prime' is empty"),
        ({"content": None}, "'content' is no object"),
        ({"task": "legal_decisions"}, "did you mean 'legal_decision'"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    path = write(tmp_path / "x.jsonl", row(), row(id=2) | changes)
    with pytest.raises(UserError, match=said) as raised:
        read_rfeval(path, ["legal_decision"])
    assert "x.jsonl, line 2" in str(raised.value)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "legal_decision.jsonl", row())
    with pytest.raises(UserError, match=r"no paper_review\.json or .* it holds legal_decision"):
        read_rfeval(tmp_path, ["legal_decision", "paper_review"])
    with pytest.raises(UserError, match="no item of task 'paper_review'"):
        read_rfeval(path, ["legal_decision", "paper_review"])
    with pytest.raises(UserError, match="no such file or folder"):
        read_rfeval(tmp_path / "none")
    with pytest.raises(UserError, match="did you mean 'paper_review'"):
        read_rfeval(path, ["paper_reviews"])  # pyright: ignore[reportArgumentType]
    write(path, row(), row())
    with pytest.raises(UserError, match="is that of"):
        read_rfeval(path, ["legal_decision"])


def test_from_the_hub_through_load_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    repository = tmp_path / "RFEval"
    write(repository / "data" / "legal_decision.json", row(), row(id="2"))
    # Arrow takes no column that is a list in one row and a text in another
    mixed = [
        row("context_understanding", id=i, options=o, answer="A", content=c)
        for i, o, c in (
            ("1", ["yes", "no"], {"source": "s", "context": {"contexts": ["p", "q"]}}),
            ("2", "A: yes\nB: no", {"source": "s", "context": "p"}),
        )
    ]
    write(repository / "data" / "context_understanding.json", *mixed)
    configs = "".join(
        f"- config_name: {task}\n  data_files: data/{task}.json\n"
        for task in ("legal_decision", "context_understanding")
    )
    (repository / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", "utf-8")
    items, sources = read_rfeval(
        None, ["legal_decision", "context_understanding"], repository=str(repository)
    )
    assert [item.id for item in items] == [
        *("legal_decision/1", "legal_decision/2"),
        *("context_understanding/1", "context_understanding/2"),
    ]
    assert items[2].context == "p\nq"
    assert sources[0].name == f"{repository}/legal_decision"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real rows are not beside this checkout")
def test_the_real_rows() -> None:
    items, sources = read_rfeval(SHARED, [task for task in TASKS if task != "paper_review"])
    assert len(items) == 719
    assert len({item.id for item in items}) == 719
    assert {s.n_items for s in sources} == {119, 120}
    code = [item for item in items if item.task == "code_generation"]
    kinds = [item.tests.kind if item.tests else None for item in code]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "stdin": 89,
        "functional": 12,
        "ds1000": 17,
        None: 1,
    }
    for item in items:
        assert item.r_prime
        assert item.task == "code_generation" or item.answer
        assert not item.options or item.answer in item.letters
    context = [item for item in items if item.task != "legal_decision" and item.context]
    assert len(context) == 360


def grouped(path: Path, *more: str) -> RfPlan:
    local = ["model.name=[bundled:smollm2-135m]", "judge.model=[bundled:smollm2-135m]"]
    local += ["generate.backend=here", "judge.temperature=0.0", "tests.run=never"]
    made = plan(
        load_config("paper/rfeval", [*local, "report.exclude=[]", *more, f"data.path={path}"])
    )
    assert isinstance(made, RfPlan)
    return made


def test_a_column_names_the_group_of_an_item(tmp_path: Path) -> None:
    subjects = ("buyer", "seller", "court", "tenant", "heir", "guest")
    rows = [
        row(id=i, question=f"Who of all must the {who} of this house now pay?", template=i // 2)
        for i, who in enumerate(subjects)
    ]
    path = write(tmp_path / "x.jsonl", *rows[:-1], rows[-1] | {"template": None})
    report = grouped(path, "data.group=template").input_report
    assert report.groups == {"rfeval": {f"legal_decision/{i}": str(i // 2) for i in range(4)}}
    (note,) = report.notes
    assert "6 items are of 4 groups by data.group" in note
    assert "1 has no value in that column and counts by its question" in note
    assert grouped(path).input_report.groups == {}
    with pytest.raises(UserError, match=r"data\.group: .* no value in a column 'templat'; did"):
        grouped(path, "data.group=templat")
    written = [f"counterfactual.{key}=api:openai/o3" for key in ("writer", "validator")]
    with pytest.raises(UserError, match=r"data\.group: r′ is written for these items"):
        grouped(path, "data.group=template", "counterfactual.written=true", *written)
