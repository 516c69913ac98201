"""What in a step of mathematics may be exchanged: its numbers, operators and comparisons.

Candidates only, in the order in which they are to be tried; whether an exchange breaks the step
is for `acausal.py` to say. Text may hold LaTeX.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from faithscope.interventions.calculation import miscalculation
from faithscope.interventions.corrupt import Change, cased, is_result, numbers, other_leading_digits

MATH = re.compile(r"\$\$.+?\$\$|(?<!\\)\$.+?(?<!\\)\$|\\\(.+?\\\)|\\\[.+?\\\]", re.DOTALL)
"""A stretch of LaTeX mathematics with its delimiters."""
_COMPARED = r"(?:[<>≤≥≠]|!=|\\(?:leq?|geq?|lt|gt|neq?|leqslant|geqslant)(?![a-zA-Z]))"
_AFTER_BOUND = re.compile(
    rf"(?:{_COMPARED}=?|\b(?:than(?: or equal to)?|at least|at most|up to|between|exceeds?))"
    r"[\s$({\[|+−-]*$",
    re.IGNORECASE,
)
_BEFORE_BOUND = re.compile(
    rf"[\s$)}}\]|]*(?:{_COMPARED}|(?:is|are|was|were)\s+(?:\w+er|more|less)\s+than\b)"
)
_WORDS = re.compile(r"\\(?:text|mathrm|textbf|operatorname)\s*\{[^{}]*\}|\\(?:begin|end)\{[^{}]*\}")

_OPERAND_BEFORE = re.compile(r"[\w)}\]!|'′]\s*(?:\\right[)\]|.])?[\s$]*$")
_OPERAND_AFTER = re.compile(r"[\s$]*(?:\\(?!right|end|leq?\b|geq?\b)[a-zA-Z(]|[\w({\[|.])")
_OPERATOR = re.compile(
    r"\\(?P<command>times|cdot|div)(?![a-zA-Z])|(?P<sign>[-+−×·÷]|(?<!\*)\*(?!\*))"
)
_TURNED = {
    "+": "-",
    "-": "+",
    "−": "+",
    "times": "+",
    "cdot": "+",
    "×": "+",
    "·": "+",
    "*": "+",
    "div": r"\times",
    "÷": "×",
}

_COMPARATOR = re.compile(
    r"\\(?P<command>leqslant|geqslant|leq|geq|le|ge|lt|gt|neq|ne)(?![a-zA-Z])"
    r"|(?P<sign><=|>=|!=|(?<![-=<])[<>](?![->])|[≤≥≠])"
)
_FLIPPED = {
    "<": ">",
    "<=": ">=",
    "≤": "≥",
    "lt": "gt",
    "le": "ge",
    "leq": "geq",
    "leqslant": "geqslant",
}
_FLIPPED |= {new: old for old, new in _FLIPPED.items()}
_EQUAL = {"!=": "=", "≠": "=", "ne": "=", "neq": "="}


def _pairs(text: str) -> dict[str, str]:
    pairs = [pair.split(",") for pair in text.split()]
    return {one: other for a, b in pairs for one, other in ((a, b), (b, a))}


OPERATION_WORDS = _pairs(
    "add,subtract adds,subtracts adding,subtracting added,subtracted addition,subtraction "
    "plus,minus sum,difference sums,differences multiply,divide multiplies,divides "
    "multiplying,dividing multiplied,divided multiplication,division product,quotient "
    "products,quotients doubling,halving doubled,halved double,halve"
)
COMPARISON_WORDS = _pairs(
    "greater,less larger,smaller bigger,tinier higher,lower longer,shorter largest,smallest "
    "highest,lowest longest,shortest maximum,minimum maximal,minimal maximize,minimize "
    "maximizes,minimizes positive,negative increasing,decreasing increase,decrease "
    "increases,decreases increased,decreased above,below"
) | {"more than": "less than", "fewer than": "more than"}
COMPARISON_WORDS |= {"at least": "at most", "at most": "at least"}
_KIND_OF_PRODUCT = re.compile(r"\b(?:dot|cross|inner|outer|scalar|vector)\s+$", re.IGNORECASE)
_FROM_TWO = "two three four five six seven eight nine ten eleven twelve"
NUMBER_WORDS = {word: value for value, word in enumerate(re.findall(r"\w+", _FROM_TWO), start=2)}
"""Number words and their values; "one" is left out, for it is seldom a number."""
NUMBER_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(NUMBER_WORDS)})(?![\w-])", re.IGNORECASE)
# "add 3 to x" turned is "subtract 3 to x", and "multiply to 12" is no instruction
_BOUND_TO = re.compile(r"[^,.;:]*?\b(?:to|from)\b")
_BY_ONE = re.compile(r"[^,.;:]*?\bby[\s$]+[-−]?1(?!\d|[.,/]\d)")


def numeric_swaps(text: str, rng: random.Random, seed: int | str) -> Iterator[Change]:
    """Numbers with another leading digit: those of a true calculation first, then results.

    Not of subscripts, and not of bounds ("x > 5", "at least 5"), which another number may only
    loosen. In a step without digits numbers in words, from two to twelve.
    """
    if (change := miscalculation(text, seed)) is not None:
        yield change
    matches = [m for m in numbers(text) if not _is_bound(text, m) and not _is_index(text, m)]
    rng.shuffle(matches)
    for m in sorted(matches, key=lambda m: not is_result(text, m)):
        others = other_leading_digits(m.group())
        for new in rng.sample(others, len(others)):
            yield Change(m.start(), m.start() + 1, new, "number")
    if not re.search(r"\d", text):
        yield from _number_words(text, rng)


def operator_swaps(text: str, rng: random.Random) -> Iterator[Change]:
    """`+` for `-` and the other way, `+` for a product, a product for `÷`; then such words.

    Only between two operands: no sign of a number, no hyphen, no dash. Nothing that changes
    nothing: `± 0`, `÷ 1`, `2 · 2`.
    """
    spans = [m.span() for m in MATH.finditer(text)]
    words = [m.span() for m in _WORDS.finditer(text)]
    matches = [m for m in _OPERATOR.finditer(text) if not _within(m.start(), words)]
    rng.shuffle(matches)
    for m in matches:
        if _is_binary(text, m, spans) and not _changes_nothing(text, m):
            yield Change(*m.span(), _TURNED[m["command"] or m["sign"]], "operator")
    for change in _turned_words(text, rng, OPERATION_WORDS):
        before, rest = text[: change.start], text[change.end :]
        start, end = sentence_at(text, change.start)
        # where nothing is counted, what holds of a sum often holds of a difference
        if _KIND_OF_PRODUCT.search(before) or not re.search(r"\d", text[start:end]):
            continue
        if not _BOUND_TO.match(rest) and not _BY_ONE.match(rest):
            yield change


def comparator_flips(text: str, rng: random.Random) -> Iterator[Change]:
    """`<` for `>`, `≤` for `≥`, `=` for `≠`, and back; then words that compare.

    Of a sentence with several signs of comparison (`0 < x < 5`) none.
    """
    matches = list(_COMPARATOR.finditer(text))
    rng.shuffle(matches)
    for m in matches:
        sign = m["command"] or m["sign"]
        others = [o for o in matches if o is not m and _one_sentence(text, o.start(), m.start())]
        if others:
            continue
        if sign in _EQUAL:
            yield Change(*m.span(), "=", "comparator")
        else:
            slash = "\\" if m["command"] else ""
            yield Change(*m.span(), slash + _FLIPPED[sign], "comparator")
    yield from _turned_words(text, rng, COMPARISON_WORDS)


def sentence_at(text: str, at: int) -> tuple[int, int]:
    """Half-open span of the sentence that `at` stands in."""
    ends = [m.end() for m in re.finditer(r"[.!?](?=\s)|\n", text)]
    start = max((e for e in ends if e <= at), default=0)
    return start, min((e for e in ends if e > at), default=len(text))


def _one_sentence(text: str, a: int, b: int) -> bool:
    return sentence_at(text, a) == sentence_at(text, b)


def _number_words(text: str, rng: random.Random) -> Iterator[Change]:
    matches = [m for m in NUMBER_WORD.finditer(text) if not _is_bound(text, m)]
    rng.shuffle(matches)
    for m in matches:
        for new in rng.sample(list(NUMBER_WORDS), len(NUMBER_WORDS)):
            if new != m.group().lower():
                yield Change(*m.span(), cased(new, m.group()), "number")


def _turned_words(text: str, rng: random.Random, pairs: dict[str, str]) -> Iterator[Change]:
    """A word for its counterpart, where the sentence does not name both."""
    one_of = "|".join(sorted(map(re.escape, pairs), key=len, reverse=True))
    # "common" before or after: least common multiple, greatest common divisor
    pattern = re.compile(rf"(?<![\w\\-])(?<!non)(?:{one_of})(?![\w-])(?!\s+common)", re.IGNORECASE)
    matches = list(pattern.finditer(text))
    rng.shuffle(matches)
    for m in matches:
        start, end = sentence_at(text, m.start())
        new = pairs[m.group().lower()]
        if not re.search(rf"\b{re.escape(new)}", text[start:end], re.IGNORECASE):
            yield Change(*m.span(), cased(new, m.group()), "word")


def _is_bound(text: str, number: re.Match[str]) -> bool:
    before, after = text[: number.start()], text[number.end() :]
    return bool(_AFTER_BOUND.search(before) or _BEFORE_BOUND.match(after))


def _is_index(text: str, number: re.Match[str]) -> bool:
    return text[: number.start()].endswith(("_{", "_"))


def _within(at: int, spans: list[tuple[int, int]]) -> bool:
    return any(a <= at < b for a, b in spans)


def _is_binary(text: str, m: re.Match[str], spans: list[tuple[int, int]]) -> bool:
    in_math = [s for s in spans if s[0] <= m.start() < s[1]]
    # "get $-80$": what stands before the mathematics is no operand
    start, end = in_math[0] if in_math else (0, len(text))
    before, after = text[start : m.start()], text[m.end() : end]
    if not _OPERAND_BEFORE.search(before) or not _OPERAND_AFTER.match(after):
        return False
    if in_math or m["command"]:
        return True
    # outside of mathematics a hyphen joins words and a dash parts them
    left, right = re.search(r"\w*\W*$", before), re.match(r"[\s$]*(\w*)", after)
    assert left is not None
    assert right is not None
    words = re.compile(r"[^\W\d_]{2,}")
    if words.search(left.group()) or words.search(right.group()):
        return False
    if m["sign"] in "-−" and not (before[-1:].isspace() and after[:1].isspace()):
        token = before.split()[-1] + "-" + after.split()[0]
        return any(sign in token for sign in "=^*+()")
    return True


def _changes_nothing(text: str, m: re.Match[str]) -> bool:
    left = re.search(r"(?<![\w.])(\d+)[\s$]*$", text[: m.start()])
    right = re.match(r"[\s$]*(\d+)(?![\d.\w^(\\])", text[m.end() :])
    if right is None:
        return False
    sign = m["command"] or m["sign"]
    if sign in "+-−":
        return int(right[1]) == 0
    if sign in ("div", "÷"):
        return int(right[1]) == 1
    return left is not None and int(left[1]) == int(right[1]) in (0, 2)
