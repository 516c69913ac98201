r"""Numbers as models write them, each read whole to one canonical form, or not at all.

`1,234.50`, `$18`, `50%`, `-3`, `3/4`, `\frac{-3}{4}`, `2\frac{1}{2}`, `10^3`, `1.5 \times 10^3`,
`2e5`, `2.5 million`, `12 cm^2`, `12 out of 20`, `1.2万`: each is a value, and two answers are the
same where their values are equal. Percent and currency signs and units are dropped, not computed
with: "50%" is 50. A number ends where its text does: what stands on either side of it must be
white space, punctuation, a unit or another script, or it is a part of something else and has no
value (`5\sqrt{2}`, `2x`, `T - 18`, `(3,125)`, `12:30`, `x > 5`, `7 (mod 11)`, `3 dozen`).
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from faithscope.experiments.data.latex import as_read, boxes, closing_braces
from faithscope.experiments.data.statements import without_tags
from faithscope.interp.number_ends import CALCULATION, RAISED, SCALE_LETTERS, SCALE_SIGNS, SCALES
from faithscope.interp.number_ends import VULGAR as _VULGAR
from faithscope.interventions.scripts import WORD
from faithscope.interventions.sentences import next_visible, touched

MAX_DIGITS = 40
"""A longer run of digits is a model that got stuck, not an answer."""
NEAR = 24
"""Characters before a number in which its sign is looked for, and what it is joined to."""


@dataclass(frozen=True)
class Number:
    """A number in a text."""

    value: Fraction | None
    """None where it cannot be read whole, or is a part of what is more than a number."""
    start: int
    end: int


_ALIKE = str.maketrans("−－＝％．／：（）٫٬", "--=%./:().,")
_LOWERED = str.maketrans(RAISED, "0123456789-+")
_EXPONENT = r"(?:\{\s?(?P<pow>[-+]?\d{1,3})\s?\}|(?P<bare>[-+]?\d{1,3})(?![\d.]*\d))"
_POWER = re.compile(rf"\s?(?:\^|\*\*)\s?{_EXPONENT}|(?P<raised>[{RAISED}]{{1,4}})")
_TEN = re.compile(
    rf"[eE](?P<e>[-+]?\d{{1,3}})(?![{WORD}])"
    rf"|\s?(?:\\times|\\cdot|[x×*·])\s?10\s?(?:(?:\^|\*\*)\s?{_EXPONENT}|(?P<raised>[{RAISED}]{{1,4}}))"
)
_RUN = r"(?:\d+|(?<![\d.])\.\d+)(?:[.,:/_\u2009\u202f\u00a0]\d+)*"
_START = re.compile(
    rf"(?<![{WORD}\\])(?<!\d[.,:/])(?P<run>\d{{1,3}}(?:[ ]\d{{3}})+(?![.,:/_]?\d)|{_RUN})"
    rf"|(?P<vulgar>[{_VULGAR}])|√\s?\d+|(?P<command>\\(?:[dtc]?frac|sqrt)(?=\s*[{{\d\[])|\\[A-Za-z]+(?=\s*\{{))"
)
"""Pattern of places where a number may begin."""
_DECIMAL = re.compile(
    r"(?:\d+|[1-9]\d{0,2}(?:(?P<mark>[,_ \u2009\u202f\u00a0])\d{3})(?:(?P=mark)\d{3})*"
    r"|\d{1,2}(?:,\d{2})+,\d{3})(?:\.\d+)?|\.\d+"
)
_MONEY = r"[$€£¥₹₩฿]"
_SIGN = re.compile(
    rf"(?:(?<![{WORD}])(?P<word>negative|minus)\s|(?P<own>[负負]|零下|マイナス|마이너스\s?))?"
    rf"(?:(?P<sign>(?<![{WORD})\]}}\u0590-\u06ff])[-+])(?P<gap>\s?))?(?:\\?{_MONEY}\s?(?P<inner>-)?)?\Z",
    re.IGNORECASE,
)
_BEFORE_SIGN = re.compile(r"(?:\A|[=(:{]|\b(?:is|was|be|to|of|by|at|or|get))\s*\Z")
_ADDED = re.compile(
    rf"\s?(?P<vulgar>[{_VULGAR}])|\s(?:and\s)?(?P<over>\d{{1,4}})/(?P<under>\d{{1,4}})(?![/.,]?\d)"
    r"|\sand\san?\s(?P<word>half|quarter|third)\b|\s?\\[dtc]?frac(?=\s*[{\d])"
)
_WORDS = {"half": Fraction(1, 2), "quarter": Fraction(1, 4), "third": Fraction(1, 3)}
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "lakh": 5}
_SCALES |= {"crore": 7, "k": 3, "m": 6, "mn": 6, "b": 9, "bn": 9, "百": 2, "千": 3, "천": 3}
_SCALES |= dict.fromkeys("万萬만", 4) | dict.fromkeys("亿億억", 8)
_SCALE = re.compile(
    rf"\s?(?P<word>{SCALES})s?\b(?!-)|\s?(?P<han>{SCALE_SIGNS})(?P<more>\d{{0,12}})", re.IGNORECASE
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
_WORKED_REMARK = re.compile(r"\s\([^()\n\d√π]{0,99}\d[^()\n\d]{0,20}?[-+*/x×÷=][^()\n]{0,99}\)")
_OPERATORS = "+×÷·^√π∞±‰≤≥≠−"
_QUIET = r"\\(?:approx|sim|to|therefore|so|[Rr]ightarrow|implies|[lc]?dots|quad|hline|item|f?boxed)"
"""LaTeX commands that leave a number beside them as it is."""
_LEFT = re.compile(
    rf"(?:\A|[\s(\[{{}}\"'“‘«»”’:;,=≈~…—–•|*#$&!?.。，、：；！？]|[^\x00-\x7f{WORD}{_OPERATORS}]"
    r"|(?:^|[-=>\s]|<[^<>\s]{1,20})>)\Z",
    re.MULTILINE,
)
"""What may stand right before a number."""
_JOINED = re.compile(
    rf"(?:[{WORD})\]}}]\$?[ \t]?(?:[-*/<]|>=?)|[{_OPERATORS}]|(?<![{WORD}])[<>]=|\\(?!{_QUIET[2:]}"
    rf"(?![a-zA-Z]))[A-Za-z]+\s?\{{?|[A-Za-z]\(|\b(?:mod|base)[ ]|\d['′])[ \t]?[-(${{]{{0,3}}\Z"
)
"""What joins a number to what stands before it: `T - `, `x > `, `f(`, `\\pi `."""
_DASH = re.compile(r"[^\W\d_]{3,}[ \t][-][ \t]\Z")
"""A dash after a word, which is no minus: "Total - 18"."""
_ATTACHED = (
    r"(?:[kcmdμn]?m|[kmµ]?g|[mk]?l|lbs?|oz|in|ft|yd|mi|hrs?|h|mins?|secs?|m?s|[ap]m|mph|km/?h|kph"
    r"|[km]?W|kWh|[kKMGT]i?B|[kMG]?Hz|px|cents?|dollars?|pts?|yrs?|USD|EUR|k?cal|k?J|[CFNVLK]|mol)"
)
_RIGHT = re.compile(
    rf"(?:\Z|[\s.,;:!?)\]}}\"'”’»$*_|…&=。，、：；！？]|[—–-](?=\s|[A-Za-z]{{2}}|\Z)|/(?=[a-z]{{2}})|<"
    rf"|{_ATTACHED}(?![{WORD}])|{_QUIET}|[^\x00-\x7f{WORD}{_OPERATORS}])"
)
"""What may stand right behind a number."""
_GOES_ON = re.compile(
    rf"\s?[{_OPERATORS}]|[ \t]?[*/](?![*\s]*[^\W\d_]{{2}})[ \t]?[\w(\\]"
    rf"|\s-\s?[A-Za-z](?![{WORD}'’])|\s?\\(?!{_QUIET[2:]}(?![a-z]))[a-zA-Z]"
    r"|\s?(?:sqrt|log|ln|sin|cos|tan|pi|mod|dozens?)(?![a-z])|\s\((?:mod|base)\b|\s[<>]=?\s?\w|['′]\s?\d|!\s?[)}=*/+×]|\)\s?\^"
)
"""What makes a number that stands right before it a part of something else."""
_NAME = re.compile(r"(?:_\{?|(?<![^\s(\[\"'])(?=[^\s-]*[A-Z])[^\s-]+-)\Z")
"""What stands before digits that belong to a name: `x_1`, `COVID-19`."""
_ORDINAL = re.compile(rf"(?:st|nd|rd|th)(?![{WORD}])", re.IGNORECASE)
_TUPLE = re.compile(r"[(\[{]\s?[-\d,.]*\d,\d[-\d,.]*\s?\\?[)\]}]")
_ARGUMENTS = {"frac": 2, "sqrt": 1}
_UNWRAPPED = ("boxed", "fbox", "underline", "overline", "hspace", "vspace", "tag", "label", "ref")
"""Commands that have no value of their own, whatever stands in their braces."""
# "Step 3", and at the beginning of a line with words after it "3.", count steps.
_COUNTER = re.compile(
    r"\b(?:steps?|player|box|option|case|figure|fig\.|table|chapter|section|question|problem"
    r"|example|equation|eq\.|method|scenario|part|round|level|page|team|group|room|line|row)"
    r"\s*\#?\d{1,3}\b(?!\s[a-z]+s\b)|(?<![#\w])\#\d+|^[ \t>*_#]*\(?\d{1,3}[.)][*_]*[ \t]+(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_SEVERAL = (
    ("years?|yrs?|年", "months?|个月|月", "weeks?", "days?|天|日"),
    ("days?|天|日", "hours?|hrs?|h|小时|時間|点|時", "minutes?|mins?|分钟|分", "seconds?|secs?|秒"),
    ("miles?", "yards?", "feet|foot|ft", "inch(?:es)?|in"),
    ("dollars?|euros?|pounds?|元", "cents?|pence|角", "分"),
    ("pounds?|lbs?", "ounces?|oz"),
)
"""Units of which a length, a time or a price takes several, each smaller than the one before."""
_COMPOUND = tuple(
    re.compile(rf"\s?(?:{'|'.join(f'({unit})' for unit in units)})(?![{WORD}])", re.IGNORECASE)
    for units in _SEVERAL
)
_AND = re.compile(r",?\s?(?:and\s)?")
_OPERATION = re.compile(
    r"\s?\)?\s?(?:[-+*/×÷·]|\\(?:times|cdot|div)|x|times|plus|minus|divided\sby)\s?\(?\s?"
)
_SIDES = re.compile(r"=|≈|\\approx(?![a-z])")
_CALCULATED = re.compile(
    rf"(?:[\d\s.,+*/×÷·^()\[\]{{}}%-]|{_MONEY}|\\(?:times|cdot|div|[dt]?frac|sqrt)(?![a-z])|\bx\b)*"
)
_NAMED = re.compile(r"(?:[^\d<>≤≥≠±|,!]|_\{?\d+\}?)*(?<![-+*/×÷^])\s*")
"""A side of an equation that names what is computed: `x`, `\\angle A`, "Total cost"."""
LEAD = re.compile(
    r"(?:[^\W\d_]{3,20}:\s)?(?:[\s$*_(\[{\"'“:~#]|\b(?:the|my|our|final|correct|right|answer|result|total|sum|value|cost|price|is"
    r"|are|equals?|equal|to|be|comes|about|around|approximately|roughly|nearly|almost|exactly|only"
    r"|just|simply|thus|therefore|so|it|a\stotal\sof|at\s(?:least|most)|USD|US(?=\$)|Rs\.?)(?![^\W_]))*",
    re.IGNORECASE,
)
"""What may stand before a number that is the whole of an answer: "The answer is about $"."""
_NO_UNIT = (
    "or|and|to|through|more|less|fewer|greater|times|plus|minus|over|mod|dozens?|divided|multiplied"
    "|decimal|significant|squared|cubed|factorial|choose"
)
_TAIL = re.compile(
    rf"(?:\s?[-/·]?\s?(?!(?:{_NO_UNIT})\b)(?:[^\W\d_]{{2,}}(?:[-'’][^\W\d_]+)?|[^\x00-\x7f{WORD}{_OPERATORS}]"
    rf"|(?<=[\s/·])[mglshtLKCFNJWVA](?![{WORD}]))\.?){{0,8}}(?:\sto\s\w+\s(?:decimal|significant)\s\w+)?[\s.!,;$%°)\]}}\"'”*_]*",
    re.IGNORECASE,
)
"""What may stand after it: its unit, up to eight words; no single letter but a unit's, which may
be a variable, no operator, and no other number."""
_REMARK = re.compile(r"(?<=\S)\s\((?!\s*(?:mod|base|or|and)\b)[^()\n√π\\^]{0,200}\)(?=[\s.!$]*\Z)")


def in_ascii(text: str) -> str:
    """A text with the digits of every script, and the signs beside them, in ASCII; as long."""
    text = re.sub(r"(?<=[０-９])，(?=[０-９]{3}(?![０-９]))", ",", text)
    digits = {c: unicodedata.decimal(c) for c in set(text) if not c.isascii() and c.isdecimal()}
    return text.translate(_ALIKE | {ord(c): str(digit) for c, digit in digits.items()})


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
    while start := _START.search(text, at):
        at = start.end()
        if touched(hidden, start.start(), start.start() + 1):
            continue
        if number := _read(text, start, closing, whole):
            numbers.append(number)
            at = max(at, number.end)
    for i, (one, other) in enumerate(itertools.pairwise(numbers)):
        if _is_compound(text, one, other):
            numbers[i] = replace(one, value=None)
            numbers[i + 1] = replace(other, value=None)
    return numbers


def canonical_number(text: str) -> str | None:
    """The canonical form of the number that a text is: `"$1,234.50"` gives `"1234.5"`.

    A unit, "the answer is" or "x = " may stand around it, and a remark in brackets behind it. None
    where there is no number, where there are several ("10 or 12", "5 - 10", "(3, 4)"), or where
    anything is left over.
    """
    value = _value(text)
    return None if value is None else canonical_form(value)


def reads_as_number(text: str) -> bool:
    """Whether a text as a whole is one number, with its unit or "the answer is" around it.

    "$18", "7 apples" and "x = 5" are; "the revolution of 1789" and "2 or 3" are not.
    """
    return _value(text) is not None


def stated_number(text: str, numbers: Sequence[Number]) -> Number | None:
    """The last number of a text; None where it is an operand of a calculation that is left open.

    "3 + 4 = 7" ends in 7; "15 - 3", "3 + 4 =" and "18 = 9 * 2" end in none.
    """
    if not numbers:
        return None
    last = numbers[-1]
    joined = len(numbers) > 1 and _OPERATION.fullmatch(text[numbers[-2].end : last.start])
    return None if joined or CALCULATION.match(text, last.end) else last


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


_LONGEST = 400
"""Characters of a text that can be one number with its unit."""


def _value(text: str) -> Fraction | None:
    text = in_ascii(as_read(without_tags(text))).strip()
    if len(boxed := boxes(text)) == 1:
        text = text[slice(*boxed[0][1])].strip()
    if len(text) > _LONGEST:
        return None
    if text.startswith("{") and closing_braces(text).get(0) == len(text) - 1:
        text = text[1:-1].strip()
    values: set[Fraction] = set()
    text = re.sub(r"(?<=\d) / (?=\d)", "/", text)
    sides = _SIDES.split(_REMARK.sub("", text))
    for side in sides:
        if side is not sides[-1] and "/" in side and _CALCULATED.fullmatch(side):
            continue  # what is divided, not what comes of it
        if (value := _of_side(side)) is not None:
            values.add(value)
        elif len(sides) == 1 or not (_CALCULATED.fullmatch(side) or _NAMED.fullmatch(side)):
            return None
    # "-x - y = 0" is an equation, while "x + y = 5" says what the sum is
    is_equation = values == {0} and any(re.search(r"[-+*/^]", side) for side in sides[:-1])
    last = _of_side(sides[-1])
    return last if len(values) == 1 and not is_equation else None


def _of_side(text: str) -> Fraction | None:
    """The value of a text that is one number with its unit."""
    start = _START.search(text)
    number = start and _read(text, start, closing_braces(text), True)
    if not number or not LEAD.fullmatch(text, 0, number.start):
        return None
    if text[number.end :].startswith("!") or not _TAIL.fullmatch(text, number.end):
        return None
    return number.value


def _read(
    text: str, start: re.Match[str], closing: Mapping[int, int], whole: bool
) -> Number | None:
    """The number that begins at a match of `_START`; None where its digits belong to a name."""
    begin = start.start()
    before = text[max(0, begin - NEAR) : begin]
    value, end = _base(text, start, closing, whole)
    if end is None or _NAME.search(before) or _ORDINAL.match(text, end):
        return None
    sign, minus = _sign(before, whole)
    begin -= len(sign)
    money = bool(re.search(_MONEY, sign))
    value, end = _lengthened(text, start, closing, value, end, money)
    value = -value if minus and value is not None else value
    in_brackets = begin > 0 and text[begin - 1] + text[end : end + 1] == "()"
    if in_brackets and (power := _POWER.match(text, end + 1)):
        value, begin, end = _power(value, power), begin - 1, power.end()
    for more in (_SHARE_OF, _UNIT, _OF, _WORKED_REMARK):
        if match := more.match(text, end):
            value, end = None if more is _SHARE_OF else value, match.end()
    before = text[max(0, begin - NEAR) : begin]
    command = start["command"] and re.search(rf"(?:\d\s|(?<![a-z])[{WORD})}}\]])\Z", before)
    joined = _JOINED.search(before) and not _DASH.search(before)
    closed = _LEFT.search(before) and _RIGHT.match(text, end) and not _GOES_ON.match(text, end)
    if command or joined or not closed or (begin and _TUPLE.match(text, begin - 1)):
        value = None
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


def _exact(text: str) -> Fraction | None:
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
        return _root(_exact(start[0][1:])), start.end()
    over, slash, under = run.partition("/")
    if slash:
        return _ratio(_exact(over), _exact(under)), start.end()
    if " " in run and not whole and " 0" not in run:
        return None, start.end()  # "2 500 ml bottles" are two numbers, or one
    return _exact(run), start.end()


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
    values = [_exact(argument) for argument in arguments]
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
        part = _ratio(_exact(added["over"]), _exact(added["under"]))
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


def _is_compound(text: str, one: Number, other: Number) -> bool:
    """Whether two numbers are parts of one measure: "2 hours and 30 minutes"."""
    if other.start - one.end > NEAR:
        return False
    for unit in _COMPOUND:
        greater, less = unit.match(text, one.end), unit.match(text, other.end)
        if greater and less and _AND.fullmatch(text[greater.end() : other.start].strip(" ") + " "):
            return (greater.lastindex or 0) < (less.lastindex or 0)
    return False
