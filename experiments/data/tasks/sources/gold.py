"""The right answer of a row: the columns that state it, and the option that they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from faithscope.experiments.data.tasks.sources.options import (
    LETTERED,
    LETTERS,
    Options,
    letter_of,
    name_of,
    short,
)
from faithscope.experiments.data.tasks.sources.rows import (
    SourceRow,
    columns_called,
    folded,
    has,
    is_filled,
    usable,
)
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind

GOLD = ("gold", "target", "correct_answer", "answer_idx", "answerKey")
"""Names of columns that hold the right answer in any row."""
ANSWER = "answer"
"""Column of a question's right answer; in the row of a given chain, of the chain's own answer."""
CUE_TARGET = "cue_target"
"""Column of the answer that a cue in the prompt of a given chain points to."""
LEADS_TO = "counterfactual_answer"
"""Column of the answer to which reasoning that is to be put into a model's mouth leads."""
_KEYS = ("answeridx", "answerkey", "label", "correct")
"""Columns that hold the letter of an option, even if another option has that letter as its text."""
_GOLD_WORDS = re.compile(r"gold(en)?|gt|truth|correct|targets?|solutions?|expected|label")
_ANSWER_WORDS = re.compile(r"answers?|ans|pred|predict(ion|ed)")
_OPTION_WORDS = re.compile(r"(option|choice|alternative|distractor|candidate)s?|incorrect|wrong")
_ABOUT = re.compile(
    r"type|kind|format|length|counts?|number|source|n|num|rate|share|mean|std|prob|idx"
)
"""Words in names of columns that are about answers and hold none: `answer_type`, `n_answers`."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def stated(row: SourceRow, names: Sequence[str]) -> dict[str, Any]:
    """Column -> value of the filled columns that have one of `names` (`rows.folded`)."""
    columns = (column for name in names for column in columns_called(row, name))
    return {c: row.values[c] for c in columns if is_filled(row.values[c])}


def stated_right(row: SourceRow) -> dict[str, Any]:
    """Column -> value of the columns in which a question states its right answer.

    Raises:
        UserError: only `answer` does, and the row also has reasoning, whose answer it may be.
    """
    if not any(has(row, name) for name in ("reasoning", "steps")):
        return stated(row, (ANSWER, *GOLD))
    said = stated(row, GOLD)
    if not said and has(row, ANSWER):
        raise UserError(
            f"{row.where}: 'answer' could be the right answer, or that of the reasoning beside it; "
            "call the right one 'gold' (chains are read from traces.path)"
        )
    return said


def right_letter(options: Options, said: Mapping[str, Any], row: SourceRow) -> str:
    """The letter of the right option.

    Args:
        said: column -> its value: an option's name, its text, or both (`B: otter`).

    Raises:
        UserError: a column means none of the options, all columns together could mean several, or
            two columns mean different options.
    """
    answers = {name: usable(value, "the answer", row) for name, value in said.items()}
    meant = {
        name: (by_name if folded(name) in _KEYS else called)(options, answer)
        for name, answer in answers.items()
    }
    name = next((n for n, places in meant.items() if not places), next(iter(meant)))
    common = meant[name].intersection(*meant.values())
    if len(common) == 1:
        return LETTERS[common.pop()]
    if not common and meant[name]:
        raise UserError(f"{row.where}: {_differ(answers)}")
    raise UserError(f"{row.where}: {_unclear(options, answers[name], common)}")


def right_answer(
    options: Options, said: Mapping[str, Any], kind: AnswerKind, row: SourceRow
) -> str:
    """The right option as an answer of the question's kind: its letter, or a label's text.

    Raises:
        UserError: as for `right_letter`.
    """
    return as_answered(options, right_letter(options, said, row), kind)


def as_answered(options: Options, letter: str, kind: AnswerKind) -> str:
    """The option with a letter as an answer of the question's kind."""
    return letter if kind == "choice" else options.texts[LETTERS.index(letter)]


def agreed(answers: Mapping[str, str], row: SourceRow) -> str | None:
    """The answer that columns state, in canonical form; None if there are none.

    Raises:
        UserError: two columns state different answers.
    """
    if len(set(answers.values())) > 1:
        raise UserError(f"{row.where}: {_differ(answers)}")
    return next(iter(answers.values()), None)


def called(options: Options, answer: str) -> set[int]:
    """Indices of the options that `answer` may mean: those with this name, this text, or both."""
    pairs = zip(options.names, options.texts, strict=True)
    meant = {
        i for i, (n, t) in enumerate(pairs) if plain(answer) == plain(t) or _both(answer, n, t)
    }
    return meant | _named(options, answer)


def by_name(options: Options, answer: str) -> set[int]:
    """Indices of the options that `answer` means if it is read as a name first, then as a text."""
    return _named(options, answer) or called(options, answer)


