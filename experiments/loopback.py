"""Local web server for pages that only the user of this machine may see.

A server listens on 127.0.0.1 at a free port, and answers only requests whose path begins with a
random token and whose host is this machine. Other users of the machine lack the token; a web page
whose name resolves to 127.0.0.1 sends the wrong host. The path of a request is never used as the
path of a file.
"""

from __future__ import annotations

import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"
Answer = tuple[int, str, str | bytes]
"""HTTP response: (status, content type, body)."""
NOTHING: Answer = (404, "text/plain", "nothing here; open the address that was printed\n")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Server(ThreadingHTTPServer):
    """Server of a page at an address with a secret token."""

    daemon_threads = True
    policy = POLICY
    """Content security policy that is sent with every answer."""

    def __init__(self, handler: type[Handler]) -> None:
        super().__init__((HOST, 0), handler)
        self.token = secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.address = f"http://{HOST}:{self.server_port}/{self.token}/"

    def answer(self, asked: str) -> Answer:
        """The response to a GET request for `asked`, the path after the token; `NOTHING` unless a
        subclass overrides it."""
        return NOTHING

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that closes the connection; report any other error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Handler of one HTTP request, which checks token and host."""

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
        """The path after the token; None where the token or the host is wrong."""
        _, _, behind = self.path.partition("/")
        token, slash, asked = behind.partition("/")
        known = secrets.compare_digest(token.encode(), self.page.token.encode())
        return asked if known and slash and self.headers.get("Host") in self.page.hosts else None

    def send(self, status: int, kind: str, text: str | bytes) -> None:
        """Send a response with a body."""
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
        """Answer a malformed request with an empty body, which repeats nothing of the request."""
        self.send(code, "text/plain", "")

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, since addresses contain the token."""
