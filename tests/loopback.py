"""Servers on loopback: the tests' own ones in a thread, and real ones in a process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self) -> Any:
        """The JSON that was posted."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def send(self, status: int, body: Any, **headers: str):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.begin(status, len(raw), **headers)
        self.wfile.write(raw)

    def begin(self, status: int, length: int, **headers: str):
        """Sends the head of a reply; writing less than `length` bytes after it cuts the reply
        off."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def hang_up(self):
        self.close_connection = True
        self.connection.close()

    def log_message(self, format, *args):
        pass


class Server(ThreadingHTTPServer):
    """Serves until the block ends, and raises any error of its own."""

    daemon_threads = True

    def __init__(self, handler: type[Handler], port: int = 0):
        super().__init__(("127.0.0.1", port), handler)
        self.lock = threading.Lock()
        self.broken: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.shutdown()
        self.server_close()
        assert not self.broken, self.broken

    def handle_error(self, request, client_address):
        """Ignores broken connections, which some tests cause; other errors are bugs of the
        tests."""
        if not isinstance(error := sys.exception(), OSError | ValueError):
            self.broken.append(repr(error))


def free_port() -> int:
    """A port of loopback that no server listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def serving(
    command: list[str],
    log: Path,
    env: Mapping[str, str] = os.environ,
    patience: float = 300,
    *,
    host: str = "--host",
    health: str = "health",
) -> Iterator[str]:
    """Yields the base URL of a server in a separate process, once it is healthy.

    Args:
        command: the command without the address to listen at, which is added.
        patience: largest number of seconds for the start.
        host: the command's option for the address.
        health: the path that answers as soon as the server is healthy.
    """
    port = free_port()
    at = [f"{host}=127.0.0.1", f"--port={port}"]
    with log.open("w") as out:
        server = subprocess.Popen(
            [*command, *at], cwd=log.parent, env=env, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + patience
        while not _healthy(f"http://127.0.0.1:{port}/{health}"):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server ended or is too slow:\n{log.read_text()[-3000:]}")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _healthy(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except OSError:
        return False
    return True
