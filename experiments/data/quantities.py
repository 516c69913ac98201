r"""One number as it is written out at a place of a text, with all that belongs to it.

Sign, digits with their separators, fraction, mixed number, power, power of ten, a scale in words
("million", 万), unit, "out of 20" and a remark in brackets are read together, so that no part of
a number is taken for the number: `5\sqrt{2}` has no value here, and its 2 is not looked at again.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from faithscope.interp.number_ends import (
    COMMANDS,
    RAISED,
    SCALE_LETTERS,
    SCALE_SIGNS,
    SCALES,
    VARIABLES,
    VULGAR,
)
from faithscope.interventions.scripts import WORD
from faithscope.interventions.sentences import next_visible

MAX_DIGITS = 40
"""A longer run of digits is a model that got stuck, not an answer."""
NEAR = 24
"""Characters before a number in which its sign is looked for, and what it is a part of."""


@dataclass(frozen=True)
class Number:
    """A number in a text."""

    value: Fraction | None
    """None where it cannot be read whole, or is a part of what is more than a number."""
    start: int
    end: int


_LOWERED = str.maketrans(RAISED, "0123456789-+")
_ALIKE = str.maketrans("−－＝％．／：（）٫٬", "--=%./:().,")
_EXPONENT = r"(?:\{\s?(?P<pow>[-+]?\d{1,3})\s?\}|(?P<bare>[-+]?\d{1,3})(?![\d.]*\d))"
_POWER = re.compile(rf"\s?(?:\^|\*\*)\s?{_EXPONENT}|(?P<raised>[{RAISED}]{{1,4}})")
_TEN = re.compile(
    rf"[eE](?P<e>[-+]?\d{{1,3}})(?![{WORD}])"
    rf"|\s?(?:\\times|\\cdot|[x×*·])\s?10\s?(?:(?:\^|\*\*)\s?{_EXPONENT}|(?P<raised>[{RAISED}]{{1,4}}))"
)
_RUN = r"(?:\d+|(?<![\d.])\.\d+)(?:[.,:/_\u2009\u202f\u00a0]\d+)*"
START = re.compile(
    rf"(?<![{WORD}\\])(?<!\d[.,:/])(?P<run>\d{{1,3}}(?:[ ]\d{{3}})+(?![.,:/_]?\d)|{_RUN})"
    rf"|(?P<vulgar>[{VULGAR}])|√\s?\d+|(?P<command>\\(?:[dtc]?frac|sqrt)(?=\s*[{{\d\[])|\\[A-Za-z]+(?=\s*\{{))"
)
"""Pattern of places where a number may begin."""
_DECIMAL = re.compile(
    r"(?:\d+|\d{1,3}(?:(?P<mark>[,_ \u2009\u202f\u00a0])\d{3})(?:(?P=mark)\d{3})*"
    r"|\d{1,2}(?:,\d{2})+,\d{3})(?:\.\d+)?|\.\d+"
)
_SIGN = re.compile(
    rf"(?:(?<![{WORD}])(?P<word>negative|minus)\s|(?P<own>[负負]|零下|マイナス|마이너스\s?))?"
    rf"(?:(?P<sign>(?<![{WORD})\]}}\u0590-\u06ff])[-+])(?P<gap>\s?))?(?:\\?[$€£¥₹₩฿]\s?(?P<inner>-)?)?\Z",
    re.IGNORECASE,
)
_BEFORE_SIGN = re.compile(r"(?:\A|[=(:{]|\b(?:is|was|be|to|of|by|at|or|get))\s*\Z")
_ADDED = re.compile(
    rf"\s?(?P<vulgar>[{VULGAR}])|\s(?:and\s)?(?P<over>\d{{1,4}})/(?P<under>\d{{1,4}})(?![/.,]?\d)"
    r"|\sand\san?\s(?P<word>half|quarter|third)\b|\s?\\[dtc]?frac(?=\s*[{\d])"
)
_WORDS = {"half": Fraction(1, 2), "quarter": Fraction(1, 4), "third": Fraction(1, 3)}
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "lakh": 5}
_SCALES |= {"crore": 7, "k": 3, "m": 6, "mn": 6, "b": 9, "bn": 9, "百": 2, "千": 3, "천": 3}
_SCALES |= dict.fromkeys("万萬만", 4) | dict.fromkeys("亿億억", 8)
_SCALE = re.compile(
    rf"\s?(?P<word>{SCALES})s?\b(?!-)"
    rf"|\s?(?P<han>{SCALE_SIGNS})(?P<more>\d{{0,12}})",
    re.IGNORECASE,
)
_MONEY_SCALE = re.compile(rf"(?P<word>{SCALE_LETTERS}|m)(?![{WORD}])")
_LENGTH = (
    r"(?:[mcdk]?m|in|ft|yd|mi|s|sec|h|hr|inch(?:es)?|feet|foot|yards?|miles?|units?|seconds?|hours?"
    r"|(?:centi|milli|kilo|deci)?met(?:er|re)s?)"
)
_UNIT = re.compile(
    r"\s?(?:%|percent\b|per\scent\b|(?:\^\s?(?:\\circ|\{\s?\\circ\s?\})|°)(?:\s?[CF]\b)?)"
    rf"|\s?(?:[^\W\d_]{{1,9}}(?:\s|\s?[/·]\s?)){{0,2}}{_LENGTH}[$]?\s?"
    r"(?:\^\s?(?:\{\s?-?[1-9]\s?\}|-?[1-9])|⁻?[¹²³⁴])[$]?",
    re.IGNORECASE,
)
_OF = re.compile(
    rf"\s(?:[^\W\d_]{{1,15}}\s)?out\sof\s(?:[a-z]{{1,5}}\s){{0,3}}[$]?{_RUN}"
    rf"|\sof\s(?:the|all|his|her|its|their|our|my)\s{_RUN}(?=\s[a-z])",
    re.IGNORECASE,
)
_SHARE_OF = re.compile(rf"(?:%|\spercent)\sof\s(?:[a-z]{{1,5}}\s)?[$]?{_RUN}", re.IGNORECASE)
_WORKED_REMARK = re.compile(r"\s?\([^()\n\d]{0,99}\d[^()\n\d]{0,20}?[-+*/x×÷=][^()\n]{0,99}\)")
_REMARK = re.compile(r"\s\([^()\n√π\\^]{0,200}\)")
_VARIABLE = rf"(?:[{VARIABLES}]|xy|xyz|yz|xz|ab|bc|ac|abc)(?![{WORD}'’-])"
_GOES_ON = re.compile(
    rf"\s?\\(?:{COMMANDS})(?![a-z])|\s?[√π∞±‰]|(?:{SCALE_LETTERS})(?![{WORD}'’-])"
    r"|\s?\^(?!\s?(?:\\circ|\{\s?\\circ))|\*\*\d"
    r"|\s?[*×·]?\s?(?:sqrt|log|ln|sin|cos|tan|pi)(?![a-z])"
    rf"|[{RAISED}]|{_VARIABLE}|\([\d\\]|\([a-z][)+*^-]|\)\s?\^|['′]\s?\d|!\s?[)}}=*/+×]"
    rf"|\s?[+*/×÷]\s?{_VARIABLE}|\s-\s[xyznπ](?![{WORD}])"
)
"""What follows a number that is a part of something else: `\\sqrt{2}`, `x`, `!`, `(x + 1)`."""
_PART_OF = re.compile(
    rf"(?:\^\{{?\s?[-+]?|(?:(?<![{WORD}])[A-Za-z]|sqrt|log|ln|exp|sin|cos|tan)\(-?"
    rf"|[{WORD})\]}}]/|\\[a-z]+\s?/|[{WORD}]-|[)\]}}]\s?[+*×÷·]\s?"
    rf"|(?<![{WORD}'’])[xyznkbcπθ]\s?[-+*×÷·]\s?"
    r"|\\(?:pm|mp|log|ln|sin|cos|tan|pi|theta|leq?|geq?|neq?|lt|gt)(?![a-z])\s*|[±√π≤≥≠]\s?"
    r"|(?<![\s<>=-])(?<![</][a-z])\s?[<>]=?\s?)\Z"
)
"""What stands before a number that is a part of something else: `x^`, `f(`, `\\pi/`, `x > `."""
_NAME = re.compile(r"(?:_\{?|(?<![^\s(\[\"'])(?=[^\s-]*[A-Z])[^\s-]+-)\Z")
"""What stands before digits that belong to a name: `x_1`, `COVID-19`."""
_ORDINAL = re.compile(rf"(?:st|nd|rd|th)(?![{WORD}])", re.IGNORECASE)
_ARGUMENTS = {"frac": 2, "sqrt": 1}
_UNWRAPPED = ("boxed", "fbox", "underline", "overline", "hspace", "vspace", "tag", "label", "ref")
"""Commands that have no value of their own, whatever stands in their braces."""


def in_ascii(text: str) -> str:
    """A text with the digits of every script, and the signs beside them, in ASCII; as long."""
    text = re.sub(r"(?<=[０-９])，(?=[０-９]{3}(?![０-９]))", ",", text)
    digits = {c: unicodedata.decimal(c) for c in set(text) if not c.isascii() and c.isdecimal()}
    return text.translate(_ALIKE | {ord(c): str(digit) for c, digit in digits.items()})


def read(text: str, start: re.Match[str], closing: Mapping[int, int], whole: bool) -> Number | None:
    """The number that begins at a match of `START`; None where its digits belong to a name.

    Args:
        text: of `in_ascii`.
        closing: of `latex.closing_braces`.
        whole: the text is an answer by itself: "12 345" is one number, and a remark in brackets
            is none of it.
    """
    begin = start.start()
    before = text[max(0, begin - NEAR) : begin]
    value, end = _base(text, start, closing, whole)
    if end is None or _NAME.search(before) or _ORDINAL.match(text, end):
        return None
    sign, minus = _sign(before, whole)
    begin -= len(sign)
    money = any(c in "$€£¥₹₩฿" for c in sign)
    value, end = _lengthened(text, start, closing, value, end, money)
    value = -value if minus and value is not None else value
    in_brackets = begin > 0 and text[begin - 1] + text[end : end + 1] == "()"
    if in_brackets and (power := _POWER.match(text, end + 1)):
        value, begin, end = _power(value, power), begin - 1, power.end()
    before = text[max(0, begin - NEAR) : begin]
    command = start["command"] and re.search(rf"(?:\d\s|(?<![a-z])[{WORD})}}\]])\Z", before)
    if command or _PART_OF.search(before) or _GOES_ON.match(text, end):
        value = None
    for more in (_SHARE_OF, _UNIT, _OF, _REMARK if whole else _WORKED_REMARK):
        if match := more.match(text, end):
            value, end = None if more is _SHARE_OF else value, match.end()
    return Number(value, begin, end)


def _sign(before: str, whole: bool) -> tuple[str, bool]:
    """What a text ends with that is a number's sign and currency, and whether it is negative."""
    sign = _SIGN.search(before)
    if sign is None:
        return "", False
    apart = (sign["gap"] and whole) or (sign["word"] or "").lower() == "minus"
    if (apart or sign["gap"]) and not (apart and _BEFORE_SIGN.search(before[: sign.start()])):
        return "", False  # "- 3" is an item of a list, "5 - 3" and "5 minus 3" are calculations
    in_words = bool(sign["word"] or sign["own"])
    return sign[0], (sign["sign"] == "-" or bool(sign["inner"])) != in_words


