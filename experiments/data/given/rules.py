"""Rules that a user states about a file of given chains and that every reader follows: the marks of
its reasoning, the options of its questions, and how it writes right answers; and what readers have
to say of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from faithscope.interp.marks import Marks, StatedMarks, stated_pairs

GoldIs = Literal["index0", "index1", "letter", "text"]


@dataclass(frozen=True)
class ReadingRules:
    """What a user says of a file that its columns do not tell."""

    marks: StatedMarks | None = None
    """Marks of reasoning in replies; None for all known ones, with unknown ones refused."""
    options: tuple[str, ...] = ()
    """Options of every question that has none of its own, answered by their words."""
    gold_is: GoldIs | None = None
    """How the columns of the right answer name an option: its index from 0 or from 1, its letter,
    or its text; None for a letter or a text."""

    @property
    def pairs(self) -> tuple[Marks, ...]:
        """The marks that count."""
        return stated_pairs(self.marks)


@dataclass
class ReadingNotes:
    """What readers say of a file besides its chains."""

    notes: Counter[str] = field(default_factory=Counter)
    """How something is read that the columns do not say outright -> number of chains."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Why samples are no chains -> their number."""


_NONE_STATED = ReadingRules()
_RULES: ContextVar[ReadingRules] = ContextVar("rules", default=_NONE_STATED)
_NOTES: ContextVar[ReadingNotes | None] = ContextVar("notes", default=None)


def rules() -> ReadingRules:
    """The rules in force where a file is read."""
    return _RULES.get()


def note(text: str) -> None:
    """Notes how a chain is read."""
    if (notes := _NOTES.get()) is not None:
        notes.notes[text] += 1


def leave_out(reason: str) -> bool:
    """Counts a sample as left out; False where nobody counts, so that it has to be refused."""
    notes = _NOTES.get()
    if notes is not None:
        notes.left_out[reason] += 1
    return notes is not None


@contextmanager
def reading_by(stated: ReadingRules) -> Iterator[ReadingNotes]:
    """A context in which files are read by rules that a user states, and what readers note is
    collected."""
    notes = ReadingNotes()
    tokens = _RULES.set(stated), _NOTES.set(notes)
    try:
        yield notes
    finally:
        _RULES.reset(tokens[0])
        _NOTES.reset(tokens[1])
