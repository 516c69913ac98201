"""A whole small run whose outputs the real vLLM writes in process, held against one without it."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest
import vllm_here
import yaml
from rf_runs import Case, config

from faithscope.experiments.cli import execute
from faithscope.experiments.engine.store import read_records
from faithscope.experiments.studies.rfeval.results import results
from faithscope.interp.sources import DEFAULT, is_here

BUNDLED = f"bundled:{DEFAULT}"
CASES = [Case(f"item{n}") for n in range(2)]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not is_here(DEFAULT), reason=f"the model is not here: run faithscope fetch {DEFAULT}"
    ),
]

COMMAND = """
import sys
# what vLLM's environment lacks comes from that of the tests, behind its own
sys.path.append(sys.argv[1])
from faithscope.experiments.cli import execute

if __name__ == "__main__":
    sys.exit(execute(sys.argv[2:]))
"""


def of_backend(folder: Path, backend: str) -> Path:
    """A run of the bundled model in float32, subject and judge in one."""
    files = folder / "models"
    files.mkdir(parents=True)
    file = {"name": BUNDLED, "dtype": "float32", "vllm": {"enforce_eager": True}}
    (files / "model.yaml").write_text(yaml.safe_dump(file))
    return config(
        folder,
        CASES,
        BUNDLED,
        model={"profiles": str(files)},
        generate={"backend": backend, "max_new_tokens": 24, "repetition_penalty": 1.2},
        inside={"model": BUNDLED},
        log_probs=True,
    )


def with_vllm(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`faithscope` in the environment that has vLLM."""
    script = folder / "command.py"
    script.write_text(COMMAND)
    here = sysconfig.get_paths()["purelib"]
    return subprocess.run(
        [str(vllm_here.python_of_vllm()), str(script), here, *arguments],
        env=vllm_here.environment(),
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


def ids(run_dir: Path) -> dict[tuple[str, str], list[int]]:
    stages = ("rf_baseline", "rf_intervened")
    return {(r["item"], r["variant"]): r["ids"] for r in read_records(run_dir, *stages)}


def test_a_run_with_vllm_in_process_is_the_run_without_it(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    command = ["run", str(of_backend(theirs, "vllm")), "--shard", "1/2"]
    planned = with_vllm(tmp_path, *command, "--dry-run")
    assert planned.returncode == 0, planned.stderr[-3000:]
    done = with_vllm(tmp_path, *command)
    assert done.returncode == 0, done.stderr[-5000:]
    assert execute(["run", str(of_backend(ours, "here")), "--shard", "1/2"]) == 0
    assert ids(theirs / "runs/rf") == ids(ours / "runs/rf")
    assert len(ids(theirs / "runs/rf")) == 2 * len(CASES)
    found, expected = (results(folder / "runs/rf") for folder in (theirs, ours))
    assert len(found.run.log_probs.groupby(["model", "item"])) == len(CASES)
    assert {r["item"] for r in found.frames.inside} == {case.item for case in CASES}
    rows = ["reader", "model", "item", "baseline_outcome", "intervened_outcome", "exclusion"]
    assert found.tables["rf_pairs"][rows].equals(expected.tables["rf_pairs"][rows])
