"""Fifty kills, in every stage of a run, and what is left after it goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from faithscope.experiments.cli import execute
from faithscope.experiments.engine.store import read_failures, read_records
from faithscope.experiments.engine.units import read_unit

RUNS = 10
STAGES = ("load", "generate", "score", "write", "report")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
LIMIT = 16
DELAY = 0.3
"""Most seconds between reaching a stage and the signal: less than any stage takes."""
PATIENCE = 180


def write(folder: Path) -> Path:
    values: dict[str, Any] = {
        "name": "t",
        "out": str(folder),
        "model": {"name": ["planted:faithful", "planted:hint"]},
        "tasks": ["planted"],
        "data": {"limit": LIMIT},
        "generation": {"batch_size": 2},
        "report": {"traces": 2, "bootstrap": 50},
    }
    path = folder / "x.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def outputs(run_dir: Path) -> dict[str, bytes]:
    files = [*(run_dir / "tables").iterdir(), *(run_dir / "figures").iterdir()]
    return {f.name: f.read_bytes() for f in sorted(files)}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    assert execute(["run", str(write(folder))]) == 0
    return outputs(folder / "t")


def lines(run_dir: Path, stage: str) -> list[bytes]:
    whole = [p.read_bytes() for p in sorted(run_dir.glob(f"records/{stage}.*.jsonl"))]
    return [line for text in whole for line in text.split(b"\n")[:-1]]


def newest(run_dir: Path, pattern: str) -> int:
    """When the newest of some files was written; half-written ones do not count."""
    found = (p for p in run_dir.glob(pattern) if not p.name.endswith(".writing"))
    return max((p.stat().st_mtime_ns for p in found), default=0)


def reached(stage: str, run_dir: Path) -> Callable[[], bool]:
    """Whether the stage goes on now; called first before the run is started."""
    if stage == "load":
        started = newest(run_dir, "environment.json")
        return lambda: newest(run_dir, "environment.json") > started
    if stage in ("generate", "score"):
        name = {"generate": "traces", "score": "slrc"}[stage]
        before = len(lines(run_dir, name))
        return lambda: len(lines(run_dir, name)) > before
    name = {"write": "tables/*", "report": "figures/*"}[stage]
    then = newest(run_dir, name)
    return lambda: newest(run_dir, name) > then


def disturb(
    path: Path, stage: str, rng: random.Random, signals: Sequence[signal.Signals] = SIGNALS
) -> int | None:
    """Start the run and stop it in that stage; its exit code, None if it was done before."""
    now = reached(stage, path.parent / "t")
    process = subprocess.Popen(
        [sys.executable, "-m", "faithscope.experiments.cli", "run", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        # a shell's background job is born deaf to Ctrl-C, and so are its children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and not now():
        assert time.monotonic() < deadline, f"stage {stage!r} was never reached"
        time.sleep(0.002)
    time.sleep(rng.random() * DELAY)
    process.send_signal(rng.choice(signals))
    code = process.wait(PATIENCE)
    return None if code == 0 else code


def test_after_two_hard_kills_the_tables_are_the_same(
    undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    path = write(tmp_path)
    for stage in ("generate", "score"):
        code = disturb(path, stage, random.Random(1), (signal.SIGKILL,))
        assert code == -signal.SIGKILL
    assert execute(["run", str(path)]) == 0
    assert outputs(tmp_path / "t") == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(RUNS))
def test_after_a_kill_in_every_stage_nothing_is_lost_or_doubled(
    undisturbed: dict[str, bytes], tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    path, run_dir = write(tmp_path), tmp_path / "t"
    codes = {stage: disturb(path, stage, rng) for stage in STAGES}
    assert None not in codes.values(), f"some stage was over before the signal: {codes}"
    assert execute(["run", str(path)]) == 0
    assert outputs(run_dir) == undisturbed
    assert read_failures(run_dir) == []
    assert len(read_records(run_dir, "trace")) == 2 * LIMIT
    for stage in ("traces", "slrc"):
        keys = Counter(read_unit(line).key for line in lines(run_dir, stage))
        assert len(keys) == 2 * LIMIT
        assert max(keys.values()) == 1
    assert not [p for p in run_dir.rglob("*") if p.name.endswith(".writing")]
