"""Whole runs on a planted model: outputs, resume after any kill, failures, shards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import faithscope
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.store import read_records
from faithscope.experiments.studies.slrc.config import RunConfig

LIMIT = 4


def config(folder: Path, **changes: Any) -> RunConfig:
    values: dict[str, Any] = {
        "name": "t",
        "out": str(folder),
        "model": {"name": ["planted:faithful", "planted:hint"]},
        "tasks": ["planted"],
        "data": {"limit": LIMIT},
        "generation": {"batch_size": 3},
        "report": {"traces": 2, "bootstrap": 50},
    }
    return RunConfig.model_validate(values | changes)


def tables(run_dir: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((run_dir / "tables").iterdir())}


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


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "x.yaml"
    path.write_text(yaml.safe_dump(config(folder, **changes).model_dump(mode="json")))
    return path


def start(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "faithscope.experiments.cli", "run", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def stored(run_dir: Path) -> int:
    return sum(p.read_bytes().count(b"\n") for p in run_dir.glob("records/*.jsonl"))


def wait_for(process: subprocess.Popen[str], run_dir: Path, lines: int) -> None:
    deadline = time.monotonic() + 120
    while process.poll() is None and stored(run_dir) < lines:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_sigterm_stops_cleanly_and_the_run_goes_on(finished: Path, tmp_path: Path) -> None:
    path = write(tmp_path)
    process = start(path)
    wait_for(process, tmp_path / "t", 5)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert out == ""
    assert "the same command goes on from here" in err
    process = start(path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.splitlines()[-1] == str(tmp_path / "t")
    assert tables(tmp_path / "t") == tables(finished)
