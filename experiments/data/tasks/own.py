"""Questions of one's own: from a file (`data.path`, see docs/data.md), or one in a notebook.

One task for answers of every kind: each question is asked in the words of its own kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from faithscope.experiments.data.answers import first_choice, first_label, last_choice, last_label
from faithscope.experiments.data.numbers import find_numbers
from faithscope.experiments.data.tasks.choice import letters
from faithscope.experiments.data.tasks.numeric import number_task
from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.options import (
    LETTERS,
    Options,
    has_options,
    options_of,
    right_letter,
)
from faithscope.experiments.data.tasks.sources.rows import (
    Row,
    column,
    has,
    text_of,
    usable,
    with_ids,
)
from faithscope.experiments.data.tasks.spelling import word_surfaces, written_by
from faithscope.experiments.data.tasks.task import DirectPrompt, LoadSettings, Task, wordings
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind, Question, Trace

NAME = "own"
SPLIT = "test"
KINDS: dict[str, AnswerKind] = {"number": "number", "label": "label", "choice": "choice"}


def load(settings: LoadSettings) -> Iterator[Question]:
    """The rows of `data.path` in their own order, of whatever kinds.

    Raises:
        UserError: no file is given, it cannot be read, or a row is not as docs/data.md says.
    """
    if settings.path is None:
        raise UserError(
            "task 'own' asks your own questions: give them with --set data.path.own=FILE "
            "(columns question, answer, options; docs/data.md)"
        )
    rows = read_rows(settings.path, settings.split or SPLIT)
    return map(question, with_ids(rows[: settings.limit]))


def question(row: Row) -> Question:
    """One row as a question: `choice` with options, `number` without, unless it says `kind`.

    Raises:
        UserError: something is missing or does not fit; names file, line, value and remedy.
    """
    text = text_of(row, ("question",))
    kind = _kind(row)
    answer = row.values["answer"] if has(row, "answer") else None
    if kind == "number":
        return Question(row.id, NAME, text, kind, None if answer is None else _number(answer, row))
    options = options_of(row)
    if answer is None:
        gold = None
    elif kind == "choice":
        gold = right_letter(options, answer, row)
    else:
        gold = options.texts[LETTERS.index(right_letter(options, answer, row))]
    if kind == "label":
        _check_words(options, row)
    return Question(row.id, NAME, text, kind, gold, options.texts)


def _kind(row: Row) -> AnswerKind:
    given = has_options(row)
    if not has(row, "kind"):
        return "choice" if given or has(row, "options") or has(row, "A") else "number"
    name = usable(row.values["kind"], "'kind'", row).lower()
    kind = KINDS.get(name)
    if kind is None:
        raise UserError(f"{row.where}: kind {name!r} is none of {', '.join(KINDS)}; give one")
    if kind == "number" and given:
        raise UserError(
            f"{row.where}: kind 'number' takes no options; take them out, or give kind 'choice'"
        )
    if kind != "number" and not given:
        column(row, ("options",))
    return kind


def _number(answer: Any, row: Row) -> str:
    text = usable(answer, "'answer'", row)
    numbers = {n.canonical for n in find_numbers(text, counters=True)}
    if len(numbers) == 1:
        return numbers.pop()
    what = "no number" if not numbers else "several numbers"
    raise UserError(
        f"{row.where}: answer {text[:40]!r} holds {what}; give one number, or give options to "
        "choose from"
    )


def _check_words(options: Options, row: Row) -> None:
    """Labels are read whatever their case."""
    words = [text.casefold() for text in options.texts]
    if twice := next((t for t in options.texts if words.count(t.casefold()) > 1), None):
        raise UserError(f"{row.where}: label {twice!r} is there twice; give different words")


def _words(question: Question) -> tuple[str, ...]:
    return question.options or ()


def _nothing(settings: LoadSettings) -> Iterator[Question]:
    return iter(())


_BY_KIND: dict[AnswerKind, Task] = {
    "number": number_task(NAME, "", _nothing),
    "label": wordings()["label"].task(
        name=NAME,
        summary="",
        kind="label",
        load=_nothing,
        parse=lambda text, question: last_label(text, _words(question)),
        parse_continuation=lambda text, question: first_label(text, _words(question)),
        labels=lambda question, trace: word_surfaces(_words(question), written_by(trace)),
    ),
    "choice": wordings()["choice"].task(
        name=NAME,
        summary="",
        kind="choice",
        load=_nothing,
        parse=lambda text, question: last_choice(text, len(_words(question))),
        parse_continuation=lambda text, question: first_choice(text, len(_words(question))),
        labels=letters,
    ),
}


def _task(question: Question) -> Task:
    return _BY_KIND[question.kind]


def _direct(question: Question) -> tuple[DirectPrompt, ...]:
    return _task(question).direct_prompts(question)


def _labels(question: Question, trace: Trace | None) -> tuple[tuple[str, str], ...]:
    return _task(question).labels(question, trace)


def _variant(name: str) -> Callable[[Question], str]:
    return lambda question: _task(question).variants[name](question)


OWN = Task(
    name=NAME,
    summary="your own questions, from data.path (docs/data.md)",
    kind=None,
    load=load,
    cot_prompt=lambda question: _task(question).cot_prompt(question),
    necessity_prompt=lambda question, text: _task(question).necessity_prompt(question, text),
    sufficiency_prompt=lambda question, text: _task(question).sufficiency_prompt(question, text),
    # one cue for all kinds: it is the task's, not the question's
    answer_cue=_BY_KIND["number"].answer_cue,
    reprompt_cue=_BY_KIND["number"].reprompt_cue,
    parse=lambda text, question: _task(question).parse(text, question),
    parse_continuation=lambda text, question: _task(question).parse_continuation(text, question),
    labels=_labels,
    direct_prompts=_direct,
    variants={name: _variant(name) for name in _BY_KIND["number"].variants},
)
