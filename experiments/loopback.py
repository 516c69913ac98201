"""Pages served to this machine alone.

A server listens on 127.0.0.1 at a port that the system gives, and answers only addresses that begin
with a random token and name this host: another user of the machine has not the token, a web page
that had its own name resolve to 127.0.0.1 has the wrong host. No path of a request becomes a
file's.
"""

from __future__ import annotations

import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"
Answer = tuple[int, str, str | bytes]
"""Status, kind, text."""
NOTHING: Answer = (404, "text/plain", "nothing here; open the address that was printed\n")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Server(ThreadingHTTPServer):
    """A page at an address that nobody else knows."""

    daemon_threads = True
    policy = POLICY
    """The content security policy that goes with every answer."""

    def __init__(self, handler: type[Handler]) -> None:
        super().__init__((HOST, 0), handler)
        self.token = secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.address = f"http://{HOST}:{self.server_port}/{self.token}/"

    def answer(self, asked: str) -> Answer:
        """What is to be had behind the token; `NOTHING` by default."""
        return NOTHING

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no event."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server_version, sys_version = "faithscope", ""
    timeout = 30

    @property
    def page(self) -> Server:
        assert isinstance(self.server, Server)
        return self.server

    def do_GET(self) -> None:
        asked = self.asked()
        self.send(*(NOTHING if asked is None else self.page.answer(asked)))

    def asked(self) -> str | None:
        """What stands behind the token; None where token or host are wrong."""
        _, _, behind = self.path.partition("/")
        token, slash, asked = behind.partition("/")
        known = secrets.compare_digest(token.encode(), self.page.token.encode())
        return asked if known and slash and self.headers.get("Host") in self.page.hosts else None

    def send(self, status: int, kind: str, text: str | bytes) -> None:
        """Answer with a text."""
        data = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def end_headers(self) -> None:
        headers = {
            "Content-Security-Policy": self.page.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request of ours without a word of what was asked."""
        self.send(code, "text/plain", "")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: addresses hold the token."""
