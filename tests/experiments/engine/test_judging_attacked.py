"""A judge on 200 connections whose server misbehaves and dies, and whose run is interrupted and
killed: every chain is judged once, and no reply that was stored is asked for again."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

import yaml

from faithscope.experiments.engine.models.account import calls_of
from faithscope.experiments.engine.store import read_failures, read_records

N, CONNECTIONS, SECONDS = 400, 200, 0.5
STAGE = "judge_generated.api-openai-api-local-m.faithful_judge"
VERDICT = json.dumps({"classification": 1, "reasoning_summary": "It follows."})
BURST = {"retry-after-ms": "50"}


class Attacker:
    """A server of chat completions whose replies to the first request about a chain are bad."""

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()
        self.held = self.most = 0
        self.port, self.loop, self.server = 0, asyncio.new_event_loop(), None
        self._writers: set[asyncio.StreamWriter] = set()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.start()

    def start(self) -> None:
        asyncio.run_coroutine_threadsafe(self._start(), self.loop).result()

    def die(self) -> None:
        """Stop listening, and break every connection."""
        asyncio.run_coroutine_threadsafe(self._die(), self.loop).result()

    async def _start(self) -> None:
        self.server = await asyncio.start_server(
            self._connection, "127.0.0.1", self.port, backlog=1024
        )
        self.port = self.server.sockets[0].getsockname()[1]

    async def _die(self) -> None:
        assert self.server is not None
        self.server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                (length,) = re.findall(rb"content-length: (\d+)", head)
                body = await reader.readexactly(int(length))
                (chain,) = re.findall(rb"last sum of chain (\d+)", body)
                self.held += 1
                self.most = max(self.most, self.held)
                try:
                    if not await self._reply(int(chain), reader, writer):
                        break
                finally:
                    self.held -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _reply(
        self, chain: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection goes on."""
        self.asked[chain] += 1
        fault = chain % 20 if self.asked[chain] == 1 else None
        if fault == 0:
            await reader.read(1)  # until who asked gives up
            return False
        await asyncio.sleep(SECONDS)
        good = completion(VERDICT)
        whole = {
            1: sent(429, b"{}", BURST),
            2: sent(500, b"{}", BURST),
            3: sent(200, good.replace(b"follows", b"\xff\xfe\xfd")),
            4: sent(200, completion("x" * 5_000_000)),
            5: sent(200, good)[:-200],
            6: sent(200, b"[" * 200_000),
        }.get(fault, sent(200, good))
        writer.write(whole)
        await writer.drain()
        return fault != 5


def completion(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17}
    about = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps({**about, "choices": [choice], "usage": usage}).encode()


def sent(status: int, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    lines = {"content-type": "application/json", "content-length": len(body), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body


def stored(run: Path) -> set[str]:
    """Chains whose line is whole."""
    files = (run / "records").glob("judge_generated.*.jsonl")
    found = [json.loads(x) for f in files for x in f.read_bytes().split(b"\n")[:-1]]
    return {x["item"] for x in found if not x["failed"]}


@pytest.mark.slow
def test_nothing_is_lost_or_asked_again(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    server = Attacker()
    chains = tmp_path / "chains.jsonl"
    rows = [
        {"id": str(i), "question": f"What is the last sum of chain {i}?", "steps": ["a", "b"]}
        for i in range(N)
    ]
    chains.write_text("".join(json.dumps(row | {"answer": "15"}) + "\n" for row in rows))
    judges = {"model": "api:openai-api/local/m", "forms": ["faithful_judge"], "max_tokens": 1000}
    judges |= {"base_url": f"http://127.0.0.1:{server.port}/v1", "timeout": 40, "max_retries": 3}
    config = {"name": "r", "out": str(tmp_path), "model": {"name": []}, "probes": []}
    config |= {"traces": {"path": str(chains)}}
    config |= {"judges": judges | {"max_connections": CONNECTIONS}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    run = tmp_path / "r"
    command = [sys.executable, "-m", "faithscope.experiments.cli", "run", str(tmp_path / "c.yaml")]
    errors, latest = tmp_path / "errors", time.monotonic() + 1200

    def start() -> subprocess.Popen[bytes]:
        with errors.open("wb") as file:
            process = subprocess.Popen(command, stderr=file, preexec_fn=default_interrupts)
        request.addfinalizer(process.kill)
        return process

    def until(process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
        while not reached():
            assert process.poll() is None, errors.read_text()
            assert time.monotonic() < latest, errors.read_text()
            time.sleep(0.1)

    def end(process: subprocess.Popen[bytes]) -> int:
        while process.poll() is None and time.monotonic() < latest:
            time.sleep(0.1)
        process.kill()
        return process.wait()

    for interruption in (signal.SIGINT, signal.SIGKILL):
        before = len(stored(run))
        process = start()
        until(process, lambda n=before + 60: len(stored(run)) >= n and server.held > 50)
        kept, asked = stored(run), server.asked.copy()
        process.send_signal(interruption)
        assert end(process) == (130 if interruption == signal.SIGINT else -9), errors.read_text()
        assert kept <= stored(run)
        assert all(server.asked[int(i)] == asked[int(i)] for i in kept)
    kept, asked = stored(run), server.asked.copy()
    process = start()
    until(process, lambda: len(stored(run)) >= len(kept) + 50)
    server.die()
    time.sleep(2)
    server.start()
    code = end(process)
    while code == 3 and read_failures(run):
        # chains that had a bad time four times in a row are named, and asked about again
        assert all(re.search(r"Connect|Timeout|timed out", f.failed) for f in read_failures(run))
        code = end(start())
    assert code == 0, errors.read_text()
    records = read_records(run, STAGE)
    assert sorted(int(r["item"]) for r in records) == list(range(N))
    assert {r["outcome"] for r in records} == {"parsed"}
    assert all(server.asked[int(i)] == asked[int(i)] for i in kept), "stored, and asked again"
    assert server.most <= CONNECTIONS
    assert sum(c.usage.calls for c in calls_of(run)) >= N


def default_interrupts() -> None:
    """A process that a shell put in the background ignores SIGINT from birth."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setpgrp()
