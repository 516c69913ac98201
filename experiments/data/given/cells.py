"""Cells that rows of several layouts share: an answer's kind, options, gold answer, labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from faithscope.experiments.data.expressions import same_answer
from faithscope.experiments.data.given.chain import joined
from faithscope.experiments.data.given.rules import note, rules
from faithscope.experiments.data.numbers import canonical_number, reads_as_number
from faithscope.experiments.data.tasks.sources.gold import (
    agreed,
    as_answered,
    by_name,
    plain,
    right_answer,
    stated,
)
from faithscope.experiments.data.tasks.sources.json_text import (
    NotJson,
    check_depth,
    json_of,
    printed_value,
)
from faithscope.experiments.data.tasks.sources.options import (
    LETTERS,
    Options,
    has_options,
    name_of,
    options_in,
    options_of,
    short,
    stated_kind,
)
from faithscope.experiments.data.tasks.sources.rows import (
    SourceRow,
    cell,
    flag,
    has,
    is_filled,
    usable,
)
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind
from faithscope.probes.patterns import pattern_problem

_WHOLE = re.compile(r"\s*(\d{1,3})(?:\.0*)?\s*")
"""A whole number, which may be the index of an option."""
Parsed = TypeVar("Parsed", list[Any], dict[str, Any])


class Facts(TypedDict):
    """A row's data about its question, besides the text, and about the chain's answer."""

    kind: AnswerKind | None
    options: tuple[str, ...] | None
    gold: str | None
    answer: str | None


def with_options_of_question(
    row: SourceRow, gold: Sequence[str], answer: str | None, question: str
) -> tuple[SourceRow, str]:
    """A row with the options that stand in the text of its question, and the text without them; the
    row and the text as they are where there are none, where the row has options, or where neither
    right answer nor answer is the letter or the text of one.

    Args:
        gold, answer: as for `facts_of`.
    """
    if has_options(row) or stated_kind(row) == "number":
        return row, question
    options, rest = options_in(question)
    said = [str(v) for v in stated(row, gold).values() if isinstance(v, str | int | float)]
    words = [v for v in (*said, answer or "") if v.strip() and not _WHOLE.fullmatch(v)]
    if options is None or not any(by_name(options, word) for word in words):
        return row, question
    note("options are read from the text of the question")
    return SourceRow(row.id, row.cells | {"options": [*options.texts]}, row.where), rest


def facts_of(row: SourceRow, gold: Sequence[str], answer: str | None = None) -> Facts:
    """The facts of a row; the kind is `choice` with options of its own, `label` with options that
    the user states for all rows, `number` if the gold answer is one number, unless the column
    `kind` says otherwise.

    Args:
        gold: columns that may hold the right answer; if several do, all must agree.
        answer: the chain's answer. If it is the name or the text of one option, it is returned in
            the gold answer's form: a letter, or a label's text.

    Raises:
        UserError: the kind is unknown, options cannot be read, a gold answer is none of them or is
            not written as the user says (`rules.GoldIs`), or two gold answers differ.
    """
    said, kind = stated(row, gold), stated_kind(row)
    if not has_options(row) and rules().options:
        of_all = SourceRow(row.id, {"options": list(rules().options)}, row.where)
        options, kind = options_of(of_all), kind or "label"
    elif has_options(row):
        options, kind = options_of(row), kind or "choice"
    else:
        if said and rules().gold_is is not None and kind != "number":
            raise UserError(
                f"{row.where}: traces.gold_is says that {next(iter(said))!r} names an option, and "
                "the row has none; give a column options, or take traces.gold_is out"
            )
        texts = {name: usable(value, repr(name), row) for name, value in said.items()}
        agreed({name: canonical_number(text) or plain(text) for name, text in texts.items()}, row)
        right = next(iter(texts.values()), None)
        if right is not None and kind != "number" and re.fullmatch(r"\(?[A-Z]\)?[.:]?", right):
            note("the right answer is a letter, and the file has no options: give a column options")
        if kind is None and right is not None and reads_as_number(right):
            kind = "number"
        return Facts(kind=kind, options=None, gold=right, answer=answer)
    right = _right(options, said, kind, row) if said else None
    if answer is not None and (at := _index(answer)) is not None:
        answer = options.names[options.places.index(at)] if at in options.places else answer
    meant = set() if answer is None else by_name(options, answer)
    if len(meant) == 1:
        answer = as_answered(options, LETTERS[meant.pop()], kind)
    return Facts(kind=kind, options=options.texts, gold=right, answer=answer)


def _index(value: Any) -> int | None:
    """The place, from 0, that a whole number names where right answers are indices; else None."""
    how = rules().gold_is
    whole = _WHOLE.fullmatch(str(value))
    if how not in ("index0", "index1") or whole is None:
        return None
    return int(whole[1]) - (how == "index1")


def _right(options: Options, said: Mapping[str, Any], kind: AnswerKind, row: SourceRow) -> str:
    """The right option as an answer of its kind, written as the user says.

    Raises:
        UserError: as for `right_answer`; or a value is not written so.
    """
    how = rules().gold_is
    if how is None:
        index = next((name for name, v in said.items() if _WHOLE.fullmatch(str(v))), None)
        if index is not None and not by_name(options, str(said[index])):
            raise UserError(
                f"{row.where}: {index!r} is {said[index]!r}, and the options are "
                f"{', '.join(map(short, options.texts))}; if that is the index of an option, say "
                "whether it counts from 0 or from 1 (traces.gold_is: index0 or index1)"
            )
        return right_answer(options, said, kind, row)
    letters: dict[str, str] = {}
    for name, value in said.items():
        text, at = usable(value, repr(name), row), _index(value)
        if how == "text":
            places = [i for i, own in enumerate(options.texts) if plain(own) == plain(text)]
        elif how == "letter" or at is None:
            places = sorted(by_name(options, text)) if name_of(text) else []
        else:
            places = [options.places.index(at)] if at in options.places else []
        if len(places) != 1:
            raise UserError(
                f"{row.where}: {name!r} is {short(text)!r}, which is no {how} of one of the "
                f"{len(options.texts)} options; give another traces.gold_is, or mend the row"
            )
        letters[name] = LETTERS[places[0]]
    agreed(letters, row)
    return as_answered(options, next(iter(letters.values())), kind)


def is_right(facts: Facts) -> bool | None:
    """Whether the chain's answer is the right one; None if one of the two is not known, or the
    answer is none of the options."""
    answer, gold, options = facts["answer"], facts["gold"], facts["options"]
    if answer is None or gold is None:
        return None
    if options is not None:
        known = LETTERS[: len(options)] if facts["kind"] == "choice" else options
        return answer == gold if answer in known else None
    return same_answer(answer, gold)


ENDED = ("finish", "finish_reason", "stop_reason")
"""Names of columns that say why a reply ended."""
CUT = "truncated"
"""Name of a column that says whether a token limit cut the reply off."""
UNENDED = (
    "a mark opens the reasoning and none closes it, which is taken for cut off at a token limit, "
    f"without an answer (a column {ENDED[0]} or {CUT} may say otherwise)"
)
_BY_LIMIT = ("length", "max_tokens", "model_length", "max_output_tokens")


def was_cut(*reasons: Any) -> bool:
    """Whether a reply reached a token limit, by the reasons for its end as services and harnesses
    name them."""
    return any(str(reason).strip().casefold() in _BY_LIMIT for reason in reasons)


def is_cut(row: SourceRow, ended: bool = True, reason: Any = None) -> bool:
    """Whether a token limit cut a reply off, as the row's columns say; where they say nothing,
    whether its reasoning has no end, which is noted.

    Args:
        ended: whether the reasoning ends, as far as the reply's marks tell.
        reason: why the reply ended, if it is said elsewhere than in a column.
    """
    reasons = [reason, *(row.values.get(name) for name in ENDED)]
    if has(row, CUT):
        return was_cut(*reasons) or flag(row, CUT)
    if ended or any(map(is_filled, reasons)):
        return was_cut(*reasons)
    note(UNENDED)
    return True


def text(row: SourceRow, *names: str) -> str | None:
    """The text in the first of the cells `names` that holds one; None if none does."""
    name = next((n for n in names if has(row, n)), None)
    return None if name is None else usable(cell(row, name), repr(name), row)


def pattern(row: SourceRow, name: str) -> str | None:
    """The regular expression in a cell; None if it holds none.

    Raises:
        UserError: the text is no regular expression.
    """
    said = text(row, name)
    if said is not None and (problem := pattern_problem(said)):
        raise UserError(f"{row.where}: {name!r}: {problem}")
    return said


def exact(row: SourceRow, name: str) -> str:
    """The text of a cell, exactly as it is, with its white space.

    Raises:
        UserError: the cell is missing, or holds no text.
    """
    value = cell(row, name)
    if not isinstance(value, str):
        missing = value is None and name not in row.values
        what = "missing" if missing else f"a {type(value).__name__}"
        raise UserError(f"{row.where}: {name!r} is {what}; give a text")
    if value.strip():
        usable(value, repr(name), row)
    return value


def parsed(row: SourceRow, name: str, kind: type[Parsed], of: str = "") -> Parsed:
    """The list or object in a cell, which may be JSON text (as in CSV).

    Args:
        of: name of the cell whose object has `name` as a key; empty if `name` is a cell itself.

    Raises:
        UserError: the cell holds neither.
    """
    value = parsed(row, of, dict).get(name) if of else cell(row, name)
    wanted = "an object" if kind is dict else "a list"
    what = repr(f"{of}.{name}" if of else name)
    if isinstance(value, str):
        try:
            value = json_of(value, f"{row.where}: {what}")
            check_depth(value, f"{row.where}: {what}")
        except NotJson as error:
            if (value := printed_value(value)) is None:
                raise UserError(
                    f"{row.where}: {what} is a str that is no JSON ({error}); give {wanted}"
                ) from error
    if not isinstance(value, kind):
        problem = "missing" if value is None else f"a {type(value).__name__}"
        raise UserError(f"{row.where}: {what} is {problem}; give {wanted}")
    return value


def located(
    reasoning: str | None, texts: Sequence[str], row: SourceRow, between: str
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The reasoning of a row, with the half-open character span of each step in it.

    Args:
        reasoning: the whole text if the row has it; None joins the steps, with `between` between
            them.

    Raises:
        UserError: a step is not found in the reasoning after the step before it.
    """
    if reasoning is None:
        return joined(texts, between)
    spans, at = [], 0
    for i, step in enumerate(texts):
        start, end = _find(step, reasoning, at)
        if start < 0:
            raise UserError(
                f"{row.where}: step {i} ({step[:60]!r}) does not stand in the reasoning from "
                f"character {at} on; give steps word for word and in order, or leave one of the "
                "two columns out"
            )
        at = end
        spans.append((start, at))
    return reasoning, tuple(spans)


def _find(step: str, reasoning: str, at: int) -> tuple[int, int]:
    """The span of a step from a character on, whatever white space stands between its words; -1 if
    there is none."""
    if (start := reasoning.find(step, at)) >= 0:
        return start, start + len(step)
    words = r"\s+".join(map(re.escape, step.split()))
    found = re.compile(words).search(reasoning, at) if words else None
    return found.span() if found else (-1, -1)


def step_labels(of_steps: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Label name -> one value per step, None for a step without one, from each step's labels."""
    names = dict.fromkeys(name for labels in of_steps for name in labels)
    return {name: tuple(labels.get(name) for labels in of_steps) for name in names}
