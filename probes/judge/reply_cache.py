"""Cache of Inspect's replies for other runs: a folder made here, for its owner alone.

Inspect reads cached replies with `pickle`, and a pickle can run any code of its writer. So replies
are read only from a folder that was made here and that no one else may write to; nothing beside it
is read, and only entries just written there are deleted.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faithscope.interp.errors import UserError
from faithscope.probes.judge.providers import redact

FOLDER = "faithscope-replies"
_ENTRY = re.compile(r"[0-9a-f]{32}")
"""File name of a cached reply: Inspect's MD5 of the request."""
_VARIABLE = "INSPECT_CACHE_DIR"


class ReplyCache:
    """A cache of replies below a folder that the user named."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER
        self._since = 0.0

    def check(self) -> None:
        """Make the folder, or check that an existing one is safe.

        Raises:
            UserError: the folder cannot be made, belongs to another user, or others may write to it
                or read it.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.folder.lstat()
        except OSError as error:
            raise UserError(f"cache: {self.folder}: cannot be used ({error.strerror})") from error
        why = ""
        if not stat.S_ISDIR(found.st_mode):
            why = "is a link or no folder"
        elif found.st_uid != os.geteuid():
            why = "belongs to another user"
        elif found.st_mode & 0o077:
            why = f"is open to others (mode {stat.S_IMODE(found.st_mode):o})"
        if why:
            raise UserError(
                f"cache: {self.folder} {why}, and a planted reply could run code here; delete it, "
                "or give another folder"
            )

    @contextmanager
    def used(self) -> Iterator[None]:
        """A context in which Inspect caches replies in this folder, and not in the user's home."""
        self.check()
        self._since = time.time()
        before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = str(self.folder)
        try:
            yield
        finally:
            if before is None:
                del os.environ[_VARIABLE]
            else:
                os.environ[_VARIABLE] = before

    def forget_secrets(self) -> None:
        """Delete the replies kept since `used` began that repeat a key."""
        for file in self.folder.rglob("*"):
            # file times may be coarser than the clock, hence the 2 seconds
            if not _ENTRY.fullmatch(file.name) or file.lstat().st_mtime < self._since - 2:
                continue
            text = file.read_bytes().decode("utf-8", "replace")
            if redact(text) != text:
                file.unlink(missing_ok=True)
