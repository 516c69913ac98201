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
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from faithscope.experiments.analysis.annotation.chains import Chain, Source, source_of
from faithscope.experiments.analysis.annotation.export import write_export
from faithscope.experiments.analysis.annotation.labels import (
    Annotator,
    Label,
    at_work,
    names_in,
    read_label,
    sample,
)
from faithscope.experiments.analysis.annotation.rounds import (
    ROUNDS,
    Protocol,
    differences,
    protocol_in,
)
from faithscope.experiments.analysis.html import asset, environment
from faithscope.experiments.analysis.records import Place
from faithscope.experiments.data.principles import POST_HOC, PRINCIPLES, SPURIOUS
from faithscope.experiments.engine.append import Appender
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


@dataclass(frozen=True)
class Desk:
    """What one annotator has before them; every method may be called from any thread.

    Those that take what a page sent raise UserError where it is wrong, or not to be said now.
    """

    source: Source
    name: str
    chains: tuple[Chain, ...]
    files: Appender
    annotators: dict[str, Annotator] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def texts(self, _: Any = None) -> list[dict[str, Any]]:
        """The chains as the page shows them: nothing of who wrote them or of what is right."""
        return [
            {
                "question": visible(chain.question),
                "options": [visible(option) for option in chain.options],
                "parts": [[is_step, visible(text)] for is_step, text in chain.parts],
                "tail": visible(chain.tail),
                "answer": None if chain.answer is None else visible(chain.answer),
            }
            for chain in self.chains
        ]

    def state(self, sent: dict[str, Any]) -> dict[str, Any]:
        """How far the rounds are, and of one its chains with what may be seen of their labels."""
        with self.lock:
            round, protocol, own = self._round(sent)
            other = next((a for a in protocol.annotators if a is not own), None)
            if round not in own.opened:
                raise UserError(f"round {round} is not open yet")
            listed = {n: protocol.listed(n) for n in ROUNDS if protocol.may_open(n)}
            rounds = [
                {
                    "round": n,
                    "listed": len(listed[n]) if n in listed else None,
                    "done": protocol.done(own, n) if n in listed else 0,
                    "other_done": protocol.done(other, n) if other and n in listed else 0,
                    "open": n in own.opened,
                    "closed": protocol.closed(n),
                }
                for n in ROUNDS
            ]
            places = {chain.place: i for i, chain in enumerate(self.chains)}
            items = [
                {"chain": places[place], **_seen(own, other, place, round)}
                for place in listed[round]
            ]
            whose = other.name if other else None
            return {"round": round, "other": whose, "rounds": rounds, "items": items}

    def say(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Store a label; gives the state of its round."""
        with self.lock:
            round, protocol, own = self._round(sent)
            chain = self.chains[_one_of(range(len(self.chains)), sent, "chain")]
            label = read_label({k: v for k, v in sent.items() if k != "chain"}, chain)
            if round not in own.opened or chain.place not in protocol.listed(round):
                raise UserError(f"round {round} is not open, or not about this chain")
            if protocol.closed(round):
                raise UserError(f"round {round} is over: one of you has gone on to the next")
            own.add(self.files, label.model_dump())
            return self.state(sent)

    def open(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Go on to a round; gives its state."""
        with self.lock:
            round, protocol, own = self._round(sent)
            if not protocol.may_open(round):
                raise UserError(f"round {round} opens when both are done with the one before")
            if round not in own.opened:
                own.add(self.files, {"opened": round})
            return self.state(sent)

    def _round(self, sent: dict[str, Any]) -> tuple[int, Protocol, Annotator]:
        protocol = protocol_in(self.source.folder, self.chains, self.annotators)
        return _one_of(ROUNDS, sent, "round"), protocol, self.annotators[self.name]


def _one_of(known: Sequence[int], sent: dict[str, Any], name: str) -> int:
    if type(value := sent.get(name)) is not int or value not in known:
        raise UserError(f"{name}: cannot be {str(value)[:60]!r}")
    return value


def _seen(own: Annotator, other: Annotator | None, place: Place, round: int) -> dict[str, Any]:
    """What an annotator may see of the labels of a chain in a round."""
    before = own.standing(place, round - 1) or Label(round=1, place=place, reason="")
    # what they said before is theirs again once they save it
    mine = own.labels.get((round, place)) or before.model_copy(update={"done": False})
    # in round III two people talk: each sees the other's last word
    to = round if round == ROUNDS[-1] else round - 1
    said = other.standing(place, to) if other and round > 1 else None
    theirs = None if said is None else _sent(said)
    differs = [] if said is None else differences(mine, said)
    return {"own": _sent(mine), "other": theirs, "differs": differs}


def _sent(label: Label) -> dict[str, Any]:
    values = label.model_dump(exclude={"round", "place"})
    return values | {"reason": visible(label.reason)}


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
        asked, desk, length = (
            self._asked(),
            self._page().desk,
            self.headers.get("Content-Length", ""),
        )
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
    return write_export(protocol, source, out or source.folder / "export")
