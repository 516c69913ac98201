"""A hub that cannot be reached costs one try and a line for each thing that is wanted of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAM = "from faithscope.experiments.cli import main; main()"


@contextmanager
def hangs_up() -> Iterator[tuple[str, list[int]]]:
    """An address whose server hangs up on everyone, and a list with an entry for each."""
    calls: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                calls.append(1)
                connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{port}", calls


def said(folder: Path, endpoint: str, *arguments: str) -> tuple[int, str]:
    path = os.pathsep.join(filter(None, sys.path))
    asked = {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0", "HF_HOME": str(folder / "hf")}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=os.environ | asked | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ended.returncode, ended.stderr


@pytest.mark.slow
def test_a_dry_run_names_the_model_and_the_data_after_one_try(tmp_path: Path) -> None:
    with hangs_up() as (endpoint, calls):
        wanted = ("--set", "model.name=org/model", "--set", "tasks=gsm8k")
        code, err = said(tmp_path, endpoint, "run", "slrc", *wanted, "--dry-run")
    assert code == 2
    assert len(calls) == 1
    note, error = err.splitlines()
    assert note.startswith("note: model 'org/model' is not in this machine's cache")
    assert error.startswith("error: task 'gsm8k': could not load openai/gsm8k")
    assert f"{endpoint} cannot be reached" in note
    assert f"{endpoint} cannot be reached" in error


@pytest.mark.slow
def test_a_run_names_the_model_after_one_try(tmp_path: Path) -> None:
    with hangs_up() as (endpoint, calls):
        wanted = ("--set", "model.name=org/model", "--set", "tasks=single_cue")
        code, err = said(tmp_path, endpoint, "run", "slrc", *wanted)
    assert code == 2
    assert len(calls) == 1
    assert err.count("error:") == 1
    assert f"model 'org/model' is not in the cache, and {endpoint} cannot be reached" in err
    assert "Retry" not in err
