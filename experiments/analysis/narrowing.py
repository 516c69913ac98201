"""Of many places in a run, those that a person names, or an error that says what there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.plain import visible

LISTED = 8
P = TypeVar("P")
Narrowing = tuple[str, str | None, Callable[[P], Sequence[str]]]
"""(what is asked for, the name asked for or None for all, the names that a place goes by)."""


def narrowed(places: Sequence[P], by: Iterable[Narrowing[P]], what_they_are: str) -> list[P]:
    """The places that go by every name asked for, as it is or as the terminal shows it.

    Raises:
        UserError: nothing is left; names the first that fits nothing, and what was meant.
    """
    left = list(places)
    for what, wanted, names in by:
        if wanted is None:
            continue
        known = list(dict.fromkeys(visible(name) for place in left for name in names(place)))
        left = [p for p in left if wanted in (n for x in names(p) for n in (x, visible(x)))]
        if not left:
            guess = did_you_mean(wanted, known) or listed(known)
            raise UserError(f"no {what} {wanted!r} among the {what_they_are} of this run{guess}")
    return left


def listed(known: Sequence[str]) -> str:
    """Some of the names there are, for an error."""
    more = f", … ({len(known)} in all)" if len(known) > LISTED else ""
    return f"; there are {', '.join(map(repr, known[:LISTED]))}{more}"
