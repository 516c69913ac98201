"""What a run of C2-Faith refuses, says or takes as it is, before it costs anything."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from bad_input import refused, said_by
from c2_runs import config, unshown

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.units import read_unit
from faithscope.experiments.studies.c2faith.page import examples
from faithscope.experiments.studies.c2faith.results import results
from faithscope.interp.errors import UserError


def test_all_judges_that_lack_a_key_are_told_at_once(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    for name in ("OPENAI_API_KEY", "TOGETHER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    judges = [model, "api:openai/gpt-4.1", "api:together/a/b"]
    path = config(tmp_path, {"model": judges, "readings": ["scored"]}, forms="c2_coverage")
    said = said_by("run", str(path))
    assert (said.code, said.out) == (2, "")
    told = said.err
    assert re.search(r"model 'openai/gpt-4.1': .*No OPENAI_API_KEY", told)
    assert re.search(r"model 'together/a/b': .*No TOGETHER_API_KEY", told)
    assert "loading" not in told
    assert not list((tmp_path / "runs/c2/records").iterdir())


def test_a_layer_that_a_model_has_not_is_told_at_load(tmp_path: Path, model: str) -> None:
    inside = {"model": model, "signals": ["surprisal", "information_flow"], "layer": 99}
    judge = {"model": model, "readings": ["scored"]}
    path = config(tmp_path, judge, forms="c2_coverage", internals=inside)
    with pytest.raises(UserError, match=r"internals\.layer: 99 is none of .*/plain, which has 3;"):
        run(load_config(path))
    assert not list((tmp_path / "runs/c2/records").iterdir())


@pytest.mark.slow
def test_prompts_may_be_moved_and_a_changed_one_is_told(
    tmp_path: Path, model: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, {"model": model, "readings": ["scored"]}, forms="c2_coverage")
    run_dir = run(load_config(path)).run_dir
    records = (run_dir / "records/judge_scored.main.jsonl").read_bytes()
    moved = tmp_path / "elsewhere"
    shutil.move(tmp_path / "prompts", moved)
    capfd.readouterr()
    run(load_config(path, [f"prompts={moved}"]))
    assert "another form" not in capfd.readouterr().err
    assert (run_dir / "records/judge_scored.main.jsonl").read_bytes() == records
    form = moved / "c2_coverage.yaml"
    form.write_text(form.read_text().replace("Judge:", "Rate:"))
    run(load_config(path, [f"prompts={moved}"]))
    assert "c2_coverage.yaml: is another form now, and is asked again" in capfd.readouterr().err


@pytest.mark.slow
def test_a_saved_benchmark_that_has_changed_is_refused(tmp_path: Path, model: str) -> None:
    judge = {"model": model, "readings": ["scored"]}
    made = unshown(config(tmp_path, judge, forms="c2_coverage")).run_dir / "benchmark"
    given = tmp_path / "given"
    shutil.copytree(made, given)
    data = {"benchmark": str(given)}
    path = config(tmp_path, judge, forms="c2_coverage", name="other", data=data)
    other = unshown(path).run_dir
    before = [p.read_bytes() for p in sorted((other / "benchmark").iterdir())]
    another = unshown(config(tmp_path, judge, forms="c2_coverage", name="third", seed=1))
    shutil.rmtree(given)
    shutil.copytree(another.run_dir / "benchmark", given)
    with pytest.raises(UserError, match=r"benchmark: is not what the config makes now"):
        unshown(path)
    assert [p.read_bytes() for p in sorted((other / "benchmark").iterdir())] == before


def test_two_reference_forms_of_one_scale_are_refused(tmp_path: Path, model: str) -> None:
    path = config(tmp_path, {"model": model}, reference=model)
    forms = tmp_path / "prompts"
    shutil.copy(forms / "c2_coverage_reference.yaml", forms / "c2_coverage_reference_mine.yaml")
    told = refused("run", path)
    assert "'c2_coverage_reference' and 'c2_coverage_reference_mine' are both" in told


@pytest.mark.slow
def test_examples_have_what_judges_were_told_and_no_failures(tmp_path: Path, model: str) -> None:
    report = {"bootstrap": 20, "judgements": 2}
    path = config(
        tmp_path, {"model": model, "readings": ["scored"]}, forms="c2_coverage", report=report
    )
    form = tmp_path / "prompts/c2_coverage.yaml"
    form.write_text(form.read_text() + yaml.safe_dump({"system": "You are <strict>."}))
    run_dir = run(load_config(path)).run_dir
    page = (run_dir / "report.html").read_text()
    assert page.count("You are &lt;strict&gt;.") == 2
    # as if the first, in the page's order, had failed
    whole = results(load_run(run_dir))
    first = next(iter(examples(whole)))["ask"]
    records = run_dir / "records/judge_scored.main.jsonl"
    units = [read_unit(line) for line in records.read_bytes().splitlines()]
    lost = {"failed": "RuntimeError: no", "records": []}
    kept = [replace(u, **lost) if u.item == first else u for u in units]
    records.write_bytes(b"".join(unit.to_line() for unit in kept))
    shown = [e["ask"] for e in examples(results(load_run(run_dir)))]
    assert len(shown) == 2
    assert first not in shown


def test_a_bundled_reference_of_judges_behind_apis_is_noted() -> None:
    path = Path(__file__).parents[4] / "configs/c2faith.yaml"

    def told(*overrides: str) -> str:
        quiet = ["judge.readings=generated", "judge.max_tokens=2000"]
        return "\n".join(load_config(path, [*quiet, *overrides]).notes)

    assert told() == ""
    closed = "judge.model=api:openai/gpt-4.1"
    assert told(closed).startswith("reference: bundled:smollm2-135m rates what api:openai/gpt-4.1")
    assert told(closed, "reference=api:openai/gpt-4.1") == told(closed, "reference=null") == ""


def test_apis_that_cannot_think_in_so_few_tokens_are_noted() -> None:
    path = Path(__file__).parents[4] / "configs/c2faith.yaml"

    def told(*overrides: str, tokens: int = 256) -> list[str]:
        how = ["judge.readings=generated", f"judge.max_tokens={tokens}"]
        notes = load_config(path, [*how, *overrides]).notes
        return [n.split(": ")[0] for n in notes if "judge.max_tokens is 256; if it thinks" in n]

    assert told() == []
    judge, reference = "api:openai/o4-mini", "api:openai/gpt-4.1"
    asked = [f"judge.model=[{judge},bundled:smollm2-135m]", f"reference={reference}"]
    assert told(*asked) == ["api:openai/o4-mini", "api:openai/gpt-4.1"]
    writer = "perturb.writer=api:openai/gpt-5"
    assert len(told(*asked, writer)) == 2
    assert told(*asked, writer, "perturb.acausal=llm")[2:] == ["api:openai/gpt-5"]
    # a line for each, whatever else it does
    assert told(*asked, f"perturb.writer={judge}", "perturb.acausal=llm") == told(*asked)
    assert told(*asked, tokens=2000) == []
