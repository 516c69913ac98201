"""The local server of `faithscope view`: the page of a comparison with records of any size."""

from __future__ import annotations

import re
import sys

from faithscope.experiments import loopback
from faithscope.experiments.analysis.explorer.data import Explored, to_json
from faithscope.experiments.analysis.explorer.page import IN_CHUNK, page_policy, render


class Server(loopback.Server):
    """Serves the page of one comparison and, in chunks, the records of its traces."""

    policy = page_policy(served=True)

    def __init__(self, explored: Explored) -> None:
        super().__init__(loopback.Handler)
        self.explored = explored
        self.page = render(explored, [], served=True)

    def answer(self, asked: str) -> loopback.Answer:
        if not asked:
            return 200, "text/html", self.page
        begin = re.fullmatch(r"records/([0-9]{1,7})", asked)
        first = int(begin[1]) * IN_CHUNK if begin else len(self.explored)
        if first >= len(self.explored):
            return loopback.NOTHING
        traces = range(first, min(first + IN_CHUNK, len(self.explored)))
        return 200, "application/json", to_json([self.explored.detail(at) for at in traces])


def view(explored: Explored) -> None:
    """Serve the page until Ctrl-C."""
    with Server(explored) as server:
        print(f"explore at {server.address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print(file=sys.stderr)
