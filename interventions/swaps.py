"""Candidates for exchange in a step of mathematics: its numbers, operators and comparisons.

Gives candidates in the order in which they are to be tried; `acausal.py` decides whether an
exchange breaks the step. Text may hold LaTeX.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from faithscope.interventions.calculation import miscalculation
from faithscope.interventions.corrupt import Change, cased, is_result, numbers, other_leading_digits
from faithscope.interventions.sentences import Span, touched

_OPENS_MATH = re.compile(r"\$\$|(?<!\\)\$|\\\(|\\\[")
_CLOSES_MATH = {
    "$$": re.compile(r"(?=\$\$)"),
    "$": re.compile(r"(?<!\\)\$"),
    "\\(": re.compile(r"\\\)"),
    "\\[": re.compile(r"\\\]"),
}
_NEAR = 80
"""Number of characters before and after a place that are searched for its context."""
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

_NUMBER_BEFORE = re.compile(r"(?<![\w.])(\d+)[\s$]*$")
_NUMBER_AFTER = re.compile(r"[\s$]*(\d+)(?![\d.\w^(\\])")
_DIGIT = re.compile(r"\d")
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
"""Number word -> value; "one" is left out, since it is seldom a number."""
NUMBER_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(NUMBER_WORDS)})(?![\w-])", re.IGNORECASE)
# "add 3 to x" turned is "subtract 3 to x", and "multiply to 12" is no instruction
_BOUND_TO = re.compile(r"[^,.;:]{0,200}?\b(?:to|from)\b")
_BY_ONE = re.compile(r"[^,.;:]{0,200}?\bby[\s$]+[-−]?1(?!\d|[.,/]\d)")


def numeric_swaps(text: str, rng: random.Random, seed: int | str) -> Iterator[Change]:
    """Numbers with another leading digit: those of a true calculation first, then results.

    Leaves out subscripts, and bounds ("x > 5", "at least 5"), which another number may only loosen.
    In a step without digits, number words from two to twelve are exchanged.
    """
    if (change := miscalculation(text, seed)) is not None:
        yield change
    matches = [m for m in numbers(text) if not _is_bound(text, m) and not _is_index(text, m)]
    rng.shuffle(matches)
    for m in sorted(matches, key=lambda m: not is_result(text, m)):
        others = other_leading_digits(m.group())
        for new in rng.sample(others, len(others)):
            yield Change(m.start(), m.start() + 1, new, "number")
    if not _DIGIT.search(text):
        yield from _number_words(text, rng)


def operator_swaps(text: str, rng: random.Random) -> Iterator[Change]:
    """`+` for `-` and the other way, `+` for a product, a product for `÷`; then such words.

    Exchanges only operators between two operands: no sign of a number, no hyphen, no dash. Leaves
    out exchanges that change nothing: `± 0`, `÷ 1`, `2 · 2`.
    """
    spans = _mathematics(text)
    words = [m.span() for m in _WORDS.finditer(text)]
    matches = [m for m in _OPERATOR.finditer(text) if not touched(words, *m.span())]
    rng.shuffle(matches)
    for m in matches:
        if _is_binary(text, m, spans) and not _changes_nothing(text, m):
            yield Change(*m.span(), _TURNED[m["command"] or m["sign"]], "operator")
    for change in _turned_words(text, rng, OPERATION_WORDS):
        # in a sentence without digits, what holds for a sum often holds for a difference
        counts = _has_digit(text, *sentence_at(text, change.start))
        if not counts or _ends_with(_KIND_OF_PRODUCT, text, change.start):
            continue
        if not _BOUND_TO.match(text, change.end) and not _BY_ONE.match(text, change.end):
            yield change


def comparator_flips(text: str, rng: random.Random) -> Iterator[Change]:
    """`<` for `>`, `≤` for `≥`, `=` for `≠`, and back; then words that compare.

    A sentence with several signs of comparison (`0 < x < 5`) gives no candidate.
    """
    matches = list(_COMPARATOR.finditer(text))
    in_sentence = Counter(sentence_at(text, m.start()) for m in matches)
    rng.shuffle(matches)
    for m in matches:
        sign = m["command"] or m["sign"]
        if in_sentence[sentence_at(text, m.start())] > 1:
            continue
        if sign in _EQUAL:
            yield Change(*m.span(), "=", "comparator")
        else:
            slash = "\\" if m["command"] else ""
            yield Change(*m.span(), slash + _FLIPPED[sign], "comparator")
    yield from _turned_words(text, rng, COMPARISON_WORDS)


def sentence_at(text: str, at: int) -> tuple[int, int]:
    """Half-open span of the sentence that `at` stands in."""
    ends = _sentence_ends(text)
    i = bisect_right(ends, at)
    return ends[i - 1] if i else 0, ends[i] if i < len(ends) else len(text)


@lru_cache(maxsize=4)
def _sentence_ends(text: str) -> list[int]:
    return [m.end() for m in re.finditer(r"[.!?](?=\s)|\n", text)]


@lru_cache(maxsize=16)
def _has_digit(text: str, start: int, end: int) -> bool:
    return _DIGIT.search(text, start, end) is not None


def _mathematics(text: str) -> list[Span]:
    """Stretches of LaTeX mathematics with their delimiters, in order, disjoint."""
    closers = {kind: [m.start() for m in p.finditer(text)] for kind, p in _CLOSES_MATH.items()}
    spans: list[Span] = []
    at = 0
    while opens := _OPENS_MATH.search(text, at):
        start = opens.start()
        kinds = [opens.group()]
        if kinds == ["$$"] and text[start - 1 : start] != "\\":
            kinds.append("$")
        # a sign after at least one character
        found = [
            (closers[k][i], k)
            for k in kinds
            if (i := bisect_left(closers[k], start + len(k) + 1)) < len(closers[k])
        ]
        at = found[0][0] + len(found[0][1]) if found else start + 1
        if found:
            spans.append((start, at))
    return spans


def _ends_with(pattern: re.Pattern[str], text: str, at: int) -> bool:
    """Whether the text right before `at` matches a pattern that ends in `$`."""
    return pattern.search(text, max(0, at - _NEAR), at) is not None


def _number_words(text: str, rng: random.Random) -> Iterator[Change]:
    matches = [m for m in NUMBER_WORD.finditer(text) if not _is_bound(text, m)]
    rng.shuffle(matches)
    for m in matches:
        for new in rng.sample(list(NUMBER_WORDS), len(NUMBER_WORDS)):
            if new != m.group().lower():
                yield Change(*m.span(), cased(new, m.group()), "number")


def _turned_words(text: str, rng: random.Random, pairs: dict[str, str]) -> Iterator[Change]:
    """Exchanges of a word for its counterpart, in sentences that do not name both."""
    one_of = "|".join(sorted(map(re.escape, pairs), key=len, reverse=True))
    # "common" before or after: least common multiple, greatest common divisor
    pattern = re.compile(rf"(?<![\w\\-])(?<!non)(?:{one_of})(?![\w-])(?!\s+common)", re.IGNORECASE)
    matches = list(pattern.finditer(text))
    rng.shuffle(matches)
    counterparts = {
        new: [m.start() for m in re.finditer(rf"\b{re.escape(new)}", text, re.IGNORECASE)]
        for new in {pairs[m.group().lower()] for m in matches}
    }
    for m in matches:
        start, end = sentence_at(text, m.start())
        new = pairs[m.group().lower()]
        places = counterparts[new]
        i = bisect_left(places, start)
        if i == len(places) or places[i] + len(new) > end:
            yield Change(*m.span(), cased(new, m.group()), "word")


def _is_bound(text: str, number: re.Match[str]) -> bool:
    before = _ends_with(_AFTER_BOUND, text, number.start())
    return before or _BEFORE_BOUND.match(text, number.end()) is not None


def _is_index(text: str, number: re.Match[str]) -> bool:
    return text.endswith(("_{", "_"), 0, number.start())


def _is_binary(text: str, m: re.Match[str], spans: list[Span]) -> bool:
    i = bisect_right(spans, m.start(), key=lambda span: span[0]) - 1
    in_math = i >= 0 and m.start() < spans[i][1]
    # "get $-80$": text before the mathematics is no operand
    start, end = spans[i] if in_math else (0, len(text))
    before = text[max(start, m.start() - _NEAR) : m.start()]
    after = text[m.end() : min(end, m.end() + _NEAR)]
    if not _OPERAND_BEFORE.search(before) or not _OPERAND_AFTER.match(after):
        return False
    if in_math or m["command"]:
        return True
    # outside of mathematics a hyphen joins words and a dash separates them
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
    left = _NUMBER_BEFORE.search(text, max(0, m.start() - _NEAR), m.start())
    right = _NUMBER_AFTER.match(text, m.end(), m.end() + _NEAR)
    if right is None:
        return False
    sign = m["command"] or m["sign"]
    if sign in "+-−":
        return int(right[1]) == 0
    if sign in ("div", "÷"):
        return int(right[1]) == 1
    return left is not None and int(left[1]) == int(right[1]) in (0, 2)
