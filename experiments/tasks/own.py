"""Tasks for questions of one's own, as in a notebook: one for each kind of answer."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.answers import first_choice, first_label, last_choice, last_label
from experiments.tasks.numeric import number_task
from experiments.tasks.task import LoadSettings, Task, surfaces, wordings
from interp.errors import UserError
from interventions.trace import AnswerKind, Question, Trace

NAME = "own"
"""Their name, and the data set of their questions."""


def own_task(kind: AnswerKind) -> Task:
    """The task in whose words a question of this kind is asked."""
    return _OWN[kind]


def _load(settings: LoadSettings) -> Iterable[Question]:
    raise UserError("questions of your own are given one by one: see experiments.traces.make_trace")


def _options(question: Question) -> tuple[str, ...]:
    return question.options or ()


def _labels(question: Question, trace: Trace | None) -> tuple[tuple[str, str], ...]:
    return surfaces(question.labels or ())


def _letters(question: Question, trace: Trace | None) -> tuple[tuple[str, str], ...]:
    return tuple((letter, f" {letter}") for letter in question.labels or ())


_LABEL = wordings()["label"].task(
    name=NAME,
    summary="a question answered by one of some words",
    kind="label",
    load=_load,
    parse=lambda text, question: last_label(text, _options(question)),
    parse_continuation=lambda text, question: first_label(text, _options(question)),
    labels=_labels,
)
_CHOICE = wordings()["choice"].task(
    name=NAME,
    summary="a question answered by a letter",
    kind="choice",
    load=_load,
    parse=lambda text, question: last_choice(text, len(_options(question))),
    parse_continuation=lambda text, question: first_choice(text, len(_options(question))),
    labels=_letters,
)
_OWN: dict[AnswerKind, Task] = {
    "number": number_task(NAME, "a question answered by a number", _load),
    "label": _LABEL,
    "choice": _CHOICE,
}
