"""Rules that a user states about a file of given chains and that every reader follows: the marks of
its reasoning, and the options of its questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from faithscope.interp.marks import Marks, StatedMarks, stated_pairs


@dataclass(frozen=True)
class ReadingRules:
    """What a user says of a file that its columns do not tell."""

    marks: StatedMarks | None = None
    """Marks of reasoning in replies; None for all known ones, with unknown ones refused."""
    options: tuple[str, ...] = ()
    """Options of every question that has none of its own, answered by their words."""

    @property
    def pairs(self) -> tuple[Marks, ...]:
        """The marks that count."""
        return stated_pairs(self.marks)


_NONE_STATED = ReadingRules()
_RULES: ContextVar[ReadingRules] = ContextVar("rules", default=_NONE_STATED)


def rules() -> ReadingRules:
    """The rules in force where a file is read."""
    return _RULES.get()


@contextmanager
def reading_by(stated: ReadingRules) -> Iterator[None]:
    """A context in which files are read by rules that a user states."""
    token = _RULES.set(stated)
    try:
        yield
    finally:
        _RULES.reset(token)
