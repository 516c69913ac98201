"""A whole run on a planted model: what it leaves in its folder, and its frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import faithscope
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.store import read_records
from faithscope.experiments.studies.slrc.config import RunConfig

LIMIT = 4


def config(folder: Path) -> RunConfig:
    values: dict[str, Any] = {
        "name": "t",
        "out": str(folder),
        "model": {"name": ["planted:faithful", "planted:hint"]},
        "tasks": ["planted"],
        "data": {"limit": LIMIT},
        "generation": {"batch_size": 3},
        "report": {"traces": 2, "bootstrap": 50},
    }
    return RunConfig.model_validate(values)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outcome = run(config(tmp_path_factory.mktemp("finished")))
    assert outcome.failures == []
    return outcome.run_dir


def test_a_run_leaves_what_scripts_rely_on(finished: Path) -> None:
    names = {str(p.relative_to(finished)) for p in finished.rglob("*") if p.is_file()}
    assert {
        "config.yaml",
        "environment.json",
        "records/traces.main.jsonl",
        "records/slrc.main.jsonl",
        "tables/slrc.csv",
        "tables/exclusions.csv",
        "report.html",
    } <= names
    assert len(read_records(finished, "trace")) == 2 * LIMIT
    assert len(read_records(finished, "slrc")) == 2 * LIMIT * 4


def test_frames_are_tidy(finished: Path) -> None:
    opened = faithscope.load_run(finished)
    assert len(opened.traces) == 2 * LIMIT
    assert len(opened.items) == 2 * LIMIT * 4
    assert set(opened.steps.position) == {1, 2, 3}
    scored = opened.branches.query("framing == 'prefix' and reading == 'scored'")
    last = scored.query("edit == 'corrupt' and position == 3").groupby("model").flipped.mean()
    assert last["planted:faithful"] > 0.9
    assert last["planted:hint"] < 0.1
