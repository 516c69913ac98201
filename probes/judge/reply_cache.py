"""Where Inspect keeps replies for other runs: a folder of our own making, for its owner alone.

Inspect reads what it kept with `pickle`, and a pickle runs whatever its writer wanted. So replies
are read only from a folder that was made here and that no one else may write to; nothing that lies
beside it is read, and nothing but what was just written there is deleted.
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
"""The name of a kept reply: Inspect's MD5 of what was asked."""
_VARIABLE = "INSPECT_CACHE_DIR"


class ReplyCache:
    """Replies kept below a folder that a user named."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER
        self._since = 0.0

    def check(self) -> None:
        """Make the folder, or see that it is ours.

        Raises:
            UserError: it cannot be made, is another's, or others may write to it or read it.
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
        """Have Inspect keep its replies there, and not in the user's home."""
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
            # file times may be coarser than the clock
            if not _ENTRY.fullmatch(file.name) or file.lstat().st_mtime < self._since - 2:
                continue
            text = file.read_bytes().decode("utf-8", "replace")
            if redact(text) != text:
                file.unlink(missing_ok=True)
