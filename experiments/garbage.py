"""Pauses Python's garbage collector where there is nothing to collect."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Context manager that pauses the garbage collector.

    While modules are imported, a plan is made or records are read, everything that is allocated
    stays in use. Collecting then costs a fifth of the time to start, and half the time to read.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()
