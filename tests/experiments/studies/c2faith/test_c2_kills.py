"""A run of C2-Faith killed while it writes, judges and looks inside; then gone on with."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from c2_runs import config, tables

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, says, waits

import faithscope
from faithscope.experiments.cli import execute
from faithscope.experiments.engine.store import read_failures
from faithscope.experiments.engine.units import read_unit

WRITER = "item=writing;"
"""In the writer's prompt, by which the server knows it."""
STAGES = ("acausal", "judge_generated", "judge_scored", "broken_step")
CONNECTIONS = 2
PATIENCE = 180
SECONDS = 0.15
"""What a reply takes: long enough for a signal to come between two."""

pytestmark = pytest.mark.slow


def answers(handler: Any) -> None:
    """A verdict that hangs on the prompt alone, whenever and how often it is asked."""
    told = json.dumps(handler.request_body["messages"]).encode()
    waits(SECONDS, says(f'{{"score": {hashlib.sha256(told).digest()[0] % 2}}}'))(handler)


def writes(handler: Any) -> None:
    told = json.dumps(handler.request_body["messages"]).encode()
    number = int.from_bytes(hashlib.sha256(told).digest()[:2])
    waits(SECONDS, says(f"So x is {number}, as we have seen."))(handler)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with FaultServer() as server:
        server.plan |= {"": [answers], "writing": [writes]}
        yield server


def written(folder: Path, model: str, server: FaultServer) -> Path:
    """A config with a writer, an API judge, a judge here in both readings and its insides."""
    api = "api:openai/gpt-4.1"
    judge = {
        "model": [api, model],
        "readings": ["generated", "scored"],
        "base_url": server.url,
        "structured": "prompt",
        "max_connections": CONNECTIONS,
        "batch_size": 2,
    }
    path = config(
        folder,
        judge,
        perturb={"levels": [0.5], "acausal": "llm", "writer": api, "temperature": 0.0},
        reference=model,
        internals={"model": model},
    )
    prompt = {"task": "acausal", "source": "a test", "ours": True}
    prompt["template"] = WRITER + " Rewrite {target_step} after {context}"
    (folder / "prompts/c2_acausal.yaml").write_text(yaml.safe_dump(prompt))
    return path


def lines(run_dir: Path, stage: str) -> list[bytes]:
    whole = [p.read_bytes() for p in sorted(run_dir.glob(f"records/{stage}.*.jsonl"))]
    return [line for text in whole for line in text.split(b"\n")[:-1]]


def kill(path: Path, stage: str, rng: random.Random) -> None:
    """Start the run and kill it once it has stored something more of that stage."""
    run_dir = path.parent / "runs/c2"
    before = len(lines(run_dir, stage))
    process = subprocess.Popen(
        [sys.executable, "-m", "faithscope.experiments.cli", "run", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and len(lines(run_dir, stage)) == before:
            assert time.monotonic() < deadline, f"stage {stage!r} was never reached"
            time.sleep(0.001)
        time.sleep(rng.random() * 0.03)
    finally:
        process.send_signal(signal.SIGKILL)
        code = process.wait(PATIENCE)
    assert code == -signal.SIGKILL, f"stage {stage!r} was over before the signal: {code}"


def asked_of(server: FaultServer) -> Counter[str]:
    return Counter(json.dumps(body["messages"], sort_keys=True) for body in server.bodies)


@pytest.mark.parametrize("seed", range(2))
def test_after_a_kill_in_every_stage_nothing_is_lost_or_doubled(
    tmp_path: Path, model: str, server: FaultServer, seed: int
) -> None:
    whole = written(tmp_path / "whole", model, server)
    assert execute(["run", str(whole)]) == 0
    undisturbed = tmp_path / "whole/runs/c2"
    expected = asked_of(server)
    server.bodies.clear()

    rng = random.Random(seed)
    path = written(tmp_path / "killed", model, server)
    for stage in STAGES:
        kill(path, stage, rng)
    assert execute(["run", str(path)]) == 0
    run_dir = tmp_path / "killed/runs/c2"

    made, expected_tables = tables(run_dir), tables(undisturbed)
    spent = [pd.read_csv(d / "tables/spend.csv")["calls"].sum() for d in (run_dir, undisturbed)]
    # what was paid is no result: it tells of the kills
    del made["spend.csv"], expected_tables["spend.csv"]
    assert made == expected_tables
    for name in ("causal.jsonl", "coverage.jsonl", "manifest.json"):
        there, here = undisturbed / "benchmark" / name, run_dir / "benchmark" / name
        assert here.read_bytes() == there.read_bytes(), name
    assert read_failures(run_dir) == []
    for stage in STAGES:
        keys = Counter(read_unit(line).key for line in lines(run_dir, stage))
        assert keys == Counter(read_unit(line).key for line in lines(undisturbed, stage))
        assert max(keys.values()) == 1
    # what was on its way when the process died is asked again, and nothing else
    asked = asked_of(server)
    assert asked.keys() == expected.keys()
    assert sum((asked - expected).values()) <= 2 * CONNECTIONS
    # only of what was on its way can a call be unknown, and nothing counts twice
    assert spent[1] == sum(expected.values())
    assert spent[1] <= spent[0] <= sum(asked.values())
    usage = pd.read_csv(run_dir / "tables/usage.csv")
    assert (usage["calls"] == usage["n"]).all()
    judgements = [faithscope.load_run(d).judgements for d in (run_dir, undisturbed)]  # type: ignore
    pd.testing.assert_frame_equal(*judgements)
    assert not [p for p in run_dir.rglob("*") if p.name.endswith(".writing")]
