"""The page on which one annotator labels, served to this machine alone.

It listens on 127.0.0.1 at a port that the system gives, and answers only addresses that begin with
a random token and name this host: another user of the machine has not the token, a web page that
had its own name resolve to 127.0.0.1 has the wrong host. No path of a request becomes a file's.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from faithscope.experiments.analysis.annotation.chains import Source, source_of
from faithscope.experiments.analysis.annotation.desk import Desk
from faithscope.experiments.analysis.annotation.export import write_export
from faithscope.experiments.analysis.annotation.labels import (
    alone,
    at_work,
    names_in,
    sample,
)
from faithscope.experiments.analysis.annotation.rounds import protocol_in
from faithscope.experiments.analysis.html import asset, environment
from faithscope.experiments.data.principles import POST_HOC, PRINCIPLES, SPURIOUS
from faithscope.interp.errors import UserError
from faithscope.interp.plain import visible

HOST = "127.0.0.1"
LONGEST_BODY = 200_000
NOTHING = (404, "text/plain", "nothing here; open the address that was printed\n")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def page(desk: Desk) -> str:
    """The page itself, without a word of a chain: those come as JSON and go in as text."""
    groups = {name: [p for p in PRINCIPLES if p.category == name] for name in (POST_HOC, SPURIOUS)}
    template = environment().get_template("annotate.html.jinja")
    name = desk.source.path.resolve().name
    return template.render(name=name, annotator=desk.name, groups=groups)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server_version, sys_version = "faithscope", ""
    timeout = 30

    def do_GET(self) -> None:
        self._send(*self._page().files.get(self._asked(), NOTHING))

    def do_POST(self) -> None:
        asked, desk = self._asked(), self._page().desk
        length = self.headers.get("Content-Length", "")
        actions: dict[str, Callable[[dict[str, Any]], Any]] = {
            "chains": desk.texts,
            "state": desk.state,
            "label": desk.say,
            "open": desk.open,
        }
        own = {None, *(f"http://{host}" for host in self._page().hosts)}
        if asked not in actions:
            self._send(*NOTHING)
        elif self.headers.get("Origin") not in own:
            self._send(403, "text/plain", "another page may not ask this\n")
        elif self.headers.get_content_type() != "application/json":
            self._send(415, "text/plain", "JSON alone is taken\n")
        elif not re.fullmatch(r"[0-9]{1,9}", length) or int(length) > LONGEST_BODY:
            self._send(413, "text/plain", f"give a length of at most {LONGEST_BODY} bytes\n")
        else:
            try:
                sent = json.loads(self.rfile.read(int(length)))
                if not isinstance(sent, dict):
                    raise UserError("is no object")
                status, said = 200, actions[asked](sent)
            except UserError as error:
                status, said = 409, {"error": visible(str(error))}
            except (ValueError, RecursionError) as error:
                status, said = 400, {"error": f"is not JSON ({error})"}
            self._send(status, "application/json", json.dumps(said))

    def _page(self) -> Server:
        assert isinstance(self.server, Server)
        return self.server

    def _asked(self) -> str:
        """What stands behind the token; None of ours where token or host are wrong."""
        _, _, behind = self.path.partition("/")
        token, slash, asked = behind.partition("/")
        known = secrets.compare_digest(token.encode(), self._page().token.encode())
        return asked if known and slash and self.headers.get("Host") in self._page().hosts else "/"

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request of ours without a word of what was asked."""
        self._send(code, "text/plain", "")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: addresses hold the token."""


class Server(ThreadingHTTPServer):
    """One annotator's page, at an address that nobody else knows."""

    daemon_threads = True

    def __init__(self, desk: Desk) -> None:
        super().__init__((HOST, 0), Handler)
        self.desk = desk
        self.token = secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.address = f"http://{HOST}:{self.server_port}/{self.token}/"
        self.files = {
            "": (200, "text/html", page(desk)),
            "annotate.js": (200, "text/javascript", asset("annotate.js")),
            "annotate.css": (200, "text/css", asset("report.css") + asset("annotate.css")),
        }

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no event."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


@contextmanager
def server_for(source: Source, name: str, limit: int | None = None) -> Iterator[Server]:
    """The page of one annotator, not yet served.

    Raises:
        UserError: as `sample`, `at_work` and `protocol_in`.
    """
    chains = sample(source, limit)
    with at_work(source.folder, name) as files:
        desk = Desk(source, name, chains, files)
        desk.state({"round": 1})  # what is damaged is said before anybody labels
        with Server(desk) as server:
            yield server
            # a label that is being written is written to its end, and none after it
            desk.lock.acquire()


def annotate(path: str | Path, name: str, limit: int | None = None) -> Path:
    """Serve the page until Ctrl-C, then write what both agree on; gives the folder of it."""
    with server_for(source_of(path), name, limit) as server:
        print(f"{name}: label at {server.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)
    return export(path)


def export(path: str | Path, out: Path | None = None) -> Path:
    """Write what the annotators of a run agree on; gives the folder.

    Args:
        out: `export` among the annotations by default.
    """
    source = source_of(path)
    if not names_in(source.folder):
        raise UserError(f"{source.path}: nobody has labelled it; begin with --as NAME")
    protocol = protocol_in(source.folder, sample(source))
    with alone(source.folder):
        return write_export(protocol, source, out or source.folder / "export")
