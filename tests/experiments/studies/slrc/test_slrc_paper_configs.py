"""Runs of the SLRC paper's own configs do what the paper's methods say."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_files import write_rows
from tiny_models import saved, tiny

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import run
from faithscope.experiments.studies.slrc.paper import PAPER
from faithscope.interp.errors import UserError
from faithscope.interventions.segment import LONG_TOKENS, segment

SENTENCES = [
    f"Sentence {i} of the long chain says that {i} plus one makes {i + 1}." for i in range(24)
]
CHAIN = "\n\n".join(f"{k}. {' '.join(SENTENCES[3 * (k - 1) : 3 * k])} So far." for k in range(1, 9))
"""A long numbered list in paragraphs of three sentences, and a fourth too short to be a step."""


def test_what_the_configs_name_is_in_the_run() -> None:
    config = load_config("paper/slrc", at_hand=False)
    assert config.notes == []
    alone = load_config("paper/slrc", ["model.name=api:openai/gpt-5.4"], at_hand=False)
    (note,) = alone.notes
    assert note.startswith("report.parameters, groups, pairs: no models of this run: api:")
    assert "gpt-5.4" not in note


def test_a_pair_is_of_two_models() -> None:
    with pytest.raises(UserError, match=r"report\.pairs\.lab"):
        load_config("slrc", ["report.pairs={lab: [a]}"], at_hand=False)


def test_the_dollars_of_table_3_are_those_of_its_dry_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["run", "paper/slrc_cues", "--dry-run", "--set", f"out={tmp_path}"]) == 0
    priced = capsys.readouterr().out.partition("dollars, about")[2]
    dollars = [float(line.split()[-1]) for line in priced.splitlines() if line.startswith("api:")]
    assert len(dollars) == 4
    assert sum(dollars) == pytest.approx(PAPER.table("table3").dollars, rel=0.1)


def test_table_4_shuffles_sentences_however_long_the_chain_is(tmp_path: Path) -> None:
    """Section 4.5: "CoT sentences randomly shuffled"."""
    row = {"id": "q", "question": "What follows?", "kind": "label", "options": ["yes", "no"]}
    row |= {"gold": "yes", "reasoning": CHAIN, "answer": "yes", "model": "org/writer"}
    chains = write_rows(tmp_path / "chains.jsonl", row)
    overrides = {
        "model.name": saved(tiny("llama", max_position_embeddings=8192), tmp_path / "model"),
        "model.quantize": "null",
        "tasks": "[]",
        "traces.path": chains,
        "out": tmp_path / "runs",
    }
    config = load_config("paper/slrc_attention", [f"{k}={v}" for k, v in overrides.items()])
    done = load_run(run(config).run_dir)
    (trace,), (record,) = (list(done.records(stage)) for stage in ("trace", "attention"))
    assert len(trace["reasoning_ids"]) > LONG_TOKENS
    assert trace["unit"] == "sentence"
    counted = [s["text"].strip() for s in trace["steps"] if s["counted"]]
    assert [s.split(". ", 1)[-1] if s[0].isdigit() else s for s in counted] == SENTENCES
    assert (record["n_steps"], record["n_shuffles"]) == (len(SENTENCES), 1)
    # what decides is the setting: left to choose, the same text is no list of sentences
    assert len(segment(trace["pieces"], "auto")) < len(SENTENCES)
