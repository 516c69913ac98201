"""Runs in which a sample of the steps is edited: the others are missing, not measured as zero."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted_traces import planted

from faithscope import load_run
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.engine.run import run
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.tables.branch_frame import (
    NECESSITY,
    branch_frame,
    step_counts,
)
from faithscope.interventions import Question, Step, Trace
from faithscope.probes import PROBES
from faithscope.probes.record import mean_of_steps

SAMPLING = [name for name, probe in PROBES.items() if probe.samples_steps]


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


@pytest.mark.slow
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
    _, traces = planted("faithful")
    for trace in traces:
        two, three = trace.sampling(2, 5), trace.sampling(3, 5)
        assert three.sample is None
        assert two.sample is not None
        assert len(two.sample) == 2
        assert two.sample == trace.sampling(2, 5).sample
    drawn = [traces[0].sampling(2, seed).sample for seed in range(9)]
    assert len({tuple(sample or ()) for sample in drawn}) > 1


def test_certain_steps_are_always_drawn_and_the_others_alike_often() -> None:
    _, traces = planted("faithful_5")
    counted = [step.index for step in traces[0].counted_steps]
    assert len(counted) == 5
    n, times = 600, Counter[int]()
    for seed in range(n):
        sample = traces[0].sampling(3, seed, lambda: [counted[4]]).sample
        assert sample is not None
        assert sample == {counted[4]: 1.0} | dict.fromkeys(sorted(set(sample) - {counted[4]}), 0.5)
        times.update(list(sample))
    assert times.pop(counted[4]) == n
    assert all(abs(drawn / n - 0.5) < 0.08 for drawn in times.values())


@pytest.mark.slow
@pytest.mark.in_time(1)
@pytest.mark.parametrize("screen", [0, 2])
def test_estimates_from_samples_are_unbiased(screen: int) -> None:
    """Over many draws, means, shares and SLRC's counts are those of all steps."""
    draw = Random(1)
    chains = [
        {"flips": [draw.random() < 0.2 + 0.6 * (i < 2) for i in range(n)], "n_steps": n}
        for n in (5, 9, 14)
    ]
    whole = [
        {"necessary": c["flips"], "sufficient": c["flips"][::-1], "n_steps": c["n_steps"]}
        for c in chains
    ]
    means = [mean_of_steps(c["flips"]) for c in chains]
    traces = [trace_of(c["n_steps"], str(c["n_steps"])) for c in chains]
    of_traces, records = [], [slrc_record("whole", i, r) for i, r in enumerate(whole)]
    for seed in range(2000):
        drawn = []
        for i, (trace, record) in enumerate(zip(traces, whole, strict=True)):
            inclusion = trace.sampling(4, seed, lambda: range(screen)).inclusion
            assert inclusion is not None
            kept = {
                name: [x if p else None for x, p in zip(record[name], inclusion, strict=True)]
                for name in ("necessary", "sufficient")
            }
            drawn.append(slrc_record(str(seed), i, record | kept | {"inclusion": inclusion}))
        of_traces.append([mean_of_steps(r["necessary"], r["inclusion"]) for r in drawn])
        records += drawn
    frame = branch_frame(records)
    necessity = Table("x", "branches", ("model",), (NECESSITY,)).make(frame).set_index("model")
    few = frame[frame["model"].isin({"whole", *map(str, range(500))})]
    counts = {model: step_counts(of) for model, of in few.groupby("model", observed=True)}
    found = necessity["necessity"].to_dict()
    expected = found.pop("whole")
    assert np.mean(list(found.values())) == pytest.approx(expected, abs=0.01)
    assert np.mean(of_traces, axis=0) == pytest.approx(means, abs=0.02)
    of_whole = counts.pop("whole")
    assert np.mean(list(counts.values()), axis=0) == pytest.approx(of_whole.to_numpy(), abs=0.2)


def slrc_record(model: str, item: int, values: dict[str, Any]) -> dict[str, Any]:
    about = {"probe": "slrc", "model": model, "task": "t", "item": str(item)}
    way = {"framing": "prefix", "reading": "generated", "execution": "packed"}
    return about | way | values


def trace_of(n_steps: int, name: str) -> Trace:
    steps = tuple(Step(i, "a", (i, i + 1), (i, i + 1)) for i in range(n_steps))
    question = Question(name, "d", "?", "label", options=("yes", "no"))
    return Trace(question, (1,), (5,) * n_steps, ("a",) * n_steps, steps)


@pytest.mark.slow
def test_a_screen_takes_the_steps_of_largest_estimated_effect(tmp_path: Path) -> None:
    of_five = {
        "model": {"name": "planted:faithful_5"},
        "tasks": ["planted_5"],
        "probes": ["slrc", "knockout"],
    }
    outcome = run(config(tmp_path, "screened", steps={"sample": 2, "screen": 1}, **of_five))
    assert outcome.failures == []
    screened = load_run(outcome.run_dir)
    certain = {}
    for frame in (screened.steps, screened.knockout):
        assert set(frame.inclusion.dropna()) == {1.0, 0.25}
        of_one = frame.drop_duplicates(["item", "position"]).set_index(["item", "position"])
        assert of_one.inclusion.groupby("item").count().eq(2).all()
        certain[len(certain)] = of_one.index[of_one.inclusion == 1].tolist()
    assert certain[0] == certain[1]
    assert len({item for item, _ in certain[0]}) == len(certain[0]) == 4
    way = "framing == 'prefix' and reading == 'generated'"
    steps = screened.steps.query(way).dropna(subset=["inclusion"])
    row = pd.read_csv(outcome.run_dir / "tables" / "slrc.csv").query(way).iloc[0]
    expected = np.average(steps.necessary.astype(float), weights=1 / steps.inclusion)
    assert row.necessity == pytest.approx(expected)
    measures = pd.read_csv(outcome.run_dir / "tables" / "measures.csv").set_index("measure")
    assert measures.forwards["necessity_prefix_generated"] == 1 + 2
    page = (outcome.run_dir / "report.html").read_text("utf-8")
    assert "4 for the largest estimated effect of their removal and the others at random" in page


@pytest.mark.slow
def test_a_screen_that_covers_all_steps_changes_no_table(tmp_path: Path) -> None:
    whole = run(config(tmp_path, "whole", probes=SAMPLING)).run_dir
    covered = run(config(tmp_path, "all", probes=SAMPLING, steps={"sample": 3, "screen": 2}))
    tables = sorted(whole.glob("tables/*.csv"))
    assert tables
    for table in tables:
        if table.name != "exclusions.csv":
            assert (covered.run_dir / "tables" / table.name).read_bytes() == table.read_bytes()


@pytest.mark.parametrize("steps", [{"screen": 2}, {"sample": 3, "screen": 3}])
def test_a_screen_without_a_random_rest_is_refused(tmp_path: Path, steps: dict[str, int]) -> None:
    with pytest.raises((ConfigError, ValueError), match="a larger sample"):
        config(tmp_path, "t", steps=steps)


def test_a_screen_of_an_api_model_is_refused(tmp_path: Path) -> None:
    steps, model = {"sample": 3, "screen": 1}, {"name": "api:mockllm/model"}
    with pytest.raises((ConfigError, ValueError), match=r"steps\.screen: .* behind an API"):
        config(tmp_path, "t", model=model, tasks=["sst2"], probes=["slrc"], steps=steps)


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


@pytest.mark.slow
@pytest.mark.in_time(1)
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
