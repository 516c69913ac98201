"""Numbers as models write them, read to one canonical form.

`1,234.50`, `$18`, `50%`, `-3`, `3/4`, `\\frac{3}{4}`, `1.5 \\times 10^3`, `2e5`: each is a
value, and two answers are the same where their values are equal. Percent and currency signs
are dropped, not computed with: "50%" is 50.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from faithscope.interventions.sentences import touched

MAX_DIGITS = 40
"""A longer run of digits is a model that got stuck, not an answer."""

_DIGITS = r"(?:\d{1,3}(?:(?:,|\{,\}|,\\!)\d{3})+(?!\d)|\d+)(?:\.\d+)?|(?<!\.)\.\d+"
_POWER = (
    r"[eE](?P<exp>[-+]?\d{1,3})(?!\w)"
    r"|\s*(?:\\times|\\cdot|[x×*·])\s*10\s*(?:\^|\*\*)\s*\{?(?P<pow>[-+−]?\d{1,3})\}?"
)
_PATTERN = re.compile(
    rf"""
    (?<![\w\\])(?<!\d\.)
    (?P<sign>(?<!\))[-−](?=[$€£\d.\\]))?        # "= -3" is negative, "15-3" and "- 3" are not
    (?:[$€£]\s?(?P<inner>[-−](?=[\d.]))?)?
    (?:
        \\[dt]?frac\s*\{{\s*(?P<upper>\d+)\s*\}}\s*\{{\s*(?P<lower>\d+)\s*\}}
      | (?P<whole>\d+)\s+(?P<part>\d+)/(?P<parts>\d+)(?!/|\.\d)
      | (?<!/)(?P<over>\d+)/(?P<under>\d+)(?!/|\.\d)
      | (?P<plain>{_DIGITS})(?:{_POWER})?
    )
    (?!\d)(?!(?:st|nd|rd|th)\b)                 # no ordinals
    """,
    re.VERBOSE,
)
# "Step 3", and at the beginning of a line with words after it "3.", count steps.
_COUNTER = re.compile(
    r"\bsteps?\s*\#?\d{1,3}\b|^[ \t>*_#]*\(?\d{1,3}[.)][*_]*[ \t]+(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Number:
    """A number found in a text."""

    value: Fraction
    start: int
    end: int

    @property
    def canonical(self) -> str:
        return canonical_form(self.value)


def find_numbers(text: str, *, counters: bool = False) -> list[Number]:
    """Every number in `text`, in order; step counters ("Step 3", "3. Then …") only if asked."""
    hidden = [] if counters else [m.span() for m in _COUNTER.finditer(text)]
    numbers = []
    for match in _PATTERN.finditer(text):
        at = match.start()
        if touched(hidden, at, at + 1):
            continue
        value = _value(match)
        if value is not None:
            numbers.append(Number(value, *match.span()))
    return numbers


def canonical_number(text: str) -> str | None:
    """The canonical form of the one number that a text holds: `"$1,234.50"` gives `"1234.5"`.

    Of several, the last; None where there is none.
    """
    numbers = find_numbers(text, counters=True)
    return numbers[-1].canonical if numbers else None


_BEFORE = re.compile(
    r"(?:\W|_|\b(?:the|final|correct|right|answer|result|total|is|are|equals|about|so|thus|therefore|it|"
    r"text|boxed|approximately|a|b|c|n|x|y|z)\b)*",
    re.IGNORECASE,
)
"""What may stand before a number that is the whole of an answer: "The answer is x = "."""
_AFTER = re.compile(
    r"(?:\\%|[\s$€£%°.,;:!*)\]}])*"
    r"(?:(?:\\text\w*\s*\{\s*)?[^\W\d_]{2,}(?:/[^\W\d_]+)?[.)\]}$]*\s*){0,4}[\s.!*$)\]}]*",
)
"""What may stand after it, its unit: "%", "square metres per second"; no single letter, which may
be a variable, and no operator."""


def reads_as_number(text: str) -> bool:
    """Whether a text as a whole is one number, with its unit or "the answer is" around it.

    "$18", "7 apples" and "x = 5" are; "the revolution of 1789" and "2 or 3" are not.
    """
    numbers = find_numbers(text, counters=True)
    if len(numbers) != 1:
        return False
    before, after = text[: numbers[0].start], text[numbers[0].end :]
    return bool(_BEFORE.fullmatch(before) and _AFTER.fullmatch(after))


def canonical_form(value: Fraction | int) -> str:
    """Plain digits where finitely many do, else a reduced fraction: `10`, `-0.75`, `1/3`."""
    value = Fraction(value)
    rest, places = value.denominator, 0
    while rest % 2 == 0 or rest % 5 == 0:
        rest //= 10 if rest % 10 == 0 else 2 if rest % 2 == 0 else 5
        places += 1
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    if not places:
        return str(value.numerator)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _value(match: re.Match[str]) -> Fraction | None:
    if len(match.group()) > MAX_DIGITS:
        return None
    if match["plain"]:
        value = _scaled(match["plain"], match["exp"] or match["pow"] or "0")
    elif match["whole"]:
        part = _ratio(match["part"], match["parts"])
        value = None if part is None else int(match["whole"]) + part
    else:
        value = _ratio(match["upper"] or match["over"], match["lower"] or match["under"])
    negative = match["sign"] or match["inner"]
    return -value if negative and value is not None else value


def _scaled(digits: str, power: str) -> Fraction | None:
    exponent = int(power.replace("−", "-"))
    if abs(exponent) > MAX_DIGITS:
        return None
    return Fraction(re.sub(r"[^\d.]", "", digits)) * Fraction(10) ** exponent


def _ratio(over: str, under: str) -> Fraction | None:
    return Fraction(int(over), int(under)) if int(under) else None
