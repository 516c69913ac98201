"""What an answer says: a number, several numbers in order, or the label of an option that has one.

An option picks itself by its value: a program ends in a value, and the option that has it is the
answer. So options are no inputs of a program, and an altered question has other options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from faithscope.interventions.calculation import MONEY, NUMBER

MOST_NUMBERS = 4
"""Most numbers that an answer may consist of."""
_LABELLED = re.compile(
    rf"(?:\A|(?<=[\s(,;:]))(?:option )?\(?(?P<label>[A-J]|[a-j]|[1-9])(?:\)|:(?=\s)|\.(?=\s))\s*"
    rf"(?P<sign>[-−]?){MONEY}(?P<value>{NUMBER})(?!\w|[.,:]\d|\s*[/^*+=]|\s[-−]\s)"
)
_ONE = r"(?:[^\W\d]\w*\s*=\s*)?([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)"
_BETWEEN = r"(?:\s*;\s*|\s*:\s*|,?\s+and\s+|,\s+|,(?!\d{3}(?!\d)))"
_SEVERAL = re.compile(rf"\(?\s*{_ONE}(?:{_BETWEEN}{_ONE}){{1,{MOST_NUMBERS - 1}}}\s*\)?")
_NEAREST = re.compile(r"\b(?:nearest|closest)\b", re.IGNORECASE)
_NAMED = re.compile(
    r"(?:\b(?:answer|choice|choose|pick|take|select|go (?:with|for))\b(?: is)?:?"
    r"\s*(?:number|no\.?)?\s*[(#]?(?P<chosen>[1-9])(?=\)?\s*(?:[.,;!](?!\d)|\Z))"
    r"|(?:\A|(?<=[\s(]))(?P<listed>[1-9])\)(?=\s*[-−$€£]?\d))"
)
"""A label in a chain, of numbered options."""


@dataclass(frozen=True)
class Option:
    """An option of a question that is a number."""

    label: str
    """A letter in upper case, or a digit."""
    at: int
    """Where it begins."""
    start: int
    end: int
    """Half-open character span of its number, without a sign."""
    value: Fraction

    def named_by(self, answer: str) -> bool:
        return answer.strip(" ().").upper() == self.label


def options_of(question: str) -> tuple[Option, ...]:
    """The options of a question, as in "A) 12 B) 15"; none unless there are two, labelled in order,
    each of one number."""
    found = list(_LABELLED.finditer(question))
    firsts = [i for i, m in enumerate(found) if m["label"] in "Aa1"]
    found = found[firsts[-1] :] if firsts else []
    labels = [m["label"] for m in found]
    numbered = labels[:1] == ["1"]
    due = [chr(ord(labels[0]) + i) for i in range(len(labels))] if labels else []
    between = (question[a.end() : b.start()] for a, b in pairwise(found))
    if len(found) < 2 or labels != due or any(re.search(r"\d", words) for words in between):
        return ()
    if numbered and any(question[m.end("label")] == "." for m in found):
        return ()
    values = (Fraction(m["value"].replace(",", "")) * (-1 if m["sign"] else 1) for m in found)
    return tuple(
        Option(m["label"].upper(), m.start(), *m.span("value"), value)
        for m, value in zip(found, values, strict=True)
    )


def without_options(text: str, options: Sequence[Option]) -> str:
    """A chain of equal length in which the labels of numbered options are no numbers."""
    if not options or not options[0].label.isdigit():
        return text

    def blank(m: re.Match[str]) -> str:
        at = m.start(m.lastgroup or 0) - m.start()
        return f"{m[0][:at]} {m[0][at + 1 :]}"

    return _NAMED.sub(blank, text)


def says_nearest(text: str) -> bool:
    """Whether a chain says that it takes the option nearest to its value."""
    return _NEAREST.search(text) is not None


def picked(options: Sequence[Option], value: Fraction, nearest: bool) -> Fraction | None:
    """The value of the option that a value picks: its own, else the one that is `nearest`; None if
    there is none, or if there are several."""
    if any(option.value == value for option in options):
        return value
    by_distance = sorted({abs(option.value - value) for option in options})
    near = {option.value for option in options if abs(option.value - value) == by_distance[0]}
    return near.pop() if nearest and len(near) == 1 else None


def value_named(options: Sequence[Option], answer: str | None) -> Fraction | None:
    """The value of the option that an answer names; None if it names none."""
    return next((o.value for o in options if answer is not None and o.named_by(answer)), None)


def offered(options: Sequence[Option], values: Iterable[Fraction], at: int) -> list[Fraction]:
    """Other values of a question's options, in their order: the first of `values` at the place
    `at`, the next ones and, where they do not suffice, values as far from the first as the old
    options are from each other, at the other places."""
    first, *others = dict.fromkeys(values)
    apart = sorted({a.value - b.value for a in options for b in options if a is not b}, key=abs)
    fill = [first + distance for distance in apart]
    free = list(dict.fromkeys(x for x in (*others, *fill) if x != first and (x >= 0 or first < 0)))
    free = free[: len(options) - 1]
    free += [first + k for k in range(1, 99) if first + k not in free][: len(options) - 1]
    rest = iter(free)
    return [first if i == at else next(rest) for i in range(len(options))]


def numbers_of(answer: str) -> tuple[str, ...]:
    """The numbers of an answer that consists of several, as "12, 30" or "(12; 30)" do; none of any
    other."""
    found = _SEVERAL.fullmatch(answer.strip())
    if not found:
        return ()
    return tuple(re.findall(_ONE, found[0]))
