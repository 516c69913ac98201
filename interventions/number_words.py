"""Numbers in English words: where a text says them, and how one is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from faithscope.interventions.corrupt import numbers
from faithscope.interventions.program import WORDS, as_number
from faithscope.interventions.sentences import Span

_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_LARGE = {"dozen": 12, "hundred": 100, "thousand": 1_000, "million": 1_000_000}
_VALUES = (
    {word: value for value, word in enumerate(WORDS)}
    | {word: 10 * ten for ten, word in enumerate(_TENS, 2)}
    | _LARGE
)
_ONES = "|".join(WORDS[1:10])
_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:[-\s](?:{_ONES}))?|{'|'.join(sorted(WORDS, key=len)[::-1])})"
_GROUP = rf"(?:(?:{_SMALL}|a)\s+hundred(?:(?:\s+and)?\s+{_SMALL})?|{_SMALL})"
_NUMBER = re.compile(
    rf"(?<![\w-])(?:(?:{_GROUP}|a)\s+(?:thousand|million)(?:,?\s+(?:and\s+)?{_GROUP})?"
    rf"|(?:{_SMALL}|a)\s+dozen|{_GROUP})(?![\w-])",
    re.IGNORECASE,
)


def said(text: str) -> Iterator[tuple[Span, Fraction]]:
    """(half-open character span, value) of every number of a text, in digits and then in words."""
    for match in numbers(text):
        yield match.span(), as_number(match.group())
    for match in _NUMBER.finditer(text):
        yield match.span(), Fraction(_value(match.group().lower()))


def in_words(value: int) -> str:
    """A whole number from 0 to 999,999 in words: one hundred and five, twenty-four."""
    if value >= 1000:
        rest = value % 1000
        between = " and " if 0 < rest < 100 else " "
        return (
            f"{in_words(value // 1000)} thousand{between}{in_words(rest) if rest else ''}".strip()
        )
    if value >= 100:
        rest = value % 100
        return f"{WORDS[value // 100]} hundred{f' and {in_words(rest)}' if rest else ''}"
    if value < len(WORDS):
        return WORDS[value]
    one = value % 10
    return _TENS[value // 10 - 2] + (f"-{WORDS[one]}" if one else "")


def _value(text: str) -> int:
    whole = part = 0
    for word in re.findall(r"[a-z]+", text):
        value = _VALUES.get(word, 0)
        if word in ("thousand", "million"):
            whole, part = max(part, 1) * value, 0
        elif word in _LARGE:
            part = max(part, 1) * value
        else:
            part += value
    return whole + part
