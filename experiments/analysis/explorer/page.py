"""The HTML of `explore.html`: a single file that opens from disk, or a page of a local server."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

from markupsafe import Markup

from faithscope.experiments.analysis.explorer.data import Explored, to_json
from faithscope.experiments.analysis.html import asset, environment, policy, style
from faithscope.experiments.files import write_atomically

IN_CHUNK = 20
"""Number of traces whose records form one compressed chunk."""
LARGEST = 15_000_000
"""Largest size of the file in bytes; a larger one is written without records, which
`faithscope view` then serves."""


def write_explorer(path: Path, explored: Explored, largest: int = LARGEST) -> None:
    """Write the page with all its records, or without them if it would exceed `largest` bytes."""
    whole = render(explored, _chunks(explored, largest))
    if len(whole.encode()) > largest:
        whole = render(explored, [])
    write_atomically(path, whole)


def render(explored: Explored, chunks: list[str], served: bool = False) -> str:
    """The page as HTML text.

    Args:
        chunks: compressed records of `IN_CHUNK` traces each; empty for a page without records.
        served: whether the page gets its records from the server that it came from.
    """
    records = "served" if served else "here" if chunks else "left_out"
    overview = explored.overview | {"records": records, "in_chunk": IN_CHUNK}
    return (
        environment()
        .get_template("explore.html.jinja")
        .render(
            policy=page_policy(served),
            script=Markup(_script()),
            style=Markup(style("uplot.css", "explore.css")),
            name=explored.name,
            lead=explored.lead,
            shared=explored.shared,
            overview=Markup(to_json(overview)),
            chunks=[Markup(chunk) for chunk in chunks],
            served=served,
        )
    )


def page_policy(served: bool) -> str:
    """The content security policy of the page: no network access but to its own server."""
    return policy(_script()) + ("; connect-src 'self'" if served else "")


def _script() -> str:
    return asset("uplot.js") + asset("steps.js") + asset("explore.js")


def _chunks(explored: Explored, largest: int) -> list[str]:
    """All records in compressed chunks; empty if they exceed `largest` bytes."""
    chunks: list[str] = []
    size = 0
    for begin in range(0, len(explored), IN_CHUNK):
        end = min(begin + IN_CHUNK, len(explored))
        text = to_json([explored.detail(at) for at in range(begin, end)])
        packed = base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
        size += len(packed)
        if size > largest:
            return []
        chunks.append(packed)
    return chunks