def exact(text: str) -> Fraction | None:
    """The value of plain digits, with or without a sign and marks between them."""
    text = text.strip()
    sign, digits = (text[:1], text[1:].strip()) if text[:1] in "-+" else ("", text)
    if not _DECIMAL.fullmatch(digits) or len(digits) > MAX_DIGITS:
        return None
    value = Fraction(re.sub(r"[^\d.]", "", digits))
    return -value if sign == "-" else value


def _base(
    text: str, start: re.Match[str], closing: Mapping[int, int], whole: bool
) -> tuple[Fraction | None, int | None]:
    """What a number begins with, and where that ends; no end where it is none."""
    if start["vulgar"]:
        return _vulgar(start["vulgar"]), start.end()
    if start["command"]:
        return _command(text, start["command"], start.end(), closing)
    run = start["run"]
    if run is None:
        return _root(exact(start[0][1:])), start.end()
    over, slash, under = run.partition("/")
    if slash:
        return _ratio(exact(over), exact(under)), start.end()
    if " " in run and not whole and " 0" not in run:
        return None, start.end()  # "2 500 ml bottles" are two numbers, or one
    return exact(run), start.end()


def _command(
    text: str, command: str, at: int, closing: Mapping[int, int]
) -> tuple[Fraction | None, int | None]:
    """The value of a fraction or a root; any other command with digits in its braces has none."""
    name = command[1:].replace("dfrac", "frac").replace("tfrac", "frac").replace("cfrac", "frac")
    arguments: list[str] = []
    while len(arguments) < _ARGUMENTS.get(name, 9):
        opens = next_visible(text, at)
        if opens in closing:
            arguments.append(text[opens + 1 : closing[opens]])
            at = closing[opens] + 1
        elif name in _ARGUMENTS and text[opens : opens + 1].isdigit():
            arguments.append(text[opens])
            at = opens + 1
        else:
            break
    if name in _UNWRAPPED or not any(c.isdigit() for argument in arguments for c in argument):
        return None, None
    values = [exact(argument) for argument in arguments]
    if name == "frac" and len(values) == 2:
        return _ratio(*values), at
    return (_root(values[0]) if name == "sqrt" else None), at


