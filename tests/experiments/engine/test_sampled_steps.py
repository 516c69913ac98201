"""Runs in which a sample of the steps is edited: the others are missing, not measured as zero."""

from __future__ import annotations

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
