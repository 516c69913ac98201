"""The page itself: one file that opens from a disk, or served with the records behind it."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

from markupsafe import Markup

from faithscope.experiments.analysis.explorer.explored import Explored, to_json
from faithscope.experiments.analysis.html import asset, environment, policy
from faithscope.experiments.files import write_atomically

IN_CHUNK = 20
"""Traces whose records are unpacked together."""
LARGEST = 15_000_000
"""Bytes of the file; where it would have more, records are left to `faithscope view`."""


def write_explorer(path: Path, explored: Explored, largest: int = LARGEST) -> None:
    """Write the page with all its records, or without where they would make it too large."""
    whole = render(explored, _chunks(explored, largest))
    if len(whole.encode()) > largest:
        whole = render(explored, [])
    write_atomically(path, whole)


def render(explored: Explored, chunks: list[str], served: bool = False) -> str:
    """The page as text.

    Args:
        chunks: the records of `IN_CHUNK` traces each, packed; none for a page without records.
        served: whether records are to be had from where the page is.
    """
    records = "served" if served else "here" if chunks else "left_out"
    overview = explored.overview | {"records": records, "in_chunk": IN_CHUNK}
    return (
        environment()
        .get_template("explore.html.jinja")
        .render(
            policy=page_policy(served),
            script=Markup(_script()),
            style=Markup(asset("report.css") + asset("uplot.css") + asset("explore.css")),
            name=explored.name,
            lead=explored.lead,
            shared=explored.shared,
            overview=Markup(to_json(overview)),
            chunks=[Markup(chunk) for chunk in chunks],
            served=served,
        )
    )


def page_policy(served: bool) -> str:
    """The content security policy of the page: no network but the place it was served from."""
    return policy(_script()) + ("; connect-src 'self'" if served else "")


def _script() -> str:
    return asset("uplot.js") + asset("explore.js")


def _chunks(explored: Explored, largest: int) -> list[str]:
    """All records, packed; as many as a page can hold, then none."""
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
