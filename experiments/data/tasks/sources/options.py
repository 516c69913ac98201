"""The options of a choice, in every form that data sets use, each under its own letter.

An option is identified by its letter: its key in the data, or the letter printed before its text.
Its place in a list counts only if there is neither.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from faithscope.experiments.data.tasks.sources.json_text import NotJson, json_of, printed_value
from faithscope.experiments.data.tasks.sources.rows import (
    SourceRow,
    cell,
    column,
    folded,
    has,
    is_filled,
    usable,
)
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import AnswerKind

KINDS: dict[str, AnswerKind] = {"number": "number", "label": "label", "choice": "choice"}
LETTERS = string.ascii_uppercase
COLUMNS = ("options", "choices")
_OPTION_COLUMN = re.compile(
    r"(?P<word>(?:answer)?(?:option|opt?|choice|alternative)s?|answer)?(?P<name>[a-z]|\d{1,2})"
)
"""A column that holds one option, by its folded name: `A`, `option_a`, `Choice A`, `Answer 1`."""
_NAME = re.compile(
    r"[(\[]?(?:(?:answer|option|opt|choice|alternative)[\s_-]*)?(?P<name>[a-z]|\d{1,2})[)\]]?[.:]?",
    re.IGNORECASE,
)
"""The name of an option, as in keys and answers."""
_PLURAL = re.compile(r"[^\W_]s$")
LETTERED = re.compile(
    r"""
    [*_]{0,3} (?:(?i:option|choice|answer)\s+)? [(\[（]?
    (?P<letter>[A-Za-zＡ-Ｚａ-ｚ] | \d{1,2}(?=[)\]）]|[.:：、]\s))   # "1) x", "1. x", no "1.5"
    [*_]{0,3} \s*
    (?: [)\]）]\s*[:：] | [:)\]：）、]
      | (?P<dot>[.．])(?![A-Z][.．]) | (?<=\s)[-–—]\s )   # no "A.D."
    [*_]{0,3} \s* (?P<text>.*)
    """,
    re.DOTALL | re.VERBOSE,
)
"""An option with its letter or its number before it: `(A) x`, `**B.** x`, `Option C: x`, `1) x`."""
_MISSING = 2
"""Most letters that may be missing among options lettered with dots; if more are, the letters are
initials ("G. Washington")."""


@dataclass(frozen=True)
class Options:
    """Options in the order of their letters, A, B, C….

    Options that the data names 1, 2, 3… are ordered by these numbers, options without names by
    their places.
    """

    texts: tuple[str, ...]
    names: tuple[str, ...]
    """Names of the options in the data: `A`, `B`…, or `1`, `2`… in some rows of ARC."""
    places: tuple[int, ...]
    """Place of each option in the data, from 0."""


def name_of(text: str) -> str | None:
    """The letter or number of the option that a text names (`B`, `(b)`, `Option B`), if it does."""
    match = _NAME.fullmatch(unicodedata.normalize("NFKC", text).strip())
    return match["name"].upper() if match else None


def stated_kind(row: SourceRow) -> AnswerKind | None:
    """The kind of the question's answers in the row's column `kind`; None if there is none.

    Raises:
        UserError: the column holds no kind of answer.
    """
    if not has(row, "kind"):
        return None
    name = usable(cell(row, "kind"), "'kind'", row).lower()
    if name not in KINDS:
        raise UserError(f"{row.where}: kind {name!r} is none of {', '.join(KINDS)}; give one")
    return KINDS[name]


def has_options(row: SourceRow) -> bool:
    """Whether a row has options, in one column or in one column each.

    Raises:
        UserError: columns called `a`, `b`… may or may not be options.
    """
    return any(_given(row, name) for name in COLUMNS) or bool(_option_columns(row))


def options_of(row: SourceRow) -> Options:
    """The options of a row.

    Options may be in a column `options` or `choices`: as a list of texts, an object from letter to
    text, an object of the lists `text` and `label` (as on the hub), a list of such objects, or one
    text with a lettered line for each, with JSON, with a list as Python or pandas prints it, or
    with `|` or `;` between options. Or each has a column: A, B, C…, `option_a`, `Choice 1`. Empty
    columns are no options, and neither are empty entries at the end.

    Raises:
        UserError: there are fewer than two options or more than 26, one is empty or missing between
            others, two have one name, or keys and printed letters disagree.
    """
    given = [_pairs(cell(row, name), row, name) for name in COLUMNS if _given(row, name)]
    if alone := _option_columns(row):
        given.append([(name, row.values[own]) for name, own in alone.items()])
    if not given:
        column(row, COLUMNS)  # raises: there are none
    read = [_identified(pairs, row) for pairs in given or [[]]]
    if any((other.texts, other.names) != (read[0].texts, read[0].names) for other in read):
        raise UserError(
            f"{row.where}: has options in several columns, and they differ; keep one set of them"
        )
    return read[0]


def may_be_empty(column: str) -> bool:
    """Whether a column holds one option, which some rows lack where questions have different
    numbers of them."""
    match = None if _PLURAL.search(column) else _OPTION_COLUMN.fullmatch(folded(column))
    return match is not None


def _given(row: SourceRow, name: str) -> bool:
    return has(row, name) and cell(row, name) not in ([], {})


def _option_columns(row: SourceRow) -> dict[str, str]:
    """Name of an option -> the filled column that holds only this option."""
    large: list[tuple[str, str]] = []
    small, worded = [], False
    for own in map(str, row.values):
        match = None if _PLURAL.search(own) else _OPTION_COLUMN.fullmatch(folded(own))
        if match is None:
            continue
        name, bare = match["name"].upper(), unicodedata.normalize("NFKC", own).strip("()[]. ")
        if match["word"] or bare == name:
            large.append((name, own))
            worded = worded or match["word"] is not None
        else:
            small.append(own)
    names = {name for name, _ in large}
    # a lone column N or T is some quantity, and is ignored
    first = names & {"A", "B"} or {"1", "2"} <= names or {"0", "1"} <= names
    columns: dict[str, str] = {}
    for name, own in large if worded or first else ():
        if is_filled(row.values[own]) and (other := columns.setdefault(name, own)) != own:
            raise UserError(
                f"{row.where}: columns {other!r} and {own!r} are both option {name}; keep one"
            )
    if {"a", "b"} <= set(small) and stated_kind(row) != "number":
        filled = [own for own in small if is_filled(row.values[own])]
        if {"a", "b"} <= set(filled):
            raise UserError(
                f"{row.where}: columns {', '.join(filled)} could be options; call them "
                f"{', '.join(filled).upper()} if they are, or give kind 'number'"
            )
    return columns


Pairs = list[tuple[str | None, Any]]
"""(name, text) of every option; the name is None if the data has none."""


def _identified(pairs: Pairs, row: SourceRow) -> Options:
    """Options under their own letters, in alphabetical order."""
    if not 2 <= len(pairs) <= len(LETTERS):
        shown = [str(text)[:40] for _, text in pairs[:3]]
        what = "one option" if len(pairs) == 1 else f"{len(pairs)} options"
        raise UserError(f"{row.where}: has {what} {shown}; give 2 to {len(LETTERS)}")
    names = [
        LETTERS[i] if name is None else name_of(name) or name.strip()
        for i, (name, _) in enumerate(pairs)
    ]

    def usable_texts(values: Iterable[Any]) -> list[str]:
        named = zip(names, values, strict=True)
        return [usable(v if is_filled(v) else "", f"option {name}", row) for name, v in named]

    texts = usable_texts(text for _, text in pairs)
    keyed, matches = pairs[0][0] is not None, [LETTERED.fullmatch(text) for text in texts]
    if not keyed and not all(matches):
        _check_places(matches, row)
    if printed := _printed(matches):
        if not keyed:
            names = printed
        if printed == names:
            texts = usable_texts(m["text"] for m in matches if m)
        elif set(printed) == set(names):
            raise UserError(
                f"{row.where}: the options that the data calls {', '.join(names)} begin with the "
                f"letters {', '.join(printed)}; let keys and letters agree"
            )
    if twice := next((n for n in names if names.count(n) > 1), None):
        raise UserError(
            f"{row.where}: two options are called {twice!r}; name them differently, in an object "
            "from letter to text"
        )
    order = _order(names, row)
    return Options(tuple(texts[i] for i in order), tuple(names[i] for i in order), tuple(order))


def _order(names: Sequence[str], row: SourceRow) -> list[int]:
    """The order of options by letter or number; the data's order if they have neither.

    Raises:
        UserError: a letter or number between others is missing.
    """
    if set(names) <= set(LETTERS):
        ranks, first, called = [LETTERS.index(name) for name in names], 0, LETTERS.__getitem__
    elif all(name.isdecimal() for name in names):
        ranks, called = [int(name) for name in names], str
        first = min(ranks) and 1
    else:
        return list(range(len(names)))
    wanted = range(first, first + len(names))
    if missing := [called(rank) for rank in wanted if rank not in ranks]:
        raise UserError(
            f"{row.where}: has options {', '.join(sorted(names))}, and no option "
            f"{' or '.join(missing)}; fill it, or take the row out"
        )
    return sorted(range(len(names)), key=ranks.__getitem__)


def letter_of(match: re.Match[str]) -> str:
    """The letter, or number, of a match of `LETTERED`."""
    return unicodedata.normalize("NFKC", match["letter"]).upper()


def _printed(matches: Sequence[re.Match[str] | None]) -> list[str] | None:
    """The letters, or numbers from 0 or 1, that all options begin with; None if not all do."""
    lettered = [m for m in matches if m]
    letters = [letter_of(m) for m in lettered]
    if len(lettered) < len(matches):
        return None
    if any(letter.isdecimal() for letter in letters):
        from_one = {str(i + 1) for i in range(len(letters))}
        return (
            letters if set(letters) in (from_one, {"0", *from_one} - {str(len(letters))}) else None
        )
    initials = any(m["dot"] for m in lettered) and not set(letters) <= _near(len(matches))
    return None if initials else letters


def _check_places(matches: Sequence[re.Match[str] | None], row: SourceRow) -> None:
    """Check options of which only some begin with a letter.

    Raises:
        UserError: an option stands at the place of another letter.
    """
    lettered = {i: m for i, m in enumerate(matches) if m}
    moved = [i for i, m in lettered.items() if letter_of(m) != LETTERS[i]]
    initials = len(lettered) == 1 and any(m["dot"] for m in lettered.values())
    near = {letter_of(m) for m in lettered.values()} <= _near(len(matches))
    if moved and near and not initials:
        raise UserError(
            f"{row.where}: option {short(lettered[moved[0]][0])!r} stands at the place of "
            f"{LETTERS[moved[0]]}, and not all options are lettered; give an object from letter "
            "to text"
        )


def _near(n: int) -> set[str]:
    """The letters that `n` options may have if a few are missing."""
    return set(LETTERS[: n + _MISSING])


def _pairs(value: Any, row: SourceRow, where: str) -> Pairs:
    if isinstance(value, str):
        value = _parsed(value, row, where)
    if isinstance(value, dict) and {"text", "label"} <= set(value):
        texts, labels = value["text"], value["label"]
        if len(texts) != len(labels):
            raise UserError(
                f"{row.where}: {where!r} has {len(labels)} labels and {len(texts)} texts; "
                "give one of each per option"
            )
        return [(str(n), t) for n, t in zip(labels, texts, strict=True)]
    if isinstance(value, dict):
        return sorted((str(name), text) for name, text in value.items() if is_filled(text))
    if not isinstance(value, list | tuple):
        raise UserError(f"{row.where}: {where!r} is a {type(value).__name__}; give a list of texts")
    while len(value) > 2 and not is_filled(value[-1]):
        value = value[:-1]
    if value and all(isinstance(x, dict) and {"text", "label"} <= set(x) for x in value):
        return [(str(x["label"]), x["text"]) for x in value]
    return [(None, text) for text in value]


def _parsed(text: str, row: SourceRow, where: str) -> Any:
    try:
        value = json_of(text, f"{row.where}: {where!r}")
    except NotJson:
        value = printed_value(text)
    if isinstance(value, list | dict):
        return value
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return _joined(lines, row)
    return re.split(r"\|{1,2}", text) if "|" in text else _inline(text) or text.split(";")


def options_in(question: str) -> tuple[Options | None, str]:
    """The options that stand in the text of a question, each with its letter: a line for each
    (`A. saw`), or all in its last line (`(A) saw (B) sea`); None if there are none. And the text
    without them."""
    lines = question.splitlines()
    at: list[int] = []
    for i, line in enumerate(lines):
        match = LETTERED.fullmatch(line.strip())
        here = letter_of(match) if match and match["text"].strip() else ""
        if here == "A":
            at = [i]
        elif at and here == LETTERS[len(at) % len(LETTERS)]:
            at.append(i)
    texts = [m["text"].strip() for i in at if (m := LETTERED.fullmatch(lines[i].strip()))]
    rest = [line for i, line in enumerate(lines) if i not in at]
    if len(texts) < 2:
        last = max((i for i, line in enumerate(lines) if line.strip()), default=0)
        texts = _inline(lines[last]) if lines else []
        begins = _PLACE.search(lines[last]) if texts else None
        head = lines[last][: begins.start()] if begins else ""
        rest = [*lines[:last], head, *lines[last + 1 :]]
    if not texts or not "".join(rest).strip():
        return None, question
    names = tuple(LETTERS[: len(texts)])
    return Options(tuple(texts), names, (*range(len(texts)),)), "\n".join(rest).strip()


_PLACE = re.compile(r"(?:(?<=\s)|\A)(?:\((?P<a>[A-Z])\)|(?P<b>[A-Z])[).:])\s+(?=\S)")


def _inline(line: str) -> list[str]:
    """The texts of options that stand in one line, lettered from A on; empty if there are none."""
    places = []
    for match in _PLACE.finditer(line):
        if (match["a"] or match["b"]) == LETTERS[len(places) % len(LETTERS)]:
            places.append(match)
    ends = [m.start() for m in places[1:]] + [len(line)]
    texts = [line[m.end() : end].strip(" ,;") for m, end in zip(places, ends, strict=False)]
    return texts if len(texts) >= 2 and all(texts) else []


def _joined(lines: list[str], row: SourceRow) -> list[str]:
    """Options that begin with their letters, from lines; a line without a letter continues the
    option above.

    Raises:
        UserError: a lettered line could begin an option or continue one.
    """
    matches = [LETTERED.fullmatch(line.strip()) for line in lines]
    if matches[0] is None or all(matches):
        return lines
    large = matches[0]["letter"].isupper()
    letters = {
        i: letter_of(m) for i, m in enumerate(matches) if m and m["letter"].isupper() == large
    }
    begins: list[int] = []
    for i, letter in letters.items():
        begins += [i] if letter == LETTERS[len(begins) % len(LETTERS)] else []
    # "C. elegans" on a line before option C continues the option above
    own, near = {letters[i]: i for i in begins}, _near(len(begins))
    unclear = [
        lines[i]
        for i, letter in letters.items()
        if i not in begins and letter in near and i > own.get(letter, -1)
    ]
    if unclear or begins[:1] != [0]:
        raise UserError(
            f"{row.where}: the line {short((unclear or lines)[0])!r} could begin an option or go "
            "on with one; give an object from letter to text"
        )
    ends = [*begins[1:], len(lines)]
    return ["\n".join(lines[a:b]) for a, b in zip(begins, ends, strict=True)]


def short(text: str) -> str:
    """A text, or the beginning of a long one, for messages."""
    return text if len(text) <= 40 else f"{text[:39]}…"
