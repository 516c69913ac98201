"""Parser of JSON in data files, which refuses repeated keys and bottomless nesting; and of lists
and objects as Python, pandas and NumPy print them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from faithscope.interp import documents
from faithscope.interp.documents import MAX_DEPTH
from faithscope.interp.errors import UserError


class NotJson(Exception):
    """A text is no JSON; the message says why."""


def json_of(text: str, where: str | Callable[[int], str]) -> Any:
    """The value that `text` is JSON of.

    Args:
        where: the place for messages; or, for a list of rows, a function from the position in
            `text` at which a row begins to its place.

    Raises:
        NotJson: the text is no JSON, or is nested too deep to be read.
        UserError: a key stands twice in one object, of which a reader would take the last.
    """
    try:
        value = documents.json_of(text, object_pairs_hook=_once)
    except _Twice as twice:
        place = where if isinstance(where, str) else where(_place(text))
        raise UserError(
            f"{place}: key {twice.key!r} stands twice in one object; keep one of the two"
        ) from None
    except ValueError as error:
        raise NotJson(str(error)) from error
    return value


_ARRAY = re.compile(r"\barray\(\s*(?=\[)|(?<=\])\s*(?:,\s*dtype\s*=\s*[\w'<>]+\s*)?\)")
_MOST_PRINTED = 100_000
"""Most characters of a printed list or object that are read."""


def printed_value(text: str) -> list[Any] | dict[Any, Any] | None:
    """The list or object that a text is in Python's, pandas' or NumPy's spelling: `['saw', 'sea']`,
    `['saw' 'sea']`, `{'text': array(['saw'], dtype=object)}`; None if it is none."""
    text = text.strip()
    if text[:1] not in ("[", "{") or len(text) > _MOST_PRINTED:
        return None
    try:
        value = ast.literal_eval(_with_commas(_ARRAY.sub("", text) if "array(" in text else text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list | dict) else None


_STRING = re.compile(
    r"""('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")(\s*+(?=[bBfFrRuU]{0,2}['"]))?|['"].*""", re.DOTALL
)
"""A text in quotes, and the blanks after it if another one follows; or one without an end."""


def _with_commas(text: str) -> str:
    """`text` with a comma between texts that stand side by side, as NumPy prints the items of an
    array; Python would join them."""
    return _STRING.sub(lambda m: m[0] if m[2] is None else f"{m[1]},{m[2]}", text)


def check_depth(value: Any, where: str) -> None:
    """Check how deep lists and objects are nested.

    Raises:
        UserError: they are nested deeper than `MAX_DEPTH`.
    """
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        held = (v.values() if isinstance(v, Mapping) else v for v in level)
        level = [x for values in held for x in values if isinstance(x, Mapping | list | tuple)]
        if not level:
            return
    raise UserError(
        f"{where}: holds lists or objects nested more than {MAX_DEPTH} deep; flatten them"
    )


class _Twice(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in names if names.count(name) > 1))
    return values


_BETWEEN = re.compile(r"[ \t\r\n,]*")


def _place(text: str) -> int:
    """Position at which the row begins in which a key occurs twice."""
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    at = len(text) - len(text.lstrip())
    if text[at] == "[":
        at += 1
    while True:
        at = _BETWEEN.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess]
        try:
            _, at = decoder.raw_decode(text, at)
        except _Twice:
            return at
