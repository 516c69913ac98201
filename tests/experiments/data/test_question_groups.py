"""Groups of questions that are not independent: which are alike, and the user's column."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows, write_yaml

from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.question_groups import Asked, Grouping, grouped
from faithscope.experiments.engine.run import AnyPlan, plan
from faithscope.interp.errors import UserError

RNG = random.Random(0)
WORDS = ["".join(RNG.choices("abcdefgh", k=6)) for _ in range(300)]
QUESTIONS = [" ".join(RNG.choices(WORDS, k=12)) for _ in range(8)]


def of(texts: list[str], **more: bool) -> Grouping:
    return grouped(
        [Asked(f"i{i}", "d", text) for i, text in enumerate(texts)], "data.group", **more
    )


def n_groups(texts: list[str]) -> int:
    """Number of groups with several members."""
    return len(set(of(texts).of.get("d", {}).values()))


@pytest.mark.parametrize(
    "variants",
    [
        ("{}", "{} (variant 2)"),
        ("{} (a)", "{} (b)"),
        ("Please: {}", "{}"),
        ("{}", "{}!", "  {}\n"),
        ("{} 12 apples and 3.5 pears", "{} 7 apples and 1,000 pears"),
        ("Ｑ: {}", "q {}"),
    ],
)
def test_variants_of_a_question_are_one_group(variants: tuple[str, ...]) -> None:
    texts = [form.format(question) for question in QUESTIONS for form in variants]
    assert n_groups(texts) == len(QUESTIONS)
    assert f"{len(QUESTIONS)} groups" in (note := of(texts).notes[-1]) or "8 questions" in note


def test_upper_case_and_another_alphabet_are_read_too() -> None:
    assert n_groups([*(q.upper() for q in QUESTIONS), *QUESTIONS]) == len(QUESTIONS)
    long = "太郎は林檎を三個と蜜柑を五個持っていて友達に二個あげました残りはいくつですか"
    other = "花子の家から学校までは歩いて十五分で図書館までは二十分かかるとき差は何分か"
    assert n_groups([long, f"{long}（二）", other, *QUESTIONS]) == 1


def test_other_questions_stay_apart() -> None:
    assert of(QUESTIONS) == Grouping({}, ())
    signs = ["3 + 4 =", "3 - 4 =", "3 * 4 =", "3 / 4 =", "3 % 4 =", "3 ^ 4 ="]
    assert of(signs) == Grouping({}, ())
    assert n_groups(["", "?", "…", *QUESTIONS]) == 0, "texts without words are not one question"


def test_numbers_of_one_template_are_said_and_stay_apart() -> None:
    """Five groups are the least that give an interval."""
    found = of([f"What is {a} plus {b}?" for a in range(10) for b in range(5)])
    assert found.of == {}
    (note,) = found.notes
    assert note.startswith("d: 50 of 50 questions differ from another only in digits")
    assert "1 group, too few for an interval" in note
    assert "data.group=COLUMN" in note


def test_chains_of_one_question_are_one_group() -> None:
    found = of([q for q in QUESTIONS for _ in range(3)], chains=True)
    assert len(set(found.of["d"].values())) == 8
    assert found.notes == (
        "d: 24 of 24 chains are of a question that others are of, too; the 8 questions are the "
        "unit of intervals and tests",
    )


def test_one_unit_is_said_where_questions_of_several_chains_are_alike() -> None:
    texts = [f"{q} ({x})" for q in QUESTIONS for x in "ab" for _ in range(3)]
    same, alike = of(texts, chains=True).notes
    assert same.endswith("of a question that others are of, too; all are of 16 questions")
    assert "their 8 groups are the unit of intervals and tests" in alike


def test_names_of_groups_do_not_depend_on_other_questions() -> None:
    texts = [f"{q} ({x})" for q in QUESTIONS for x in "ab"]
    assert of(texts[:12]).of["d"].items() <= of(texts).of["d"].items()


def planned(folder: Path, *rows: dict[str, Any], chains: bool = False, **values: Any) -> AnyPlan:
    """The plan of a run that asks some rows, or reads them as chains."""
    path = str(write_rows(folder / "my.jsonl", *rows))
    section = {"traces": {"path": path}} if chains else {"data": {"path": path}, "tasks": ["own"]}
    known = {"name": "x", "out": str(folder), "model": {"name": "bundled:smollm2-135m"}}
    known |= {"probes": ["slrc"], **section}
    for name, value in values.items():
        known[name] = known.get(name, {}) | value if isinstance(value, dict) else value
    return plan(load_config(write_yaml(folder / "x.yaml", known)))


def rows_of(*groups: Any) -> list[dict[str, Any]]:
    """A row of its own question for each group, in the column `Tmpl`."""
    about = {"answer": 1, "reasoning": "It is one of them. So it is 1 in the end."}
    return [
        {"id": f"q{i}", "question": f"{WORDS[3 * i]} {WORDS[3 * i + 1]}?", "Tmpl": group} | about
        for i, group in enumerate(groups)
    ]


def without_reasoning(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "reasoning"} for row in rows]


GROUPS = (3, 3.0, "3", " 3 ", "é", "e\u0301", None, "", float("nan"), "б", "б")
"""Four ways of one number, two of one letter, three empty cells, and a letter twice."""


@pytest.mark.parametrize("chains", [False, True], ids=["questions", "chains"])
def test_a_column_of_the_data_makes_the_groups(tmp_path: Path, chains: bool) -> None:
    rows = rows_of(*GROUPS) if chains else without_reasoning(rows_of(*GROUPS))
    key = "traces" if chains else "data"
    report = planned(tmp_path, *rows, chains=chains, **{key: {"group": "tmpl"}}).input_report
    assert report.groups == {
        "own": {**{f"q{i}": "3" for i in range(4)}, "q4": "é", "q5": "é", "q9": "б", "q10": "б"}
    }
    (note,) = (note for note in report.notes if "groups" in note)
    assert note == (
        f"own: 11 items are of 6 groups by {key}.group, the unit of intervals and tests; 3 have no "
        "value in that column and count by their question"
    )


def test_a_group_changes_no_unit_of_work(tmp_path: Path) -> None:
    rows = rows_of(*GROUPS)
    alone = planned(tmp_path / "a", *rows, chains=True)
    grouped = planned(tmp_path / "a", *rows, chains=True, traces={"group": "tmpl"})
    assert [item.units for item in alone.items] == [item.units for item in grouped.items]


def test_a_path_into_an_object_names_a_group(tmp_path: Path) -> None:
    rows = [{**row, "meta": {"passage": i // 2}} for i, row in enumerate(rows_of(*"abcd"))]
    of = planned(tmp_path, *rows, chains=True, traces={"group": "meta.passage"}).input_report
    assert of.groups == {"own": {"q0": "0", "q1": "0", "q2": "1", "q3": "1"}}


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("tmp", "data.group: .*my.jsonl has no value in a column 'tmp'; did you mean 'Tmpl'"),
        ({"own": "other"}, "data.group: .*my.jsonl has no value in a column 'other'"),
        ({"gsm9k": "x"}, "data.group.gsm9k: unknown task 'gsm9k'"),
        (3, "data.group: must be the name of a column, got 3"),
        ("", "data.group: must be the name of a column, got ''"),
    ],
)
def test_a_column_that_is_not_there_is_refused(tmp_path: Path, group: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        planned(tmp_path, *without_reasoning(rows_of("a", "b")), data={"group": group})


def test_questions_that_are_read_from_no_rows_have_no_column(tmp_path: Path) -> None:
    model = {"name": "planted:faithful"}
    data = {"group": "x", "limit": 3}
    with pytest.raises(ConfigError, match=r"data\.group: none of the tasks planted reads rows"):
        planned(tmp_path, model=model, tasks=["planted"], data=data)


def test_a_group_that_is_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"my\.jsonl, line 2: the group is a list; give a text"):
        planned(tmp_path, *rows_of("a", ["b"]), chains=True, traces={"group": "Tmpl"})


def test_questions_that_a_task_makes_are_not_searched(tmp_path: Path) -> None:
    model = {"name": "planted:faithful"}
    made = planned(tmp_path, model=model, tasks=["planted"], data={"path": None, "limit": 40})
    assert made.input_report.groups == {}
