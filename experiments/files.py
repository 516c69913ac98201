"""Files that are written whole or not at all, and the error of what cannot be written."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from faithscope.interp.errors import UserError


class StoreError(UserError):
    """A run folder that cannot be used as asked."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """All of `content` or nothing of it, whatever happens meanwhile.

    What a killed process left half-written has one fixed name, and the next write takes it.

    Raises:
        StoreError: it cannot be written; what was there is as it was.
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


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk: a file that was synced is lost without its name.

    Systems that cannot sync folders (Windows, some network file systems) are let be.
    """
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


MORE_OPEN_FILES = "raise the limit on open files (ulimit -n 1024)"


def unwritable(path: Path, error: OSError) -> StoreError:
    """The line for a file or folder that cannot be written."""
    too_many = error.errno in (errno.EMFILE, errno.ENFILE)
    remedy = MORE_OPEN_FILES if too_many else "make room or allow it"
    return StoreError(
        f"{path}: cannot be written ({error.strerror}); {remedy}, and run again: "
        "it goes on from here"
    )


def make_folder(path: Path) -> Path:
    """`path`, made where it is missing.

    Raises:
        StoreError: it cannot be.
    """
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)
    except OSError as error:
        raise unwritable(path, error) from error
    return path
