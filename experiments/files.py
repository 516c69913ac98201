"""Atomic writing of files, and the errors for what cannot be written."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from faithscope.interp.errors import UserError


class StoreError(UserError):
    """A run folder, or a file in it, cannot be used as asked."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file as a whole or not at all, even if the process is killed meanwhile.

    The content is written to a temporary file beside it, `.NAME.writing`, which then replaces it. A
    temporary file that a killed process left is overwritten by the next write.

    Raises:
        StoreError: the file cannot be written; its former content is unchanged.
    """
    half = path.with_name(f".{path.name}.writing")
    try:
        with half.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(half, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            half.unlink()
        raise unwritable(path, error) from error


def remove(path: Path) -> None:
    """Remove a file if it is there.

    Raises:
        StoreError: it cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to the disk, since a synced file is lost without its name.

    Nothing is done on systems that cannot sync folders (Windows, some network file systems).
    """
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


MORE_OPEN_FILES = "raise the limit on open files (ulimit -n 1024)"
"""Remedy for the error that too many files are open."""


def unwritable(path: Path, error: OSError) -> StoreError:
    """The error for a file or folder that cannot be written, with the remedy."""
    too_many = error.errno in (errno.EMFILE, errno.ENFILE)
    remedy = MORE_OPEN_FILES if too_many else "make room or allow it"
    return StoreError(
        f"{path}: cannot be written ({error.strerror}); {remedy}, and run again: "
        "it goes on from here"
    )


def make_folder(path: Path) -> Path:
    """Make a folder and its parents where they are missing; returns its path.

    Raises:
        StoreError: the folder cannot be made.
    """
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)
    except OSError as error:
        raise unwritable(path, error) from error
    return path
