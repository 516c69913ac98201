"""A real model behind a real OpenAI-compatible server (`transformers serve`) on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(model: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """The base URL and the model's name there, until the block ends.

    Args:
        model: a folder that transformers can load.
        folder: where the log goes, and a link so that the model's name is no path.
    """
    name = model.name.partition("-1")[0] if model.name.endswith("-1") else model.name
    (folder / name).symlink_to(model)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", name]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu", "--dtype", "float32"]
    quiet = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf"), "OMP_NUM_THREADS": "1"}
    log = folder / "serve.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            command, cwd=folder, env=os.environ | quiet, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        _wait(server, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1", name
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait(server: subprocess.Popen, url: str, log: Path):
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError(f"the server ended:\n{log.read_text()[-3000:]}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"no answer from the server after two minutes:\n{log.read_text()[-3000:]}")