def plain(text: str) -> str:
    """`text` normalised for comparison of answers: in one case, with single blanks."""
    return " ".join(text.split()).casefold()


def check_unread(row: SourceRow, *, of_chain: bool, has_kind: bool) -> None:
    """Check that no unread column of a user's row looks like options or an answer.

    Args:
        of_chain: whether the row is a given chain, whose column `answer` is the chain's own answer.
        has_kind: whether the kind of the answers or their options are known, so that no options are
            looked for.

    Raises:
        UserError: columns do; the message names them all, and the known columns.
    """
    options = ("options", "choices")
    known = GOLD if of_chain else (ANSWER, *GOLD)
    like: list[tuple[str, str, str, str]] = []
    if not has_kind and not _has_column(row, (*options, "kind")):
        named = f"{', '.join(options)}, or A, B, C … or option_A …"
        like += [(c, "options", "options", named) for c in _like(row, _OPTION_WORDS)]
    if not _has_column(row, known):
        named = ", ".join(known) + ("; or label_NAME for a label of the chain" if of_chain else "")
        words = (_GOLD_WORDS,) if of_chain else (_GOLD_WORDS, _ANSWER_WORDS)
        like += [(c, "gold", "the right answer", named) for c in _like(row, *words)]
    if of_chain and not _has_column(row, (ANSWER,)):
        named = f"{ANSWER}; for the right answer {', '.join(GOLD)}"
        found = [c for c in _like(row, _ANSWER_WORDS) if c not in [column for column, *_ in like]]
        like += [(c, ANSWER, "what the chain answered", named) for c in found]
    if not like:
        return
    each = "; ".join(
        f"column {column!r} could hold {what}, and is not known; known are {named}"
        for column, _, what, named in like
    )
    remedy = "rename it, or take it out"
    if of_chain:
        # of several that could hold one thing, the first is shown
        columns = {name: column for column, name, *_ in reversed(like)}
        truths = [c for c, *_ in like if str(row.values[c]).strip().lower() in ("true", "false")]
        columns = {n: c for n, c in reversed(columns.items()) if c not in truths}
        columns |= {"labels": f"[{', '.join(truths)}]"} if truths else {}
        pairs = ", ".join(f"{name}: {column}" for name, column in columns.items())
        remedy = (
            f"say what it holds, as in --set 'traces.columns={{{pairs}}}' (what this does not name "
            "is not read), rename it, or take it out"
        )
    raise UserError(f"{row.where}: {each}: {remedy}")


def _has_column(row: SourceRow, names: Sequence[str]) -> bool:
    return any(columns_called(row, name) for name in names)


def _like(row: SourceRow, *words: re.Pattern[str]) -> list[str]:
    """The filled columns whose names have one of `words` and none that says otherwise."""
    columns = [c for c in map(str, row.values) if not c.startswith("label_")]
    like = []
    for column in columns:
        of_column = [word.lower() for word in _WORD.findall(column)]
        looks_so = any(pattern.fullmatch(word) for pattern in words for word in of_column)
        if not looks_so or any(map(_ABOUT.fullmatch, of_column)):
            continue
        if folded(column) in map(folded, (ANSWER, CUE_TARGET, LEADS_TO, *GOLD)):
            continue
        if is_filled(row.values[column]):
            like.append(column)
    return like


def _named(options: Options, answer: str) -> set[int]:
    name = name_of(answer) or answer.strip("()[]. ")
    return {i for i, own in enumerate(options.names) if own.casefold() == name.casefold()}


def _both(answer: str, name: str, text: str) -> bool:
    """Whether an answer is an option's name with its text: `B: otter`, `(B) otter`, `B)otter`."""
    match = LETTERED.fullmatch(answer)
    if match is not None and letter_of(match) == name:
        return plain(match["text"]) == plain(text)
    return any(plain(answer) == plain(f"{name}{mark} {text}") for mark in ":.)")


def _differ(answers: Mapping[str, str]) -> str:
    shown = " and ".join(f"{name!r} is {short(answer)!r}" for name, answer in answers.items())
    return f"{shown}, which are different answers; keep the column of the right one"


def _unclear(options: Options, answer: str, meant: set[int]) -> str:
    pairs = list(zip(options.names, options.texts, strict=True))
    shown = ", ".join(f"{name} ({short(text)})" for name, text in pairs)
    if not meant:
        return (
            f"answer {short(answer)!r} is none of the options {shown}; give the letter or the "
            "text of one"
        )
    names = ", ".join(options.names[i] for i in sorted(meant))
    name, text = pairs[min(meant)]
    return (
        f"answer {short(answer)!r} could be any of {names} of the options {shown}; name one by "
        f"letter and text, as in {f'{name}: {short(text)}'!r}"
    )
