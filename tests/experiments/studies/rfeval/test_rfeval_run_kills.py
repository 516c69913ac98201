"""A run of RFEval killed in every stage, then gone on with: the same tables, nothing made twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from rf_runs import counted
from test_rfeval_run import everything

from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.store import read_failures
from faithscope.experiments.engine.units import read_unit

STAGES = ("rf_baseline", "rf_intervened", "rf_log_probs", "rf_inside", "rf_judged")
PATIENCE = 240
# small batches, so that a kill meets a stage half done
ONE_BY_ONE = {"generate": {"batch_size": 1}}

pytestmark = pytest.mark.slow


def lines(run_dir: Path, stage: str) -> list[bytes]:
    whole = [p.read_bytes() for p in sorted(run_dir.glob(f"records/{stage}.*.jsonl"))]
    return [line for text in whole for line in text.split(b"\n")[:-1]]


def kill(path: Path, stage: str, rng: random.Random) -> None:
    """Start the run and kill it once it has stored something more of that stage."""
    run_dir = path.parent / "runs/rf"
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


def test_after_a_kill_in_every_stage_nothing_is_lost_or_doubled(
    tmp_path: Path, chain: str, plain: str
) -> None:
    whole = load_config(everything(tmp_path / "whole", chain, plain, **ONE_BY_ONE))
    assert run(whole).failures == []
    rng = random.Random(0)
    path = everything(tmp_path / "killed", chain, plain, **ONE_BY_ONE)
    for stage in STAGES:
        kill(path, stage, rng)
    ended = run(load_config(path))
    assert ended.failures == []
    assert counted(ended.run_dir) == counted(whole.run_dir)
    assert read_failures(ended.run_dir) == []
    for stage in STAGES:
        of = [
            Counter(read_unit(x).key for x in lines(d, stage))
            for d in (ended.run_dir, whole.run_dir)
        ]
        assert of[0] == of[1]
        assert max(of[0].values()) == 1
    assert not [p for p in ended.run_dir.rglob("*") if p.name.endswith(".writing")]


def test_a_torn_last_line_and_another_number_of_parts_change_nothing(
    tmp_path: Path, chain: str, plain: str
) -> None:
    whole = load_config(everything(tmp_path / "whole", chain, plain))
    assert run(whole, Shard(0, 1)).failures == []
    expected = counted(whole.run_dir)
    for records in (whole.run_dir / "records").glob("*.main.jsonl"):
        kept = records.read_bytes().splitlines(keepends=True)
        records.write_bytes(b"".join(kept[:-2]) + kept[-2][: len(kept[-2]) // 2])
    for k in range(3):
        assert run(whole, Shard(k, 3)).failures == []
    assert counted(whole.run_dir) == expected
