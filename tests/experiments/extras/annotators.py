"""Chains to be labelled, pages that label them, and what stands in for an annotator's browser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import yaml

from faithscope.experiments.analysis.exports.chains_to_label import Chain, Source
from faithscope.experiments.cli import execute
from faithscope.experiments.extras.annotation.server import Server, server_for


def chain(i: int, **changed: Any) -> Chain:
    values: dict[str, Any] = {
        "place": ("org/model", "logic", f"q{i}"),
        "dataset": "logic",
        "question": f"Question {i}?",
        "options": ("Yes.", "No."),
        "parts": ((False, "Sure! "), (True, "First this. "), (True, "Then that. "), (True, "So.")),
        "tail": " The answer is (A).",
        "answer": "A",
        "kind": "choice",
        "gold": "AB"[i % 2],
    }
    return Chain(**values | changed)


class Client:
    """What a page of one annotator asks."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def raw(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        self.headers = dict(answer.getheaders())
        return answer.status, answer.read()

    def ask(self, what: str, **sent: Any) -> Any:
        path, kind = f"/{self.server.token}/{what}", "application/json"
        status, body = self.raw("POST", path, json.dumps(sent).encode(), Content_Type=kind)
        said = json.loads(body)
        assert status == 200 or "error" in said
        return said

    def label(self, chain: int, round: int = 1, done: bool = True, **changed: Any) -> Any:
        usual = {"label": 1, "confidence": "high", "steps": [], "principles": [], "reason": "So."}
        return self.ask("label", chain=chain, round=round, done=done, **usual | changed)


@contextmanager
def serving(source: Source, *names: str, limit: int | None = None) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(server_for(source, name, limit)) for name in names]
        for server in servers:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            stack.callback(server.shutdown)
        yield [Client(server) for server in servers]


def make_run(folder: Path, models: list[str], limit: dict[str, int]) -> Path:
    config = {
        "name": "traces",
        "out": str(folder),
        "model": {"name": models},
        "tasks": list(limit),
        "data": {"limit": limit},
        "generation": {"max_new_tokens": 256},
        "probes": ["flow"],
    }
    (folder / "traces.yaml").write_text(yaml.safe_dump(config))
    assert execute(["run", str(folder / "traces.yaml")]) == 0
    return folder / "traces"


@contextmanager
def command(run: Path, name: str, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`faithscope annotate` as a user starts it, and its address."""
    arguments = ["annotate", str(run), "--as", name, *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "faithscope.experiments.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        # a process that a shell put in the background ignores SIGINT from birth
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert process.stderr is not None
        yield process, process.stderr.readline().split()[3]
    finally:
        process.kill()
        process.wait()
