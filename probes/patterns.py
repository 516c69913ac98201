"""Patterns that users write: checked when they are read, and matched for a bounded time alone.

A pattern with repeats in repeats, such as `(a+)+$`, may take longer than any run lasts.
"""

from __future__ import annotations

from typing import Any

import regex

from faithscope.interp.errors import UserError

PATIENCE = 5.0
"""Longest time (s) for which a pattern is matched with one text."""


def pattern_problem(pattern: Any) -> str | None:
    """Why a value is no regular expression; None if it is one."""
    try:
        regex.compile(pattern)
    except (regex.error, TypeError) as error:
        return f"{pattern!r} is no regular expression: {error}"
    return None


def matched(
    pattern: str, text: str, key: str, item: str, *, any_case: bool = False, first: bool = False
) -> list[tuple[int, int]]:
    """Half-open spans of the characters of all matches, in order, also of those that are empty.

    Args:
        key: what the pattern is, which the error names (`spans.expert`).
        item: id of the item whose text it is.
        any_case: whether upper and lower case are one.
        first: whether only the first match is wanted.

    Raises:
        UserError: it takes more than `PATIENCE` seconds.
    """
    flags = regex.IGNORECASE if any_case else 0
    try:
        if first:
            found = regex.search(pattern, text, flags, timeout=PATIENCE)
            return [found.span()] if found else []
        return [m.span() for m in regex.finditer(pattern, text, flags, timeout=PATIENCE)]
    except TimeoutError:
        raise UserError(
            f"{key}: matching {pattern!r} with the text of item {item!r} takes more than "
            f"{PATIENCE:g} s; write it without repeats in repeats"
        ) from None
