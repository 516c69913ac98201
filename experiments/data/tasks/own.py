"""Task of the user's own questions, from a file (`faithscope docs data`) or a notebook.

It is one task for answers of every kind: each question is asked in the words of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.tasks.kinds import choice_task, label_task, number_task
from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.gold import (
    agreed,
    check_unread,
    right_answer,
    stated_right,
)
from faithscope.experiments.data.tasks.sources.options import (
    COLUMNS,
    Options,
    has_options,
    options_of,
    stated_kind,
)
from faithscope.experiments.data.tasks.sources.prompts import counterfactual_of, sent_of
from faithscope.experiments.data.tasks.sources.rows import (
    SourceRow,
    cell,
    column,
    each,
    flag,
    has,
    text_of,
    usable,
    with_ids,
)
from faithscope.experiments.data.tasks.task import LoadSettings, Task
from faithscope.interp.errors import UserError
from faithscope.interp.turns import refusal_of, rendered_sign
from faithscope.interventions.trace import AnswerKind, OfPair, Question

NAME = "own"
FREE_TEXT = (
    "; answers in free text are not compared: give kind 'label' and options, the right answer and "
    "wrong ones, whose likelihoods are then scored (faithscope docs data)"
)
SPLIT = "test"


def load(settings: LoadSettings) -> Iterator[Question]:
    """The questions of `data.path` in the file's order, of any kinds.

    Raises:
        UserError: no file is given, it cannot be read, or a row is not as `faithscope docs data`
            requires.
    """
    if settings.path is None:
        raise UserError(
            "task 'own' asks your own questions: give them with --set data.path.own=FILE "
            "(columns question, answer, options; faithscope docs data)"
        )
    rows = read_rows(settings.path, settings.split or SPLIT)
    # a limit may part a pair, which then counts nowhere
    read = each(with_ids(rows[: settings.limit]), question)
    return iter(_in_pairs(read) if settings.limit is None else read)


def question(row: SourceRow) -> Question:
    """The question of one row: `choice` with options, `number` without, unless it has a `kind`.

    Raises:
        UserError: something is missing or does not fit; with file, line, value and remedy.
    """
    asked, sent = _asked(row), sent_of(row)
    if (sent is None or sent.prompt is None) and (sign := rendered_sign(asked.text)):
        raise UserError(f"{row.where}: {refusal_of(sign, 'question')}")
    r_prime = counterfactual_of(row)
    return replace(asked, sent=sent, counterfactual=r_prime, of_pair=_of_pair(row))


def _of_pair(row: SourceRow) -> OfPair | None:
    """The row's place in a pair of reversed questions, if it has the columns `pair` and
    `reversed`."""
    if not has(row, "reversed"):
        return None
    if not has(row, "pair"):
        raise UserError(
            f"{row.where}: says 'reversed' and not of which pair; give both questions of a pair "
            "one name in a column 'pair'"
        )
    return OfPair(usable(cell(row, "pair"), "'pair'", row), flag(row, "reversed"))


def _in_pairs(questions: Sequence[Question]) -> Sequence[Question]:
    """The questions, once checked that every reversed one has its partner.

    Raises:
        UserError: a question of a pair has none; with its id and pair.
    """
    halves = {(q.of_pair.name, q.of_pair.reversed): q for q in questions if q.of_pair}
    for (name, is_reversed), one in halves.items():
        if (name, not is_reversed) not in halves:
            other = str(not is_reversed).lower()
            raise UserError(
                f"question {one.id!r}: pair {name!r} has no question with reversed: {other}; add "
                "it, or take 'reversed' out"
            )
    return questions


def _asked(row: SourceRow) -> Question:
    text = text_of(row, ("question",))
    said = stated_right(row)
    has_kind = stated_kind(row) is not None or any(has(row, name) for name in COLUMNS)
    check_unread(row, of_chain=False, has_kind=has_kind or has_options(row))
    kind = _kind(row)
    if kind == "number":
        numbers = {name: _number(value, row) for name, value in said.items()}
        return Question(row.id, NAME, text, kind, agreed(numbers, row))
    options = options_of(row)
    gold = right_answer(options, said, kind, row) if said else None
    if kind == "label":
        _check_words(options, row)
    return Question(row.id, NAME, text, kind, gold, options.texts)


def _kind(row: SourceRow) -> AnswerKind:
    given, kind = has_options(row), stated_kind(row)
    if kind is None:
        return "choice" if given or any(has(row, name) for name in COLUMNS) else "number"
    if kind == "number" and given:
        raise UserError(
            f"{row.where}: kind 'number' takes no options; take them out, or give kind 'choice'"
        )
    if kind != "number" and not given:
        column(row, ("options",))
    return kind


def _number(answer: Any, row: SourceRow) -> str:
    text = usable(answer, "'answer'", row)
    if (number := canonical_number(text)) is not None:
        return number
    free = "" if any(map(str.isdigit, text)) else FREE_TEXT
    raise UserError(
        f"{row.where}: answer {text[:40]!r} is not one number that can be read whole; give plain "
        f"digits, or give options to choose from{free}"
    )


def _check_words(options: Options, row: SourceRow) -> None:
    """Refuse two labels that differ only in case, since labels are read in any case."""
    words = [text.casefold() for text in options.texts]
    if twice := next((t for t in options.texts if words.count(t.casefold()) > 1), None):
        raise UserError(f"{row.where}: label {twice!r} is there twice; give different words")


def _nothing(settings: LoadSettings) -> Iterator[Question]:
    return iter(())


_BY_KIND: dict[AnswerKind, Task] = {
    "number": number_task(NAME, "", _nothing),
    "label": label_task(NAME, "", "label", _nothing),
    "choice": choice_task(NAME, "", "choice", _nothing),
}


def _of_kind(field: str) -> Callable[..., Any]:
    """A function that calls `field` of the task for the question's own kind."""

    def call(*asked: Any) -> Any:
        (question,) = (value for value in asked if isinstance(value, Question))
        return getattr(_BY_KIND[question.kind], field)(*asked)

    return call


def _variant(name: str) -> Callable[[Question], str]:
    return lambda question: _BY_KIND[question.kind].variants[name](question)


OWN = Task(
    name=NAME,
    summary="your own questions, from data.path (faithscope docs data)",
    kind=None,
    load=load,
    cot_prompt=_of_kind("cot_prompt"),
    necessity_prompt=_of_kind("necessity_prompt"),
    sufficiency_prompt=_of_kind("sufficiency_prompt"),
    # all kinds share one cue, since a cue belongs to the task, not to the question
    answer_cue=_BY_KIND["number"].answer_cue,
    reprompt_cue=_BY_KIND["number"].reprompt_cue,
    parse=_of_kind("parse"),
    parse_continuation=_of_kind("parse_continuation"),
    labels=_of_kind("labels"),
    direct_prompts=_of_kind("direct_prompts"),
    variants={name: _variant(name) for name in _BY_KIND["number"].variants},
)