def _lengthened(
    text: str,
    start: re.Match[str],
    closing: Mapping[int, int],
    value: Fraction | None,
    end: int,
    money: bool,
) -> tuple[Fraction | None, int]:
    """A value with its fraction, power or scale."""
    run = start["run"] or ""
    if run.isdigit() and (added := _ADDED.match(text, end)):
        return _mixed(text, value, added, closing)
    if "/" not in run and (run or start["vulgar"]) and (power := _POWER.match(text, end)):
        value, end = _power(value, power), power.end()
    if ten := _TEN.match(text, end):
        exponent = ten["e"] or _exponent(ten)
        value, end = _times(value, 10, int(exponent)), ten.end()
    if money and (scale := _MONEY_SCALE.match(text, end)):
        return _times(value, 10, _SCALES[scale["word"].lower()]), scale.end()
    return (None, end) if value is None else _scaled(text, value, end)


def _scaled(text: str, value: Fraction, end: int) -> tuple[Fraction, int]:
    """A value with the scale that follows it: "2.5 million", 1.2万, 3万5千."""
    more = Fraction(0)
    while scale := _SCALE.match(text, end):
        exponent = _SCALES[(scale["word"] or scale["han"]).lower()]
        # the digits behind one sign are of the next, lower one
        value = value + more * (10**exponent - 1) if more else value * 10**exponent
        more = Fraction(scale["more"] or 0)
        value += more
        end = scale.end()
    return value, end


