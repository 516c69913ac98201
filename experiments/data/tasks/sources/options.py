"""The options of a choice, in every form that data sets have them, and which of them is right."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from faithscope.experiments.data.tasks.sources.rows import Row, column, has, usable
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind

KINDS: dict[str, AnswerKind] = {"number": "number", "label": "label", "choice": "choice"}
LETTERS = string.ascii_uppercase
COLUMNS = ("options", "choices")
_LETTERED = re.compile(r"\(?(?P<letter>[A-Z])\s*[:.)]\s*(?P<text>.*)", re.DOTALL)


@dataclass(frozen=True)
class Options:
    """Options in order. Their letters in a question are A, B, C… by this order."""

    texts: tuple[str, ...]
    names: tuple[str, ...]
    """What the data calls them: `A`, `B`…, or `1`, `2`… in some rows of ARC."""
    named: bool
    """Whether the data itself names them; else `names` are their letters."""


def stated_kind(row: Row) -> AnswerKind | None:
    """How the question is answered, as the row's column `kind` says; None where it has none.

    Raises:
        UserError: it is no kind of answer.
    """
    if not has(row, "kind"):
        return None
    name = usable(row.values["kind"], "'kind'", row).lower()
    if name not in KINDS:
        raise UserError(f"{row.where}: kind {name!r} is none of {', '.join(KINDS)}; give one")
    return KINDS[name]


def has_options(row: Row) -> bool:
    return any(_given(row, name) for name in COLUMNS) or all(has(row, x) for x in "AB")


def options_of(row: Row) -> Options:
    """The options of a row.

    In a column `options` or `choices`: a list of texts, an object from letter to text, an object
    of the lists `text` and `label` (as on the hub), a list of such objects, or one text with a
    lettered line for each, with JSON in it, or with `|` between them. Or in columns A, B, C….

    Raises:
        UserError: there are fewer than two or more than 26, one is empty, or two have one name.
    """
    named = next((name for name in COLUMNS if _given(row, name)), None)
    if named is not None:
        pairs = _pairs(row.values[named], row, named)
    elif any(has(row, x) for x in LETTERS):
        last = max(i for i, x in enumerate(LETTERS) if has(row, x))
        pairs = [(x, row.values.get(x)) for x in LETTERS[: last + 1]]
    else:
        column(row, COLUMNS)  # raises: there are none
        pairs = []
    if not 2 <= len(pairs) <= len(LETTERS):
        shown = [str(text)[:40] for _, text in pairs[:3]]
        what = "one option" if len(pairs) == 1 else f"{len(pairs)} options"
        raise UserError(f"{row.where}: has {what} {shown}; give 2 to {len(LETTERS)}")
    texts = tuple(usable(t, f"option {n or LETTERS[i]}", row) for i, (n, t) in enumerate(pairs))
    names = tuple(n or LETTERS[i] for i, (n, _) in enumerate(pairs))
    if twice := next((n for n in names if names.count(n) > 1), None):
        raise UserError(f"{row.where}: two options are called {twice!r}; name them differently")
    return Options(texts, names, named=pairs[0][0] is not None)


def right_letter(options: Options, gold: Any, row: Row) -> str:
    """The letter of the option that `gold` calls by name, by text, or by both (`B: otter`).

    Raises:
        UserError: it is neither, or both of different options.
    """
    answer = usable(gold, "the answer", row)
    pairs = list(zip(options.names, options.texts, strict=True))
    bare, folded = _folded(answer.strip("().")), _folded(answer)
    by_name = [i for i, (name, _) in enumerate(pairs) if _folded(name) == bare]
    by_text = [i for i, (_, text) in enumerate(pairs) if _folded(text) == folded]
    by_both = [i for i, (n, t) in enumerate(pairs) if _is_both(folded, _folded(n), _folded(t))]
    matching = by_name if options.named and by_name else sorted({*by_name, *by_text, *by_both})
    if len(matching) == 1:
        return LETTERS[matching[0]]
    shown = ", ".join(f"{name} ({_short(text)})" for name, text in pairs)
    if matching:
        raise UserError(
            f"{row.where}: answer {_short(answer)!r} could be any of "
            f"{', '.join(options.names[i] for i in matching)} of the options {shown}; name one"
        )
    raise UserError(
        f"{row.where}: answer {_short(answer)!r} is none of the options {shown}; "
        "give the letter or the text of one"
    )


def right_answer(options: Options, gold: Any, kind: AnswerKind, row: Row) -> str:
    """The right option as a question of its kind is answered: its letter, or a label's text."""
    letter = right_letter(options, gold, row)
    return letter if kind == "choice" else options.texts[LETTERS.index(letter)]


def _folded(text: str) -> str:
    """Without what tells no two options apart: case, and how much white space there is."""
    return " ".join(text.split()).casefold()


def _is_both(answer: str, name: str, text: str) -> bool:
    """`B: otter`, `(B) otter` or `B. otter`."""
    return any(answer == f"{name}{mark} {text}" for mark in ":.)") or answer == f"({name}) {text}"


def _given(row: Row, name: str) -> bool:
    return has(row, name) and row.values[name] not in ([], {})


def _pairs(value: Any, row: Row, where: str) -> list[tuple[str | None, Any]]:
    """(name, text) of every option; the name is None where the data has none."""
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, dict) and {"text", "label"} <= set(value):
        texts, labels = value["text"], value["label"]
        if len(texts) != len(labels):
            raise UserError(
                f"{row.where}: {where!r} has {len(labels)} labels and {len(texts)} texts; "
                "give one of each per option"
            )
        return [(str(n), t) for n, t in zip(labels, texts, strict=True)]
    if isinstance(value, dict):
        return sorted((str(name), text) for name, text in value.items() if text is not None)
    if not isinstance(value, list | tuple):
        raise UserError(f"{row.where}: {where!r} is a {type(value).__name__}; give a list of texts")
    if value and all(isinstance(x, dict) and {"text", "label"} <= set(x) for x in value):
        return [(str(x["label"]), x["text"]) for x in value]
    return list(_lettered(value) or [(None, text) for text in value])


def _lettered(texts: Sequence[Any]) -> list[tuple[str | None, Any]] | None:
    """`["A) one", "B) two"]` by letter; None where they are not all lettered, A first."""
    matches = [_LETTERED.fullmatch(t.strip()) if isinstance(t, str) else None for t in texts]
    if [m and m["letter"] for m in matches] != list(LETTERS[: len(texts)]):
        return None
    return [(m["letter"], m["text"]) for m in matches if m]


def _parsed(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, list | dict):
        return value
    lines = [line for line in text.splitlines() if line.strip()]
    return _joined(lines) if len(lines) > 1 else text.split("|")


def _joined(lines: list[str]) -> list[str]:
    """Lines that go on with a lettered option are part of it."""
    if not _LETTERED.fullmatch(lines[0].strip()):
        return lines
    options: list[str] = []
    for line in lines:
        lettered = _LETTERED.fullmatch(line.strip())
        if lettered and lettered["letter"] == LETTERS[len(options) % len(LETTERS)]:
            options.append(line)
        elif options:
            options[-1] += f"\n{line}"
        else:
            return lines
    return options


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
