"""A run of C2-Faith killed while it writes what readers get: half of a file is never shown.

All judgements are there before, so that each start of the run does nothing but write.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faithscope.experiments.studies.c2faith.plan import FOLDER, FORMS

TRIES = 5
PATIENCE = 300
PAGE = "report.html"
FOLDERS = (FOLDER, FORMS, "arrays", "tables", "figures")
HALVES = (*(f"{folder}/.*.writing" for folder in FOLDERS), f".{PAGE}.writing")
"""What stands in the run folder while a file is being written, in the order of the writing."""

pytestmark = pytest.mark.slow


def shown(run_dir: Path) -> dict[str, bytes]:
    """What a reader finds, but for the page, which tells of every session."""
    files = (p for folder in FOLDERS for p in (run_dir / folder).glob("*") if p.is_file())
    seen = {str(p.relative_to(run_dir)): p for p in files if not p.name.startswith(".")}
    return {name: path.read_bytes() for name, path in sorted(seen.items())}


def command(config: Path, out: Path) -> list[str]:
    return ["run", str(config), "--set", f"out={out}"]


def kill_while_writing(arguments: list[str], run_dir: Path, half: str, sent: signal.Signals) -> int:
    """Start the run and send the signal while such a file is half-written; its exit code."""
    process = subprocess.Popen(
        [sys.executable, "-m", "faithscope.experiments.cli", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and not any(run_dir.glob(half)):
            assert time.monotonic() < deadline, f"{half} was never there"
            time.sleep(0.0002)
    finally:
        process.send_signal(sent)
        code = process.wait(PATIENCE)
    return code


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM], ids=lambda s: s.name)
def test_after_a_kill_at_every_folder_readers_find_whole_files_or_none(
    judged: Path, tmp_path: Path, sent: signal.Signals
) -> None:
    run_dir = tmp_path / judged.name
    shutil.copytree(judged, run_dir)
    arguments = command(judged.parents[1] / "c2.yaml", tmp_path)
    # by a process like those that are killed: the tests' own writes smaller fonts into PDFs
    program = [sys.executable, "-m", "faithscope.experiments.cli"]
    subprocess.run([*program, "report", str(run_dir)], check=True, capture_output=True)
    undisturbed = shown(run_dir)
    assert {Path(name).parts[0] for name in undisturbed} >= {"arrays", "tables", "figures"}
    page = run_dir / PAGE
    for half in HALVES:
        # on a busy machine the file may be whole before it is seen to be there
        for _ in range(TRIES):
            for folder in FOLDERS:
                shutil.rmtree(run_dir / folder, ignore_errors=True)
            for left in (page, run_dir / f".{PAGE}.writing"):
                left.unlink(missing_ok=True)
            code = kill_while_writing(arguments, run_dir, half, sent)
            if code != 0:
                break
        assert code != 0, f"{TRIES} times all was written before the signal came to {half}"
        for name, data in shown(run_dir).items():
            assert data == undisturbed[name], f"{name} after {sent.name} at {half}"
        assert not page.exists() or page.read_text("utf-8").rstrip().endswith("</html>")
    subprocess.run([*program, *arguments], check=True, capture_output=True)
    assert shown(run_dir) == undisturbed
    assert page.read_text("utf-8").rstrip().endswith("</html>")
    assert not [p for p in run_dir.rglob("*") if p.name.endswith(".writing")]