def _mixed(
    text: str, whole: Fraction | None, added: re.Match[str], closing: Mapping[int, int]
) -> tuple[Fraction | None, int]:
    end = added.end()
    if added["vulgar"]:
        part = _vulgar(added["vulgar"])
    elif added["over"]:
        part = _ratio(exact(added["over"]), exact(added["under"]))
    elif added["word"]:
        part = _WORDS[added["word"].lower()]
    else:
        part, at = _command(text, "\\frac", end, closing)
        end = at or end
    if whole is None or part is None or not 0 < part < 1:
        return None, end
    return whole + part, end


def _vulgar(character: str) -> Fraction:
    return Fraction(unicodedata.numeric(character)).limit_denominator(10)


def _ratio(over: Fraction | None, under: Fraction | None) -> Fraction | None:
    return over / under if over is not None and under else None


def _root(value: Fraction | None) -> Fraction | None:
    if value is None or value < 0:
        return None
    over, under = math.isqrt(value.numerator), math.isqrt(value.denominator)
    return Fraction(over, under) if Fraction(over, under) ** 2 == value else None


def _exponent(match: re.Match[str]) -> str:
    return match["pow"] or match["bare"] or match["raised"].translate(_LOWERED)


def _power(value: Fraction | None, match: re.Match[str]) -> Fraction | None:
    try:
        exponent = int(_exponent(match))
    except ValueError:  # a lone sign: ⁻
        return None
    if value is None or (value == 0 and exponent < 0):
        return None
    digits = max(len(str(value.numerator)), len(str(value.denominator)))
    return value**exponent if digits * abs(exponent) <= 2 * MAX_DIGITS else None


def _times(value: Fraction | None, base: int, exponent: int) -> Fraction | None:
    if value is None or abs(exponent) > MAX_DIGITS:
        return None
    return value * Fraction(base) ** exponent
