"""Lock files, by which processes keep out of each other's way."""

from __future__ import annotations

import errno
import os
from typing import Any

from filelock import FileLock, Timeout

from faithscope.interp.errors import UserError

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""Errors of `flock` on a file system without locks."""


class Lock(FileLock):
    """A lock file that a process holds no longer than it lives.

    A file that stands for a lock while it exists is no substitute, since a killed process leaves
    it: a file system without locks is refused.
    """

    def acquire(self, *args: Any, **keywords: Any) -> Any:
        """Acquire the lock, as `filelock.FileLock` does.

        Raises:
            Timeout: another process holds it, where a time was given.
            UserError: the file system has no locks.
            OSError: the lock file cannot be opened.
        """
        try:
            return super().acquire(*args, **keywords)
        except Timeout:
            raise
        except (OSError, NotImplementedError) as error:
            if isinstance(error, OSError) and error.errno not in _NO_LOCKS:
                raise
            raise UserError(
                f"{self.lock_file}: this file system has no locks ({error}), without which two "
                "processes would write over each other; take a folder on another one, or let it be "
                "mounted with locks (Lustre: -o flock)"
            ) from error

    def _fallback_to_soft_lock(self) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
