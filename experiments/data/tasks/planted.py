"""The planted models' arithmetic as tasks: `planted`, other lengths, and `planted_select`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from faithscope.experiments.data.planted.data import ANSWER_CUE, DIGITS, parse_answer
from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.data.planted.questions import questions
from faithscope.interventions.trace import Question

__all__ = [
    "ANSWER_CUE",
    "labels",
    "parse",
    "planted_questions",
    "prompt",
    "reprompt",
]


class _Settings(Protocol):
    @property
    def path(self) -> Path | None: ...
    @property
    def limit(self) -> int | None: ...
    @property
    def seed(self) -> int: ...


DEFAULT_LIMIT = 100
"""How many questions are drawn where no limit is set: the generator has no end."""


def planted_questions(task: str, settings: _Settings) -> list[Question]:
    """The questions of a task: the same for every planted model that reads them.

    Raises:
        ValueError: a task of no planted model.
    """
    reader = next((p.name for p in PLANTS.values() if p.task == task), None)
    if reader is None:
        raise ValueError(f"task {task!r} is read by no planted model")
    return questions(reader, settings.limit or DEFAULT_LIMIT, settings.seed)


def prompt(question: Question) -> str:
    """The question alone: a planted model has learnt no instruction."""
    return question.text


def parse(text: str, question: Question) -> str | None:
    """The digit after the last answer cue, or the first word of `text` if that is a digit.

    The second reads what a model writes when the cue itself was given. None otherwise.
    """
    said = parse_answer(text)
    if said is not None:
        return said
    words = text.split(maxsplit=1)
    return words[0] if words and words[0] in DIGITS else None


def labels(question: Question, trace_text: str = "") -> tuple[tuple[str, str], ...]:
    """The ten digits, each with the text it is scored as."""
    return tuple((digit, f" {digit}") for digit in DIGITS)


def reprompt(question: Question, steps: Sequence[str]) -> str:
    """The question followed by the steps that are left, as if the model had written them."""
    return " ".join((question.text, *(step.strip() for step in steps)))
