"""Append-only files, so that a killed process loses at most what it was adding."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from faithscope.experiments.files import StoreError, sync_folder, unwritable


class Appender:
    """Context manager that appends to files and keeps each of them open."""

    def __init__(self, sync: bool = False) -> None:
        self.sync = sync
        """Whether appended data is on the disk when `add` returns; inside `in_groups`, once `flush`
        has returned."""
        self.late: dict[Path, BinaryIO] = {}
        """Path -> file, of those with data that waits for `flush`."""
        self._in_groups = False
        self._files: dict[Path, BinaryIO] = {}

    def __enter__(self) -> Appender:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def add(self, path: Path, data: bytes) -> int:
        """Append all of `data` or nothing; returns the offset at which it begins.

        Raises:
            StoreError: the file cannot be written, as on a full disk.
        """
        try:
            if path not in self._files:
                # unbuffered, so that no data is thought to be in the file that is not
                new = not path.exists()
                self._files[path] = path.open("ab", buffering=0)
                if new and self.sync:
                    sync_folder(path.parent)
            file = self._files[path]
            offset = _add(file, data)
            if self._in_groups:
                self.late[path] = file
            elif self.sync:
                os.fsync(file.fileno())
        except OSError as error:
            raise unwritable(path, error) from error
        return offset

    @contextmanager
    def in_groups(self) -> Iterator[None]:
        """A context in which added data gets to the disk by `flush`, which many additions share,
        and at the end of the context."""
        self._in_groups = self.sync
        try:
            yield
        finally:
            self._in_groups = False
            self.flush()

    def flush(self) -> None:
        """Bring to the disk what was added before this call. Another thread may add meanwhile.

        Raises:
            StoreError: a file cannot be written.
        """
        for path in list(self.late):
            # taken off first, since what is added from here on needs another flush
            file = self.late.pop(path)
            try:
                os.fsync(file.fileno())
            except OSError as error:
                raise unwritable(path, error) from error

    def close(self) -> None:
        while self._files:
            self._files.popitem()[1].close()


def _add(file: BinaryIO, data: bytes) -> int:
    offset = file.seek(0, os.SEEK_END)
    left = memoryview(data)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError:
        # a full disk may have taken a part of the data
        file.truncate(offset)
        raise
    return offset


def cut_torn_line(path: Path) -> int:
    """Drop what follows the last newline of a file; returns the number of bytes dropped."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        keep = end
        while keep > 0:
            start = max(0, keep - (1 << 16))
            file.seek(start)
            newline = file.read(keep - start).rfind(b"\n")
            if newline >= 0:
                keep = start + newline + 1
                break
            keep = start
        if keep < end:
            file.truncate(keep)
            os.fsync(file.fileno())
    return end - keep


def whole_lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields (offset, line) of the complete lines from an offset on; a torn last line is
    skipped."""
    with path.open("rb", buffering=1 << 20) as file:
        file.seek(start)
        for line in file:
            if line.endswith(b"\n") and line.strip():
                yield start, line
            start += len(line)


def damaged(path: Path, offset: int, error: Exception, lost: str) -> StoreError:
    """The error for a complete line that faithscope did not write so.

    Args:
        offset: where the line begins.
        error: why it cannot be read.
        lost: clause that says what deleting the line costs (`its item is redone`).
    """
    reason = " ".join(str(error).split())[:80]
    number = path.read_bytes()[:offset].count(b"\n") + 1
    return StoreError(
        f"{path}: line {number} is damaged ({reason}); faithscope repair drops it, with whatever "
        f"else is damaged in this run folder: {lost}"
    )
