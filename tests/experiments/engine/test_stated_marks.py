"""A model whose chat template marks reasoning in a way of its own, and what a user states of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_models import byte_tokenizer, random_weights

import faithscope
from faithscope.experiments.cli import main
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.folder import read_environment
from faithscope.experiments.engine.traces.plan import plan
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.interp.errors import UserError

TEMPLATE = (
    "{%- for m in messages %}{{ m['role'] + ': ' + m['content'].split('</mull_over_thoughts>')[-1] "
    "+ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)
MARKS = ["<mull>", "</mull_over_thoughts>"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "mulls"
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    random_weights("llama", max_position_embeddings=1024).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def values(folder: Path, out: Path, **marks: object) -> RunConfig:
    return RunConfig.model_validate(
        {
            "name": "t",
            "out": str(out),
            "model": {"name": str(folder), "device": "cpu", **marks},
            "tasks": ["single_cue"],
            "data": {"limit": 1},
        }
    )


def test_it_is_refused_without_them_and_read_with_them(folder: Path) -> None:
    for load in (faithscope.load, faithscope.load_language):
        with pytest.raises(UserError, match=r"mulls: its chat template names </mull_over_thoughts"):
            load(str(folder))
        assert load(str(folder), marks=MARKS).format.closer == MARKS[1]
        assert not load(str(folder), marks="none").format.marks


def test_stated_marks_are_part_of_what_names_a_unit(folder: Path, tmp_path: Path) -> None:
    def unit(**marks: object) -> str:
        return plan(values(folder, tmp_path, **marks)).items[0].units["trace"]

    assert unit() == unit(marks=None)
    assert len({unit(), unit(marks="none"), unit(marks=MARKS), unit(marks="think_tags")}) == 4


def test_a_run_says_what_to_state_and_takes_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chains = tmp_path / "chains.jsonl"
    chains.write_text(
        '{"question": "2 + 3?", "gold": "5", "reasoning": "Two plus three makes 5 in all. '
        'So the sum of the two is 5 as well."}\n'
    )
    to = [f"out={tmp_path}", "name=t", f"traces.path={chains}", f"model.name={folder}"]
    told = [part for s in (*to, "probes=[tracing]") for part in ("--set", s)]
    with pytest.raises(SystemExit) as refused:
        main(["run", "mechanistic", *told])
    assert refused.value.code == 2
    assert "model.marks" in capsys.readouterr().err
    with pytest.raises(SystemExit) as wrong:
        main(["run", "mechanistic", *told, "--set", "model.marks=think_tag"])
    assert wrong.value.code == 2
    assert "model.marks: unknown marks 'think_tag'; did you mean 'think_tags'" in (
        capsys.readouterr().err
    )
    told += ["--set", "model.marks=[<mull>,</mull_over_thoughts>]"]
    told += ["--set", "report.least_label_mass=0.0"]
    with pytest.raises(SystemExit) as done:
        main(["run", "mechanistic", *told])
    assert done.value.code == 0
    facts = read_environment(tmp_path / "t")["sessions"][-1]["models"][str(folder)]
    assert facts["reasoning_format"] == "own"
    assert load_config(tmp_path / "t" / "config.yaml", []).model.marks == MARKS
