r"""Numbers as models write them, each read whole to one canonical form, or not at all.

`1,234.50`, `$18`, `50%`, `-3`, `3/4`, `\frac{-3}{4}`, `2\frac{1}{2}`, `10^3`, `1.5 \times 10^3`,
`2e5`, `2.5 million`, `12 cm^2`, `12 out of 20`, `1.2万`: each is a value, and two answers are the
same where their values are equal. Percent and currency signs and units are dropped, not computed
with: "50%" is 50. What is more than such a number (`5\sqrt{2}`, `2x`, `\pi/2`, `12:30`, `1,5`,
`2 hours 30 minutes`, `x > 5`) has no value, and no part of it has one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from faithscope.experiments.data.latex import as_read, boxes, closing_braces
from faithscope.experiments.data.quantities import NEAR, START, Number, in_ascii, read
from faithscope.interp.number_ends import CALCULATION
from faithscope.interventions.scripts import WORD
from faithscope.interventions.sentences import touched

# "Step 3", and at the beginning of a line with words after it "3.", count steps.
_COUNTER = re.compile(
    r"\bsteps?\s*\#?\d{1,3}\b|^[ \t>*_#]*\(?\d{1,3}[.)][*_]*[ \t]+(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_UNITS = (
    ("years?|yrs?|年", "months?|个月|月", "weeks?", "days?|天|日"),
    ("days?|天|日", "hours?|hrs?|h|小时|時間|点|時", "minutes?|mins?|分钟|分", "seconds?|secs?|秒"),
    ("miles?", "yards?", "feet|foot|ft", "inch(?:es)?|in"),
    ("dollars?|euros?|pounds?|元", "cents?|pence|角", "分"),
    ("pounds?|lbs?", "ounces?|oz"),
)
"""Units of which a length, a time or a price takes several, each smaller than the one before."""
_UNIT = tuple(
    re.compile(rf"\s?(?:{'|'.join(f'({unit})' for unit in units)})(?![{WORD}])", re.IGNORECASE)
    for units in _UNITS
)
_AND = re.compile(r",?\s?(?:and\s)?")
_SIDES = re.compile(r"=|≈|\\approx(?![a-z])")
_OPERATION = re.compile(
    r"\s?\)?\s?(?:[-+*/×÷·]|\\(?:times|cdot|div)|x|times|plus|minus|divided\sby)\s?\(?\s?"
)
_MORE_THAN_WORDS = re.compile(
    r"\\(?!(?:angle|triangle|cdot|degree|[lc]?dots|therefore|Rightarrow|implies)(?![a-z]))"
    r"|[\^{}√π∞<>≤≥≠±|!?+*×÷]|\b\d"
)


def find_numbers(text: str, *, counters: bool = False, whole: bool = False) -> list[Number]:
    """Every number in `text`, in order, those that have no value among them.

    Args:
        counters: step counters ("Step 3", "3. Then …") are numbers, too.
        whole: the text is an answer by itself; see `canonical_number`.
    """
    text = in_ascii(text)
    closing = closing_braces(text)
    hidden = [] if counters else [m.span() for m in _COUNTER.finditer(text)]
    numbers: list[Number] = []
    at = 0
    while start := START.search(text, at):
        at = start.end()
        if touched(hidden, start.start(), start.start() + 1):
            continue
        if number := read(text, start, closing, whole):
            numbers.append(number)
            at = max(at, number.end)
    for i, (one, other) in enumerate(itertools.pairwise(numbers)):
        if _is_compound(text, one, other):
            numbers[i] = replace(one, value=None)
            numbers[i + 1] = replace(other, value=None)
    return numbers


def canonical_number(text: str) -> str | None:
    """The canonical form of the number that a text is: `"$1,234.50"` gives `"1234.5"`.

    Words may stand around it ("x = 5", "5 hours", "18 (that is 3 x 6)"). None where there is no
    number, where there are several ("10 or 12", "5 - 10"), or where it cannot be read whole.
    """
    text = in_ascii(as_read(text)).strip()
    if len(boxed := boxes(text)) == 1:
        text = text[slice(*boxed[0][1])].strip()
    if text.startswith("{") and closing_braces(text).get(0) == len(text) - 1:
        text = text[1:-1].strip()
    numbers = find_numbers(text, counters=True, whole=True)
    values: set[Fraction] = set()
    ends = [*(m.start() for m in _SIDES.finditer(text)), len(text)]
    starts = [0, *(m.end() for m in _SIDES.finditer(text))]
    for start, end in zip(starts, ends, strict=True):
        side = [n for n in numbers if start <= n.start < end]
        gaps = itertools.pairwise([start, *(at for n in side for at in (n.start, n.end)), end])
        words = [text[a:b] for a, b in itertools.islice(gaps, 0, None, 2)]
        if any(n.value is None for n in side) or any(
            map(_MORE_THAN_WORDS.search, words[:1] + words[-1:])
        ):
            return None
        if len(side) == 1:
            values |= {n.value for n in side if n.value is not None}
        elif side and not (len(ends) > 1 and all(map(_OPERATION.fullmatch, words[1:-1]))):
            return None
    return canonical_form(values.pop()) if len(values) == 1 else None


def stated_number(text: str, numbers: Sequence[Number]) -> Number | None:
    """The last number of a text; None where it is an operand of a calculation that is left open.

    "3 + 4 = 7" ends in 7; "15 - 3", "3 + 4 =" and "18 = 9 * 2" end in none.
    """
    if not numbers:
        return None
    last = numbers[-1]
    joined = len(numbers) > 1 and _OPERATION.fullmatch(text[numbers[-2].end : last.start])
    return None if joined or CALCULATION.match(text, last.end) else last


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
    if canonical_number(text) is None:
        return False
    text = in_ascii(as_read(text))
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


def _is_compound(text: str, one: Number, other: Number) -> bool:
    """Whether two numbers are parts of one measure: "2 hours and 30 minutes"."""
    if other.start - one.end > NEAR:
        return False
    for unit in _UNIT:
        greater, less = unit.match(text, one.end), unit.match(text, other.end)
        if greater and less and _AND.fullmatch(text[greater.end() : other.start].strip(" ") + " "):
            return (greater.lastindex or 0) < (less.lastindex or 0)
    return False
