"""The local server of `faithscope annotate`: the page on which one annotator labels."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faithscope.experiments import loopback
from faithscope.experiments.analysis.exports.chains_to_label import Source, alone, sample, source_of
from faithscope.experiments.analysis.html import asset, environment, style
from faithscope.experiments.data.principles import POST_HOC, PRINCIPLES, SPURIOUS
from faithscope.experiments.extras.annotation.desk import Desk
from faithscope.experiments.extras.annotation.export import write_export
from faithscope.experiments.extras.annotation.labels import at_work, names_in
from faithscope.experiments.extras.annotation.rounds import protocol_in
from faithscope.interp.documents import json_of
from faithscope.interp.errors import UserError
from faithscope.interp.plain import visible

LONGEST_BODY = 200_000
PACKAGE = "faithscope.experiments.extras.annotation"
"""Package that holds the files of the page."""


def page(desk: Desk) -> str:
    """The HTML of the page, without chains; they come as JSON and are inserted as text."""
    groups = {name: [p for p in PRINCIPLES if p.category == name] for name in (POST_HOC, SPURIOUS)}
    template = environment().from_string(asset("annotate.html.jinja", PACKAGE))
    name = desk.source.path.resolve().name
    return template.render(name=name, annotator=desk.name, groups=groups)


class Handler(loopback.Handler):
    """Handles one request of the page: a POST with a JSON object."""

    def do_POST(self) -> None:
        assert isinstance(self.server, Server)
        asked, desk = self.asked(), self.server.desk
        length = self.headers.get("Content-Length", "")
        actions: dict[str, Callable[[dict[str, Any]], Any]] = {
            "chains": desk.texts,
            "state": desk.state,
            "label": desk.say,
            "open": desk.open,
        }
        own = {None, *(f"http://{host}" for host in self.page.hosts)}
        if asked not in actions:
            self.send(*loopback.NOTHING)
        elif self.headers.get("Origin") not in own:
            self.send(403, "text/plain", "another page may not ask this\n")
        elif self.headers.get_content_type() != "application/json":
            self.send(415, "text/plain", "JSON alone is taken\n")
        elif not re.fullmatch(r"[0-9]{1,9}", length) or int(length) > LONGEST_BODY:
            self.send(413, "text/plain", f"give a length of at most {LONGEST_BODY} bytes\n")
        else:
            try:
                sent = json_of(self.rfile.read(int(length)))
                if not isinstance(sent, dict):
                    raise UserError("is no object")
                status, said = 200, actions[asked](sent)
            except UserError as error:
                status, said = 409, {"error": visible(str(error))}
            except ValueError as error:
                status, said = 400, {"error": f"is not JSON ({error})"}
            self.send(status, "application/json", json.dumps(said))


class Server(loopback.Server):
    """Serves one annotator's page."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(Handler)
        self.desk = desk
        self.files: dict[str, loopback.Answer] = {
            "": (200, "text/html", page(desk)),
            "annotate.js": (200, "text/javascript", asset("annotate.js", PACKAGE)),
            "annotate.css": (200, "text/css", style("annotate.css", package=PACKAGE)),
        }

    def answer(self, asked: str) -> loopback.Answer:
        return self.files.get(asked, loopback.NOTHING)


@contextmanager
def server_for(source: Source, name: str, limit: int | None = None) -> Iterator[Server]:
    """Yields the server of one annotator's page, not yet serving.

    Raises:
        UserError: `sample`, `at_work` or `protocol_in` refuses.
    """
    chains = sample(source, limit)
    with at_work(source.folder, name) as files:
        desk = Desk(source, name, chains, files)
        desk.state({"round": 1})  # damaged files are reported before anybody labels
        with Server(desk) as server:
            yield server
            # wait until a label that is being written is complete, and admit no later one
            desk.lock.acquire()


def annotate(path: str | Path, name: str, limit: int | None = None) -> Path:
    """Serve the page until Ctrl-C, then write the export and return its folder."""
    with server_for(source_of(path), name, limit) as server:
        print(f"{name}: label at {server.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)
    return export(path)


def export(path: str | Path, out: Path | None = None) -> Path:
    """Write the labels on which the annotators of a run agree, and return the folder.

    Args:
        out: folder of the export; default `export` in the folder of the annotations.
    """
    source = source_of(path)
    if not names_in(source.folder):
        raise UserError(f"{source.path}: nobody has labelled it; begin with --as NAME")
    protocol = protocol_in(source.folder, sample(source))
    with alone(source.folder):
        return write_export(protocol, source, out or source.folder / "export")
