"""Fingerprints that tell files from others of the same name."""

from __future__ import annotations

import hashlib
from pathlib import Path

_STRETCH, _STRETCHES = 1 << 20, 32


def folder_fingerprint(path: Path, kinds: tuple[str, ...] = ("",)) -> str:
    """A digest of a folder's files, or of one file: sizes, and stretches of a megabyte throughout.

    Args:
        kinds: endings of the folder's files that count; all by default.
    """
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    files = [p for p in files if p.name.endswith(kinds) or p == path]
    digest = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name}:{size}:".encode())
        # a small file is read whole; of a large one both ends and evenly spaced stretches between
        last = max(0, size - _STRETCH)
        starts = sorted({last * i // _STRETCHES for i in range(_STRETCHES + 1)})
        with file.open("rb") as opened:
            for start in starts if size > _STRETCH * _STRETCHES else range(0, size, _STRETCH):
                opened.seek(start)
                digest.update(opened.read(_STRETCH))
    return digest.hexdigest()
