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
from faithscope.experiments.cli import execute
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import run, write_outputs
from faithscope.experiments.engine.store import read_failures, read_records
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.interp.model import Model

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


def test_a_finished_run_is_not_done_again(finished: Path) -> None:
    before = {p: p.read_bytes() for p in (finished / "records").iterdir()}
    outcome = run(config(finished.parent))
    assert outcome.failures == []
    assert {p: p.read_bytes() for p in (finished / "records").iterdir()} == before


def test_the_same_config_gives_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    again = run(config(tmp_path))
    assert tables(again.run_dir) == tables(finished)


def test_only_what_is_missing_is_done(finished: Path, tmp_path: Path) -> None:
    done = run(config(tmp_path)).run_dir
    file = done / "records/traces.main.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2] + lines[3:-1]) + lines[-1][:40])
    kept = (done / "records/slrc.main.jsonl").read_bytes()
    run(config(tmp_path))
    assert len(file.read_bytes().splitlines()) == len(lines)
    assert (done / "records/slrc.main.jsonl").read_bytes() == kept
    assert tables(done) == tables(finished)


def test_shards_together_are_the_run(finished: Path, tmp_path: Path) -> None:
    for k in range(2):
        outcome = run(config(tmp_path), Shard(k, 2))
    assert not (outcome.run_dir / "report.html").exists()
    write_outputs(outcome.run_dir)
    assert tables(outcome.run_dir) == tables(finished)


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


def test_a_failed_item_is_listed_and_does_not_stop_the_others(
    llama: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    llama.hf.save_pretrained(model)
    llama.tokenizer.save_pretrained(model)
    questions = ["What is 1 + 1?", "What is " + "1 + " * 200 + "1?", "What is 2 + 2?"]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(f'{{"question": "{q}", "answer": "#### 2"}}\n' for q in questions))
    path = write(
        tmp_path,
        model={"name": str(model)},
        tasks=["gsm8k"],
        data={"path": str(data)},
        slrc={"framings": ["prefix"], "edits": ["remove"], "shuffles": 1},
    )
    assert execute(["run", str(path)]) == 3
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 't'}\n"
    (line,) = [x for x in err.splitlines() if x.startswith(f"failed: {model} ")]
    assert "trace: NoRoom: " in line
    assert "does not fit its 512 positions" in line
    (failure,) = read_failures(tmp_path / "t")
    assert failure.stage == "trace"
    assert len(read_records(tmp_path / "t", "trace")) == 2
    exclusions = (tmp_path / "t/tables/exclusions.csv").read_text()
    assert ",trace,failed,1" in exclusions
    assert ",trace,total,3" in exclusions
