"""Time and memory bounds around a program that came with a model's files."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class OutOfBounds(Exception):
    """The program passed a bound on time or memory; the message is a predicate ("does not end
    …")."""


@contextmanager
def bounded(seconds: float, n_bytes: int) -> Iterator[None]:
    """Ends the body of the `with` after `seconds`, or once it takes `n_bytes` of memory more.

    Time is bounded in the main thread alone, where a signal can end the program, and only if no
    other code waits for that signal; memory is bounded on Linux, where the process's own size is
    known.

    Raises:
        OutOfBounds: the bound on time or memory is passed.
    """
    with _ending_after(seconds), _within(n_bytes):
        yield


@contextmanager
def _ending_after(seconds: float) -> Iterator[None]:
    main = threading.current_thread() is threading.main_thread()
    if not main or sys.platform == "win32" or signal.getsignal(signal.SIGALRM) != signal.SIG_DFL:
        yield
        return

    def end(*_: object) -> None:
        raise OutOfBounds(f"does not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _within(n_bytes: int) -> Iterator[None]:
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = [x for x in (soft, hard) if x != resource.RLIM_INFINITY]
    tighter = min(size + n_bytes, *limits) if limits else size + n_bytes
    resource.setrlimit(resource.RLIMIT_AS, (tighter, hard))
    try:
        yield
    except MemoryError as error:
        raise OutOfBounds(f"takes more than {n_bytes / 1024**3:.3g} GB of memory") from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
