"""What holds of every study's runs: done once, whatever happens meanwhile, and the same bytes."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from cases import CASES, OUTPUTS, Case, models

from faithscope.experiments.cli import execute
from faithscope.experiments.config.study import STUDIES
from faithscope.experiments.engine.store import read_failures
from faithscope.experiments.engine.units import read_unit

PATIENCE = 240
CLOCKS = re.compile(r"seconds|hours|per_second")
PROGRAM = "import sys; sys.path[:0] = {path!r}; import conftest; from faithscope.experiments.cli"
PROGRAM += " import main; main(['run', {config!r}])"


def outputs(run_dir: Path) -> dict[str, str]:
    """Tables and the numbers of figures, but for what clocks say."""
    kept = {}
    for path in sorted(p for kind in OUTPUTS for p in (run_dir / kind).glob("*.csv")):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        timed = [c for c in table.columns if CLOCKS.search(c)]
        if not timed:
            kept[f"{path.parent.name}/{path.name}"] = table.to_csv(index=False)
    return kept


def lines(run_dir: Path, stage: str = "*") -> list[bytes]:
    """Whole stored lines of a stage's files."""
    files = sorted((run_dir / "records").glob(f"{stage}.*.jsonl"))
    return [line for p in files for line in p.read_bytes().split(b"\n")[:-1]]


def keys(run_dir: Path) -> Counter[object]:
    return Counter(read_unit(line).key for line in lines(run_dir))


@pytest.fixture(scope="module")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def whole(
    case: Case, tiny_models: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of a run that nothing disturbed."""
    path = case.write(tmp_path_factory.mktemp("whole"), tiny_models)
    assert execute(["run", str(path)]) == 0
    return case.run_dir(path)


def test_every_registered_study_has_a_case() -> None:
    assert set(CASES) == set(STUDIES)


def test_every_unit_is_stored_once(case: Case, whole: Path) -> None:
    stored = keys(whole)
    assert {key[0] for key in stored} >= {s.replace("traces", "trace") for s in case.stages[:1]}
    assert max(stored.values()) == 1
    assert read_failures(whole) == []
    assert outputs(whole)
    assert not [p for p in whole.rglob("*") if p.name.endswith(".writing")]


def test_what_is_done_is_not_done_again(
    case: Case, whole: Path, tiny_models: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    before = lines(whole)
    (path,) = whole.parents[1].glob("*.yaml")
    assert execute(["run", str(path)]) == 0
    assert "loading" not in capfd.readouterr().err
    assert lines(whole) == before
    assert execute(["status", str(whole)]) == 0
    assert "complete" in capfd.readouterr().out


def test_another_config_is_refused(
    case: Case, whole: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = lines(whole)
    (path,) = whole.parents[1].glob("*.yaml")
    assert execute(["run", str(path), "--set", "seed=7"]) == 2
    told = capfd.readouterr().err
    assert "seed" in told
    assert "use another name (--set name=…)" in told
    assert lines(whole) == before


@pytest.mark.slow
def test_a_torn_line_in_every_file_and_another_number_of_parts_change_nothing(
    case: Case, whole: Path, tiny_models: dict[str, str], tmp_path: Path
) -> None:
    path = case.write(tmp_path, tiny_models)
    assert execute(["run", str(path)]) == 0
    run_dir = case.run_dir(path)
    for file in (run_dir / "records").glob("*.jsonl"):
        kept = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(kept[:-2]) + kept[-2][: len(kept[-2]) // 2])
    for k in (1, 2, 3):
        assert execute(["run", str(path), "--shard", f"{k}/3"]) == 0
    assert execute(["merge", str(run_dir)]) == 0
    assert outputs(run_dir) == outputs(whole)


def test_parts_in_folders_of_their_own_are_joined(
    case: Case, whole: Path, tiny_models: dict[str, str], tmp_path: Path
) -> None:
    path = case.write(tmp_path, tiny_models)
    parts = [tmp_path / f"part{k}" for k in (1, 2)]
    for k, part in enumerate(parts, 1):
        command = ["run", str(path), "--shard", f"{k}/2", "--set", f"out={part}"]
        assert execute(command) == 0
    folders = [str(next(part.iterdir())) for part in parts]
    joined = tmp_path / "joined"
    assert execute(["merge", folders[0]]) == 2
    assert execute(["merge", *folders, "--into", str(joined)]) == 0
    assert keys(joined) == keys(whole)
    assert outputs(joined) == outputs(whole)


@pytest.mark.slow
def test_after_a_kill_in_every_stage_nothing_is_lost_or_doubled(
    case: Case, whole: Path, tiny_models: dict[str, str], tmp_path: Path
) -> None:
    path, rng = case.write(tmp_path, tiny_models), random.Random(0)
    run_dir = case.run_dir(path)
    for stage in case.stages:
        _kill(path, run_dir, stage, rng)
    assert execute(["run", str(path)]) == 0
    assert keys(run_dir) == keys(whole)
    assert outputs(run_dir) == outputs(whole)
    assert read_failures(run_dir) == []
    assert not [p for p in run_dir.rglob("*") if p.name.endswith(".writing")]


def _kill(path: Path, run_dir: Path, stage: str, rng: random.Random) -> None:
    """Start the run and kill it once it has stored something more of that stage."""
    before = len(lines(run_dir, stage))
    program = PROGRAM.format(path=[p for p in sys.path if p], config=str(path))
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and len(lines(run_dir, stage)) == before:
            assert time.monotonic() < deadline, f"stage {stage!r} was never reached"
            time.sleep(0.001)
        time.sleep(rng.random() * 0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        code = process.wait(PATIENCE)
    # the last stage of a small run may be over before the signal comes
    assert code == -signal.SIGKILL or stage == "length", f"{stage}: over before the signal: {code}"


def test_an_item_that_fails_costs_no_other_and_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = CASES["toy"].write(tmp_path, {})
    run_dir = CASES["toy"].run_dir(path)
    path.write_text(path.read_text() + "fails_at: 2\n")
    assert execute(["run", str(path)]) == 3
    told = capfd.readouterr().err
    assert "failed: planted:faithful · numbers · 2 · word: ValueError: no word for it" in told
    assert len(lines(run_dir, "length")) == 4
    # failures that end are made good by the next start
    assert execute(["run", str(path)]) == 3
    assert len(lines(run_dir, "length")) == 4
