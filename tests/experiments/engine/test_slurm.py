"""The script for a cluster, run by bash as Slurm runs it: which part, and a clean stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from run_files import write_yaml

import faithscope
from faithscope.experiments.engine.status import status

SCRIPT = Path(faithscope.__file__).parents[1] / "slurm" / "run.sbatch"
COMMAND = (
    '#!/bin/bash\nexec "{python}" -c "from faithscope.experiments.cli import main; main()" "$@"\n'
)


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A folder to submit from: an environment with the command, and a config."""
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "activate").write_text(f'PATH="{bin_folder}:$PATH"\n')
    command = bin_folder / "faithscope"
    command.write_text(COMMAND.format(python=sys.executable))
    command.chmod(0o755)
    write_yaml(
        tmp_path / "parts.yaml",
        {
            "name": "parts",
            "model": {"name": "planted:faithful"},
            "tasks": ["planted"],
            "data": {"limit": 12},
            "generation": {"batch_size": 2},
            "probes": ["attention"],
            "report": {"bootstrap": 20},
        },
    )
    return tmp_path


def task(node: Path, *overrides: str, **slurm: object) -> subprocess.Popen[str]:
    """One task of an array job."""
    known = {"SLURM_CPUS_PER_TASK": 1} | {f"SLURM_ARRAY_TASK_{k}": v for k, v in slurm.items()}
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        ["bash", str(SCRIPT), "parts.yaml", *overrides],
        cwd=node,
        env=os.environ | {"PYTHONPATH": path} | {k: str(v) for k, v in known.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "indices",
    [pytest.param([0, 1], marks=pytest.mark.slow), [10, 20]],
    ids=["from 0", "by tens"],
)
def test_the_tasks_of_an_array_do_a_run_whatever_their_indices(
    node: Path, indices: list[int]
) -> None:
    about = {"MIN": indices[0], "MAX": indices[-1], "STEP": indices[1] - indices[0], "COUNT": 2}
    for index in indices:
        ended = task(node, ID=index, **about)
        out, err = ended.communicate(timeout=120)
        assert ended.returncode == 0, err
        assert out.splitlines()[-1] == "runs/parts"
        assert "6 of 6 items measured" in err
    state = status(node / "runs" / "parts")
    assert {worker.name for worker in state.workers} == {"1of2", "2of2"}
    assert sum(group.done for group in state.groups) == 12


def test_without_an_array_the_script_does_the_whole(node: Path) -> None:
    ended = task(node, "data.limit=2")
    _, err = ended.communicate(timeout=120)
    assert ended.returncode == 0, err
    assert "2 of 2 items measured" in err
    assert (node / "runs" / "parts" / "report.html").is_file()
    config = yaml.safe_load((node / "runs" / "parts" / "config.yaml").read_text())
    assert config["data"]["limit"] == 2


def test_uneven_indices_are_refused(node: Path) -> None:
    ended = task(node, ID=3, MIN=3, MAX=7, STEP=1, COUNT=2)
    _, err = ended.communicate(timeout=60)
    assert ended.returncode == 2
    assert "not evenly spaced" in err
    assert not (node / "runs").exists()


def test_the_signal_before_the_end_stops_the_run_cleanly(node: Path) -> None:
    ended = task(node, "data.limit=4000", ID=1, MIN=1, MAX=2, STEP=1, COUNT=2)
    records = node / "runs" / "parts" / "records" / "traces.1of2.jsonl"
    deadline = time.monotonic() + 120
    while not (records.is_file() and records.stat().st_size):
        assert ended.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    # Slurm's B: signals the shell alone, not what it started
    ended.send_signal(signal.SIGTERM)
    _, err = ended.communicate(timeout=120)
    assert ended.returncode == 130, err
    assert "interrupted:" in err
    assert "the same command goes on" in err
    (group,) = status(node / "runs" / "parts").groups
    assert 0 < group.made < group.items
    assert group.failed == 0


def test_the_script_asks_for_a_signal_of_its_shell() -> None:
    assert "#SBATCH --signal=B:TERM@" in SCRIPT.read_text()
