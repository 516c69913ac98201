"""The packaged prompts, prompts of one's own, and items put into them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

import faithscope.experiments.engine.forms as forms_of_traces
import faithscope.experiments.studies.c2faith.prompts as prompts
from faithscope.experiments.engine.forms.lines import as_numbered_lines
from faithscope.experiments.studies.c2faith.benchmark.items import Chain, CoverageItem, causal_item
from faithscope.experiments.studies.c2faith.prompts import acausal_prompt, as_files, judge_forms
from faithscope.experiments.studies.c2faith.prompts_of_items import ask_of
from faithscope.interp.errors import UserError

PACKAGED = {
    path.stem: path
    for package in (prompts, forms_of_traces)
    for path in Path(package.__file__).parent.glob("*.yaml")
}
CHAIN = Chain("c", r"What is $\frac{1}{2} + x$?", ("a {0}", "b", "c", "d", "e"))
BROKEN = causal_item(CHAIN, 2, "C", "rule:numeric")
CUT = CoverageItem("c.coverage-0.5", "c", "P {q}", ("a", "d", "e"), (1, 2), 0.5, 3, tuple("abcde"))


def test_every_task_has_the_papers_form_and_others() -> None:
    forms = judge_forms()
    assert set(forms) == {name for name in PACKAGED if name.startswith("c2_")} - {"c2_acausal"}
    assert {n for n, f in forms.items() if not f.ours} == {
        "c2_detection",
        "c2_localisation",
        "c2_coverage",
        "c2_coverage_reference",
    }
    for task in ("detection", "localisation", "coverage"):
        assert sum(f.task == task and f.ours for f in forms.values()) >= 2
    assert {f.scale for f in forms.values() if f.task.startswith("coverage")} == {
        "0-4",
        "0-9",
        "0-100",
    }
    assert all("C2-Faith (arXiv 2603.05167)" in f.source for f in forms.values() if not f.ours)


def test_the_shipped_config_names_every_form_that_may_be_asked() -> None:
    shipped = (Path(__file__).parents[4] / "configs/c2faith.yaml").read_text("utf-8")
    _, _, after = shipped.partition("\nforms: ")
    named = re.findall(r"c2_[a-z0-9_]+\b(?!\.csv)", after.partition("\nreference: ")[0])
    asked = {n for n, f in judge_forms().items() if f.task != "coverage_reference"}
    assert sorted(named) == sorted(asked)


def test_reasoning_comes_before_the_verdict_and_the_cue_opens_the_verdict() -> None:
    for name, task_form in judge_forms().items():
        form = task_form.form
        names = [f.name for f in form.fields]
        texts = [n for n, f in zip(names, form.fields, strict=True) if f.kind == "text"]
        assert names[: len(texts)] == texts, name
        assert form.cue == f'{{"{form.verdict}": '
        assert json.loads(f"{form.cue}1}}") == {form.verdict: 1}
        # what is asked for in words is what is to be given back
        assert all(n in form.template for n in names), name


def test_all_coverage_scales_share_the_papers_rubric() -> None:
    forms = judge_forms()
    for scale, anchors in {"": "0 1 2 3 4", "_0_9": "0 1-3 4-5 6-8 9"}.items():
        template = forms[f"c2_coverage{scale}"].form.template
        assert re.findall(r"(?m)^([\d-]+): ", template) == anchors.split()
    for scale in ("", "_0_9", "_0_100"):
        judged = forms[f"c2_coverage{scale}"].form.template
        reference = forms[f"c2_coverage_reference{scale}"].form.template
        rubric = judged.partition("<TASK>")[0]
        assert reference.partition("<TASK>")[0] == rubric
        assert rubric.count(f"/{(scale or '_0_4').rpartition('_')[2]}.") == 4
        words = re.sub(r"[\d-]+", "", rubric)
        assert words == re.sub(r"[\d-]+", "", forms["c2_coverage"].form.template.split("<TASK>")[0])


def test_detection_shows_what_precedes_and_the_step() -> None:
    form = judge_forms()["c2_detection"]
    asked = ask_of(BROKEN, form, "perturbed")
    assert (asked.id, asked.range) == ("c.causal.perturbed", range(0, 2))
    assert 'Context (Previous steps):\na {0}\nb\n\nStep to evaluate: "C"\n' in asked.prompt
    control = ask_of(BROKEN, form, "control")
    assert control.prompt == asked.prompt.replace('"C"', '"c"')
    assert control.id != asked.id


def test_localisation_numbers_the_full_chain_from_zero() -> None:
    form = judge_forms()["c2_localisation"]
    asked = ask_of(BROKEN, form, "perturbed")
    assert asked.range == range(-1, 5)
    assert "[Step 0] a {0}\n[Step 1] b\n[Step 2] C\n[Step 3] d\n[Step 4] e\n" in asked.prompt
    assert "[Step 2] c\n" in ask_of(BROKEN, form, "control").prompt


def test_numbers_and_line_breaks_of_a_step_are_not_taken_for_another_step() -> None:
    steps = ("a\n\nb", "Step 3: c\nStep 4: d", "1. e")
    shown = "[Step 0] a\n\n    b\n[Step 1] Step 3: c\n    Step 4: d\n[Step 2] 1. e"
    assert as_numbered_lines(steps) == shown
    assert as_numbered_lines((*steps, "as [step 1] says")).startswith("<Step 0> a")
    with pytest.raises(UserError, match=r"step 0 holds '\[Step N\]', and others every other mark"):
        as_numbered_lines(("[Step 1]", "<Step 2>", "{Step 3} and #Step 0#"))


def test_every_real_chain_can_be_numbered() -> None:
    path = Path(__file__).resolve().parents[5] / "shared/data/prm800k/subset.jsonl"
    if not path.is_file():
        pytest.skip("the real PRM800K rows are not beside this checkout")
    chains = [json.loads(line)["steps"] for line in path.read_text().splitlines()]
    assert any("\n" in step for steps in chains for step in steps)
    for steps in chains:
        marks = [
            line
            for line in as_numbered_lines(steps).split("\n")
            if re.match(r"\[Step \d+\] ", line)
        ]
        assert len(marks) == len(steps)


def test_coverage_shows_the_rest_and_the_reference_what_is_missing() -> None:
    forms = judge_forms()
    asked = ask_of(CUT, forms["c2_coverage"], None)
    assert asked.range == range(0, 5)
    assert "<TASK>\nP {q}\n</TASK>\n<EXPLANATION>\na\nd\ne\n</EXPLANATION>" in asked.prompt
    assert asked.prompt.endswith('"judge_final_score": 0-4}')
    told = ask_of(CUT, forms["c2_coverage_reference"], None).prompt
    assert "EXPLANATION>\na\nb\nc\nd\ne\n</ORIGINAL" in told
    assert "<REMOVED STEPS>\nb\nc\n</REMOVED STEPS>" in told
    assert ask_of(CUT, forms["c2_coverage_0_100"], None).range == range(0, 101)
    with pytest.raises(ValueError, match="'c2_detection' is of task 'detection'"):
        ask_of(CUT, forms["c2_detection"], None)


def test_every_form_can_be_asked() -> None:
    for task_form in judge_forms().values():
        of_chain = task_form.task in ("detection", "localisation")
        asked = ask_of(BROKEN, task_form, "perturbed") if of_chain else ask_of(CUT, task_form, None)
        assert asked.range
        shown = asked.prompt.replace(CUT.problem, "")
        assert not re.search(r"\{[a-z_]+\}", shown), task_form.form.name


def edited(folder: Path, name: str, to: str | None = None, **changes: object) -> Path:
    values = yaml.safe_load(PACKAGED[name].read_text("utf-8"))
    values = {k: v for k, v in {**values, **changes}.items() if v is not None}
    path = folder / f"{to or name}.yaml"
    path.write_text(yaml.safe_dump(values), "utf-8")
    return path


def test_a_folder_of_ones_own_takes_the_place_of_a_prompt_or_adds_one(tmp_path: Path) -> None:
    edited(tmp_path, "c2_detection", template="{question} {context} then {step}?", ours=True)
    edited(tmp_path, "c2_detection", to="c2_detection_mine", cue="")
    edited(tmp_path, "c2_acausal", template="Break {target_step} after {context}")
    forms, before = judge_forms(tmp_path), judge_forms()
    assert set(forms) == {*before, "c2_detection_mine"}
    asked = ask_of(BROKEN, forms["c2_detection"], "perturbed")
    assert asked.prompt == r"What is $\frac{1}{2} + x$? a {0}" + "\nb then C?"
    assert forms["c2_detection"].form.sha256 != before["c2_detection"].form.sha256
    assert forms["c2_coverage"] == before["c2_coverage"]
    mine = acausal_prompt(tmp_path)
    assert mine.fill(target_step="t", context="c", question="q") == "Break t after c"
    assert mine.sha256 != acausal_prompt().sha256


WRONG: list[tuple[str, dict[str, object], str]] = [
    (
        "c2_detection",
        {"template": "{context} {stpe}"},
        r"unknown place \{stpe\}.*did you mean 'step'",
    ),
    ("c2_detection", {"template": "{step}"}, r"no \{context\}: it would not be shown"),
    ("c2_detection", {"template": '{"final_score": 1} {context} {step}'}, "is no place"),
    ("c2_detection", {"template": "{context} {step} }"}, "write {{ and }}"),
    ("c2_detection", {"verdict": "score"}, "verdict 'score' is no integer, label"),
    ("c2_detection", {"verdikt": "score"}, "verdikt: .*did you mean 'verdict'"),
    ("c2_detection", {"template": None}, "template: Field required"),
    ("c2_detection", {"task": "detecting"}, "task: "),
    (
        "c2_detection",
        {"fields": [{"name": "final_score", "kind": "integer", "low": 0, "high": 5}]},
        "give high: 1",
    ),
    (
        "c2_localisation",
        {"fields": [{"name": "unfaithful_step_index", "kind": "integer", "low": 0, "high": 9}]},
        "goes from 0 to 9; a localisation verdict has low: -1 and no high",
    ),
    (
        "c2_coverage",
        {"fields": [{"name": "judge_final_score", "kind": "integer", "low": 0, "high": 4}] * 2},
        "field 'judge_final_score' is there twice",
    ),
    ("c2_acausal", {"verdict": "x"}, "plain text"),
]


@pytest.mark.parametrize(("name", "changes", "told"), WRONG)
def test_a_prompt_that_cannot_be_used_is_named(
    name: str, changes: dict[str, object], told: str, tmp_path: Path
) -> None:
    path = edited(tmp_path, name, **changes)
    read = acausal_prompt if name == "c2_acausal" else judge_forms
    with pytest.raises(UserError, match=told) as caught:
        read(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        judge_forms(tmp_path / "none")
    with pytest.raises(UserError, match=r"holds no \.yaml file"):
        judge_forms(tmp_path)
    edited(tmp_path, "c2_detection", to="c2_detecton")
    with pytest.raises(UserError, match="did you mean 'c2_detection'"):
        judge_forms(tmp_path)
    (tmp_path / "c2_detecton.yaml").unlink()
    (tmp_path / "c2_coverage.yaml").write_text("a: [")
    with pytest.raises(UserError, match=r"c2_coverage\.yaml: not YAML"):
        judge_forms(tmp_path)
    (tmp_path / "c2_coverage.yaml").write_text("- a")
    with pytest.raises(UserError, match="holds a list"):
        judge_forms(tmp_path)


def test_forms_written_to_a_folder_are_read_back_as_they_were(tmp_path: Path) -> None:
    forms = judge_forms()
    for name, text in as_files(forms).items():
        (tmp_path / name).write_text(text, "utf-8")
    assert judge_forms(tmp_path) == forms
    assert (tmp_path / "c2_detection.yaml").is_file()
