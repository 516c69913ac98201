"""Errors that a user can act on, told apart from bugs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Something the user gave cannot be used; the message names it and the remedy.

    A command prints the message on one line, without a traceback, and exits with 2.
    """


class NoRoom(UserError):
    """A text with what is to be written after it does not fit the model's positions."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'necessity'?` where a known word is close to `word`, else ``""``."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""
