"""What rows of several layouts have in common: an answer's kind, options, gold answer, labels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from faithscope.experiments.data.given.chain import joined
from faithscope.experiments.data.numbers import reads_as_number
from faithscope.experiments.data.tasks.sources.options import (
    has_options,
    options_of,
    right_answer,
    stated_kind,
)
from faithscope.experiments.data.tasks.sources.rows import Row, has, usable
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind

Parsed = TypeVar("Parsed", list[Any], dict[str, Any])


class Facts(TypedDict):
    """What a row says of its question besides the words."""

    kind: AnswerKind | None
    options: tuple[str, ...] | None
    gold: str | None


def facts_of(row: Row, gold: Sequence[str]) -> Facts:
    """`choice` with options, `number` where the gold answer is one number, unless `kind` says.

    Args:
        gold: columns that may hold the right answer, the first that does counts.

    Raises:
        UserError: an unknown kind, options that cannot be read, or a gold answer that is none.
    """
    name = next((n for n in gold if has(row, n)), None)
    right = None if name is None else usable(row.values[name], repr(name), row)
    kind = stated_kind(row)
    if not has_options(row):
        if kind is None and right is not None and reads_as_number(right):
            kind = "number"
        return Facts(kind=kind, options=None, gold=right)
    options, kind = options_of(row), kind or "choice"
    if right is not None:
        right = right_answer(options, right, kind, row)
    return Facts(kind=kind, options=options.texts, gold=right)


def text(row: Row, *names: str) -> str | None:
    """The first of some cells that holds a text; None where none does."""
    name = next((n for n in names if has(row, n)), None)
    return None if name is None else usable(row.values[name], repr(name), row)


def exact(row: Row, name: str) -> str:
    """A cell that is a text, exactly as it is, white space and all.

    Raises:
        UserError: it is missing, or is no text.
    """
    value = row.values.get(name)
    if not isinstance(value, str):
        what = "missing" if name not in row.values else f"a {type(value).__name__}"
        raise UserError(f"{row.where}: {name!r} is {what}; give a text")
    if value.strip():
        usable(value, repr(name), row)
    return value


def parsed(row: Row, name: str, kind: type[Parsed], of: str = "") -> Parsed:
    """A cell that is a list or an object, or JSON of one (as in CSV).

    Args:
        of: the cell that is an object in which it stands; none where it is a cell by itself.

    Raises:
        UserError: it is neither.
    """
    values = parsed(row, of, dict) if of else row.values
    value, wanted = values.get(name), "an object" if kind is dict else "a list"
    what = repr(f"{of}.{name}" if of else name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise UserError(
                f"{row.where}: {what} is a str that is no JSON ({error}); give {wanted}"
            ) from error
    if not isinstance(value, kind):
        problem = "missing" if name not in values else f"a {type(value).__name__}"
        raise UserError(f"{row.where}: {what} is {problem}; give {wanted}")
    return value


def flag(row: Row, name: str) -> bool:
    """A cell that is true or false, in words as CSV has them.

    Raises:
        UserError: it is neither.
    """
    value = row.values.get(name)
    known = {True: True, False: False, "true": True, "false": False}
    value = value.strip().lower() if isinstance(value, str) else value
    if not isinstance(value, bool | str) or value not in known:
        raise UserError(f"{row.where}: {name!r} is {value!r}; give true or false")
    return known[value]


def located(
    reasoning: str | None, texts: Sequence[str], row: Row, between: str
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The reasoning, and where in it each step stands.

    Args:
        reasoning: the whole text where the row has it; else the steps make it.

    Raises:
        UserError: a step that is not to be found after the one before it.
    """
    if reasoning is None:
        return joined(texts, between)
    spans, at = [], 0
    for i, step in enumerate(texts):
        start = reasoning.find(step, at)
        if start < 0:
            raise UserError(
                f"{row.where}: step {i} ({step[:60]!r}) does not stand in the reasoning from "
                f"character {at} on; give steps word for word and in order, or leave one of the "
                "two columns out"
            )
        at = start + len(step)
        spans.append((start, at))
    return reasoning, tuple(spans)


def step_labels(of_steps: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Name -> a value for each step, None where a step has none, of what each step says."""
    names = dict.fromkeys(name for labels in of_steps for name in labels)
    return {name: tuple(labels.get(name) for labels in of_steps) for name in names}
