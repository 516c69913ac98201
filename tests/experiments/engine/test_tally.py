"""No run ends quietly: how many items are measured, why the others are not, what was not used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bad_input import refused
from run_files import write_rows, write_yaml
from tiny_models import saved, tiny

from faithscope.experiments.cli import execute
from faithscope.experiments.config import shipped
from faithscope.experiments.config.load import load_config
from faithscope.experiments.config.study import Stage, by_name, declared
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.engine.run import plan
from faithscope.experiments.engine.traces.config import TracesConfig

PENS = {
    "question": "Ann has 3 boxes of 4 pens and loses 2. How many are left?",
    "reasoning": "3 boxes of 4 pens are 12 pens. She loses 2 of them, so 10 are left.",
}
SHORT = {"question": "What is 3 + 4?", "reasoning": "3 and 4. It is 7."}
GREEN = {
    "question": "What is green?",
    "reasoning": "Grass is a plant that is green. Leaves are green, too, most of the year.",
}
SOLVED = {
    "generator": "a model",
    "problem": "What is half of 9?",
    "final_answer_correct": True,
    "label": -1,
}


def kinds(rows: Sequence[dict[str, Any]]) -> list[str | None]:
    read = read_chains(rows)
    return [question_of_chain(chain, read.file, read.format).kind for chain in read.chains]


@pytest.mark.parametrize(
    ("known", "kind"),
    [
        ({"gold": "10"}, "number"),
        ({"answer": "10"}, "number"),
        ({"answer": "The answer is $10.50."}, "number"),
        ({"answer": "10 pens"}, "number"),
        ({"gold": "ten", "answer": "10"}, None),
        ({"gold": "the revolution of 1789"}, None),
        ({"answer": "10 or 11"}, None),
        ({"answer": "x^2 + 1"}, None),
        ({}, None),
    ],
)
def test_a_chain_without_options_is_answered_by_a_number_where_its_answer_is_one(
    known: dict[str, Any], kind: str | None
) -> None:
    assert kinds([PENS | known]) == [kind]


@pytest.mark.parametrize(
    ("name", "last", "kind"),
    [
        ("gsm8k-1", "So it is 4.5.", "number"),
        ("math-1", r"So it is \boxed{4.5}.", "number"),
        ("math-1", r"So it is \boxed{\frac{9}{2}}.", "number"),
        ("olympiadbench-1", r"So it is \boxed{x^2 + 1}.", None),
        ("omnimath-1", "So there are 4 of them and 5.", None),
    ],
)
def test_a_solved_problem_is_answered_by_the_number_that_it_marks(
    name: str, last: str, kind: str | None
) -> None:
    steps = ["Half of 9 is 9 over 2.", last]
    assert kinds([SOLVED | {"id": name, "steps": steps}]) == [kind]


def dry(capsys: pytest.CaptureFixture[str], config: object, *overrides: str) -> tuple[int, str]:
    arguments = [x for override in overrides for x in ("--set", override)]
    code = execute(["run", str(config), *arguments, "--dry-run"])
    captured = capsys.readouterr()
    return code, captured.err + captured.out


def given(folder: Path, *rows: dict[str, Any], **values: Any) -> Path:
    path = write_rows(folder / "chains.jsonl", *rows)
    known = {
        "name": "given",
        "out": str(folder / "runs"),
        "model": {"name": "bundled:smollm2-135m"},
        "traces": {"path": str(path)},
        "probes": ["slrc", "attention"],
        "slrc": {"framings": ["prefix"], "readings": ["scored"]},
        "report": {"bootstrap": 20},
    }
    return write_yaml(folder / "given.yaml", known | values)


def test_what_will_be_left_out_is_said_before_the_run_with_the_key_that_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [PENS | {"answer": "10"}, SHORT | {"answer": "7"}, GREEN | {"answer": "leaves"}]
    path = given(tmp_path, *(row | {"note": "mine"} for row in rows))
    code, said = dry(capsys, path)
    assert code == 0
    assert "2 of 3 items can be measured; left out: 1 because fewer than 2 steps" in said
    assert "slrc: 1 of 2 can be measured; left out: 1 because the kind of its answers" in said
    assert "columns not used: note (" in said
    assert "to change that: --set steps.min_chars=8; --set traces.kind=number" in said
    _, helped = dry(capsys, path, "steps.min_chars=8", "traces.kind=number")
    assert "3 of 3 items can be measured\n" in helped
    assert "left out" not in helped


def test_chains_that_the_default_model_reads_say_so_in_the_first_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"traces.path={write_rows(tmp_path / 'chains.jsonl', PENS | {'model': 'org/w'})}"
    _, said = dry(capsys, "mechanistic", path, f"out={tmp_path}")
    (first,) = (line for line in said.splitlines() if "items can be measured" in line)
    assert "the chains are by org/w, and are read by bundled:smollm2-135m, the default" in first
    _, said = dry(capsys, "mechanistic", path, f"out={tmp_path}", "model.name=bundled:smollm2-135m")
    assert "are read by" not in said


def test_a_dry_run_knows_what_a_measure_checks_before_it_asks_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    otter = {"options": ["owl", "otter"], "answer": "B", "reasoning": PENS["reasoning"]}
    rows = [PENS | {"answer": "10"}, GREEN | otter, GREEN | otter | {"model": "w"}]
    asked = (
        "probes=[hints,mediation,resample,prefilled_reasoning]",
        "traces.writers={w: bundled:smollm2-135m}",
    )
    path = given(tmp_path, *rows)
    code, said = dry(capsys, path, *asked)
    assert "1 of 3 items can be measured; left out: 2 because another model wrote" in said
    assert "prefilled_reasoning: 0 of 1 can be measured; left out: 1 because no part of" in said
    assert "traces.writers={WRITER: MODEL}, or a column model" in said
    assert code == 3
    # their work is not counted either
    assert not any(line.split()[1:2] == ["prefilled_reasoning"] for line in said.splitlines())


@pytest.mark.in_time(1)
@pytest.mark.parametrize(
    ("reasoning", "helps"),
    [
        ("三盒每盒四支笔，共十二支。她丢了其中的两支笔。", None),
        ("箱は3つあります。合計は12本です。", None),
        ("十支笔。一共二支。", 10),
    ],
)
def test_the_forecast_takes_a_step_to_be_as_long_as_its_script_makes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reasoning: str, helps: int | None
) -> None:
    model = saved(tiny("llama", max_position_embeddings=8192), tmp_path / "plain")
    row = {"question": "还剩几支？", "reasoning": reasoning, "gold": "10"}
    path = given(tmp_path, row, model={"name": model}, probes=["attention"])
    forecast = plan(load_config(path)).forecast()
    assert forecast.nothing_measured == (helps is not None)
    assert execute(["run", str(path)]) == (3 if helps else 0)
    said = capsys.readouterr().err
    for line in forecast.lines():
        assert line.replace("can be measured", "measured") in said
    if helps:
        assert f"to change that: --set steps.min_chars={helps}\n" in said
        _, again = dry(capsys, path, f"steps.min_chars={helps}", "name=again")
        assert "1 of 1 items can be measured" in again


def test_branches_are_not_promised_of_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = given(tmp_path, SHORT | {"answer": "7"}, GREEN | {"answer": "leaves"})
    code, said = dry(capsys, path, "probes=slrc")
    assert code == 3
    assert "0 of 2 items can be measured" in said
    (whole,) = (line for line in said.splitlines() if line.startswith("total"))
    assert whole.split()[-2:] == ["0", "0"]


@pytest.mark.slow
@pytest.mark.takes("a run with its outputs")
def test_the_forecast_is_what_the_run_then_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = saved(tiny("llama", max_position_embeddings=8192), tmp_path / "plain")
    rows = [PENS | {"answer": "10"}, SHORT | {"answer": "7"}, GREEN | {"answer": "leaves"}]
    # a model that was never trained has little probability on any answer
    report = {"bootstrap": 20, "least_label_mass": 0}
    probes = ["slrc", "attention", "hints", "interchange", "prefilled_reasoning", "filler"]
    path = given(tmp_path, *rows, model={"name": model}, report=report, probes=probes)
    forecast = plan(load_config(path)).forecast()
    assert "hints, interchange: 0 of 2" in "\n".join(forecast.lines())
    assert execute(["run", str(path)]) == 3
    captured = capsys.readouterr()
    assert captured.out.strip() == str(tmp_path / "runs" / "given")
    for line in forecast.lines():
        assert f"note: {line}" in captured.err
        assert line.replace("can be measured", "measured") in captured.err
    page = (tmp_path / "runs" / "given" / "report.html").read_text("utf-8")
    first, *rest = [line.replace("can be measured", "measured") for line in forecast.lines()]
    assert page.index("<h1>") < page.index(f"<li>{first}</li>") < page.index("<nav")
    assert all(f"<li>{line}</li>" in page for line in rest)
    assert any(
        line.startswith("own: the right answer is known of 0 of 3 questions; it") for line in rest
    )
    # the same command again has nothing to do, and says it again
    assert execute(["run", str(path)]) == 3
    assert first in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_that_measures_nothing_ends_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = saved(tiny("llama", max_position_embeddings=8192), tmp_path / "plain")
    path = given(tmp_path, SHORT, GREEN, model={"name": model}, probes=["slrc"])
    assert execute(["run", str(path)]) == 3
    said = capsys.readouterr().err
    assert "0 of 2 items measured; left out: 1 because" in said
    assert execute(["run", str(path)]) == 3
    assert execute(["merge", str(tmp_path / "runs" / "given")]) == 3
    assert "0 of 2 items measured" in capsys.readouterr().err


@pytest.mark.slow
def test_reasons_of_a_measure_are_in_its_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["tasks=planted", "model.name=planted:hint", "data.limit=1", f"out={tmp_path}"]
    asked += ["probes=[slrc,direct]", "slrc.framings=prefix", "slrc.readings=scored"]
    assert execute(["run", "slrc", *(x for o in asked for x in ("--set", o))]) == 3
    line = "direct: 0 of 1 measured; left out: 1 because task without direct prompts"
    assert line in capsys.readouterr().err
    page = (tmp_path / "slrc" / "report.html").read_text("utf-8")
    assert f"<li>{line}</li>" in page


def own(folder: Path, n: int = 5) -> Path:
    rows = [
        {"question": f"What is {i} + 4?", "answer": str(i + 4), "topic": "sums"} for i in range(n)
    ]
    return write_rows(folder / "my.jsonl", *rows)


@pytest.mark.parametrize("name", [n for n in shipped.names() if "/" not in n])
def test_a_shipped_limit_leaves_out_no_question_of_ones_own(name: str) -> None:
    config = load_config(name)
    if isinstance(config, TracesConfig) and name not in ("planted", "faithfulness"):
        assert config.data.limit_of("own") is None


def test_a_copy_of_a_shipped_config_asks_what_that_asks_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["tasks=[own]", f"data.path={own(tmp_path)}"]
    (copy,) = shipped.copy_to(Path("configs"), ["slrc"])
    for config in ("slrc", "mechanistic", str(copy)):
        code, said = dry(capsys, config, *asked)
        assert code == 0
        assert "5 of 5 items can be measured" in said
        assert "columns not used: topic (" in said
        assert "your copy" not in said
    _, said = dry(capsys, "slrc", *asked, "data.limit=1")
    assert "1 of 5 rows of" in said
    assert "(own, data.limit=1)" in said
    assert "to change that: --set data.limit=null" in said
    _, said = dry(capsys, "slrc", *asked, "data.limit={own: 2, default: 1}")
    assert "2 of 5 rows of" in said
    copy.write_text(copy.read_text().replace("own: null", "own: 3"))
    _, said = dry(capsys, copy, *asked)
    assert "3 of 5 rows of" in said
    _, said = dry(capsys, "slrc", *asked)
    assert "note: this is the shipped config slrc; your copy is run by its path, configs/" in said


@pytest.mark.parametrize(
    ("asked", "remedy"),
    [
        (["data.path={mine}"], "--set tasks=[own]"),
        (["data.path=nowhere.csv"], "--set tasks=[own]"),
        (["data.path.gsm8k={mine}"], "--set tasks=[gsm8k]"),
        (["data.path.own={mine}", "tasks=[multi_feature]"], "--set tasks=[own]"),
    ],
)
def test_a_path_that_no_task_reads_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: list[str], remedy: str
) -> None:
    mine = own(tmp_path)
    code, said = dry(capsys, "chains", *(a.format(mine=mine) for a in asked))
    assert code == 2
    assert "error: data.path: none of the tasks " in said
    assert remedy in said


def test_other_tasks_keep_the_shipped_limit(tmp_path: Path) -> None:
    asked = ["tasks=[single_cue, own]", f"data.path.own={own(tmp_path)}", f"out={tmp_path}"]
    config = load_config("slrc", asked)
    assert len([i for i in plan(config).items if i.task == "single_cue"]) == 1
    assert len([i for i in plan(config).items if i.task == "own"]) == 5


def test_columns_of_right_answers_are_named_where_the_layout_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = SOLVED | {"id": "gsm8k-1", "steps": ["Half of 9 is 9 over 2.", "So it is 4.5 in all."]}
    _, said = dry(capsys, given(tmp_path, row))
    assert ": the right answer is known of 0 of 1 questions\n" in said
    _, said = dry(capsys, given(tmp_path, PENS))
    assert (
        "\nown: the right answer is known of 0 of 1 questions; it is read from gold, target, "
        in said
    )


def test_a_limit_of_chains_and_writers_that_do_not_read_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        PENS
        | {"id": str(i), "gold": "10", "model": "bundled:smollm2-135m" if i < 4 else "org/other"}
        for i in range(6)
    ]
    path = given(tmp_path, *rows)
    _, said = dry(capsys, path, "traces.limit=2")
    assert "2 of 6 chains of" in said
    assert "to change that: --set traces.limit=null" in said
    _, said = dry(capsys, path, "traces.read_by=writer")
    assert "0 of 2 chains by org/other on own" in said
    assert "to change that: --set traces.read_by=all" in said


def test_judges_say_which_chains_have_no_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_rows(tmp_path / "c.jsonl", PENS, {"question": "?", "reasoning": "Seven."})
    chains = f"traces.path={path}"
    code, said = dry(capsys, "judge", chains, f"out={tmp_path}")
    assert code == 0
    assert "left out" in said
    assert "there is nothing in it to ask about" in said
    path.write_text(json.dumps({"question": "?", "reasoning": "Seven."}))
    code, _ = dry(capsys, "judge", chains, f"out={tmp_path}")
    assert code == 3


def test_short_generations_are_allowed_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = dry(capsys, "slrc", "tasks=single_cue", "generation.max_new_tokens=64")
    assert code == 0
    assert "generation.max_new_tokens=64: reasoning that is longer is cut off" in said
    assert "at least 1" in refused("run", "slrc", "--set", "generation.max_new_tokens=0")


def test_a_dry_run_says_which_device_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = dry(capsys, "slrc", "tasks=single_cue", "model.device=xpu")
    assert code == 0
    assert "note: model.device: 'xpu' is not usable on this machine" in said


def test_a_stage_that_a_study_does_not_declare_is_named() -> None:
    stages = by_name(Stage("read", measures=False), Stage("judged", ("read",)))
    assert declared(stages, "judged.a-judge").needs == ("read",)
    with pytest.raises(ValueError, match=r"no stage 'told' is declared.*read, judged"):
        declared(stages, "told")
