"""Runs in which a sample of the steps is edited: the others are missing, not measured as zero."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faithscope import load_run
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.engine.run import run
from faithscope.experiments.studies.slrc.config import RunConfig

SAMPLING = ["slrc", "knockout", "filler", "causal_effects"]


def config(folder: Path, name: str, **changes: Any) -> RunConfig:
    values: dict[str, Any] = {
        "name": name,
        "out": str(folder),
        "model": {"name": "planted:faithful"},
        "tasks": ["planted"],
        "data": {"limit": 4},
        "probes": [*SAMPLING, "tracing"],
        "slrc": {"shuffles": 1},
        "knockout": {"heads": True},
        "report": {"traces": 1, "bootstrap": 20},
    }
    return RunConfig.model_validate(values | changes)


def test_unsampled_steps_have_no_numbers_and_sampled_ones_the_same(tmp_path: Path) -> None:
    whole = load_run(run(config(tmp_path, "whole")).run_dir)
    outcome = run(config(tmp_path, "sampled", steps={"sample": 2}))
    assert outcome.failures == []
    sampled = load_run(outcome.run_dir)
    for name, column in (
        ("knockout", "log_odds"),
        ("filler", "log_odds"),
        ("causal_effects", "graded_necessity"),
    ):
        keys = ["item", "variant", "position"]
        a, b = (getattr(r, name).set_index(keys)[column] for r in (whole, sampled))
        assert a.index.equals(b.index)
        assert b.groupby("item").count().max() <= 2 * a.index.get_level_values(1).nunique()
        assert b.isna().sum() == len(b) // 3
        there = b.notna()
        assert b[there].tolist() == pytest.approx(a[there].tolist(), abs=1e-4)
    removed = sampled.branches.query("edit == 'remove' and reading == 'generated'")
    assert removed.groupby(["item", "framing"]).answer.count().eq(2).all()
    alone = sampled.branches.query("edit == 'keep_only'")
    assert alone.groupby(["item", "framing", "reading"]).answer.count().eq(2).all()
    assert len(sampled.tracing) == len(whole.tracing)


def test_a_larger_sample_contains_a_smaller_one(tmp_path: Path) -> None:
    from planted_traces import planted

    _, traces = planted("faithful")
    for trace in traces:
        two, three = trace.sampling(2, 5), trace.sampling(3, 5)
        assert three.sample is None
        assert two.sample is not None
        assert len(two.sample) == 2
        assert two.sample == trace.sampling(2, 5).sample
    assert len({t.sampling(2, seed).sample for seed in range(9) for t in traces[:1]}) > 1


def test_a_sample_that_no_probe_takes_is_refused(tmp_path: Path) -> None:
    with pytest.raises((ConfigError, ValueError), match=r"steps.sample: none of tracing edits"):
        config(tmp_path, "t", probes=["tracing"], steps={"sample": 2})


def think_block(n: int) -> str:
    """A think block of `n` paragraphs, of which every third checks the one before it."""
    blocks = [
        f"Box {i} holds {i} + 4 = {i + 4} pens of the blue kind, and more of them are there. " * 4
        + (f"Wait, let me double-check: {i + 4} - 4 = {i}, which matches." if i % 3 == 0 else "")
        for i in range(n)
    ]
    blocks = ["Okay, so the problem asks for pens.", *blocks, "Therefore, the answer is 33."]
    return "\n\n".join(blocks)


@pytest.mark.parametrize("groups", [None, 5])
def test_long_chains_are_cut_into_thoughts_or_groups_of_them(
    tmp_path: Path, plain: str, groups: int | None
) -> None:
    chains = tmp_path / "chains.jsonl"
    row = {"id": "1", "question": "How many pens?", "answer": "33", "reasoning": think_block(12)}
    chains.write_text(json.dumps(row) + "\n")
    reading = {"framings": ["prefix"], "readings": ["scored"], "edits": ["remove"], "shuffles": 1}
    settings = config(
        tmp_path,
        "thoughts",
        model={"name": plain},
        traces={"path": str(chains), "kind": "number"},
        probes=["slrc"],
        slrc=reading,
        steps={"groups": groups, "conclusion": "keep"},
        report={"traces": 1, "bootstrap": 20, "least_label_mass": 0},
    )
    results = load_run(run(settings).run_dir)
    (trace,) = results.traces.to_dict("records")
    assert trace["unit"] == ("thought" if groups is None else "group")
    # 14 paragraphs, and 4 turns within them
    assert trace["n_steps"] == (18 if groups is None else 5)
    steps = results.trace_steps
    assert "".join(steps["text"]) == "".join(think_block(12))
    if groups is None:
        assert steps["function"].value_counts().to_dict() == {
            "compute": 12,
            "verify": 4,
            "restate": 1,
            "conclude": 1,
        }
    by_function = results.tables["edits_by_function"].query("edit == 'remove'")
    every = results.tables["edits"].query("edit == 'remove'")
    assert by_function["n_edits"].sum() == every["n_edits"].item() == trace["n_steps"]
    assert set(by_function["function"]) == set(steps["function"])
