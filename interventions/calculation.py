"""Corruption by one arithmetic error in a calculation that was right (SLRC, section 4.8).

The paper changes a number after an arithmetic operator, never a step's label. Here a number is
changed only within a written equation (`3 + 4 = 7`) that holds, and so that it no longer holds: a
year, a range or a list counter is never taken for a calculation, and the error that a model is
asked about is beyond doubt.
"""

from __future__ import annotations

import ast
import operator
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb, isqrt
from types import MappingProxyType
from typing import Any

from faithscope.interventions.corrupt import LABEL, Change, NotCorruptible, other_leading_digits
from faithscope.interventions.edits import corrupt_step
from faithscope.interventions.sentences import touched
from faithscope.interventions.trace import Trace
from faithscope.interventions.writing import Encode, Pieces

_TERMS = 24
"""Longest chain of operations (terms); bounds the cost of a degenerate text."""
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
MONEY = r"(?:\\?[$€£]\s?)?"
_UNIT = r"(?:\s?\\?%|\s*\\text\{[^{}]*\}|\s[a-wyzA-WYZ]\w*|\sx\w+){0,2}?"
OPERATOR = r"\s*(?:[-+−–×÷·/]|\\?\*(?!\*)|\\times|\\cdot|\\div|(?<=[\s\d])[xX](?=[\s\d$]))\s*"
_OPEN, _CLOSE = r"(?:[(\[]\s*){0,4}", r"(?:\s*[)\]]){0,4}"
TERM = rf"{_OPEN}{MONEY}{NUMBER}{_UNIT}{_CLOSE}"
TERMS = rf"(?<![\w.,]){TERM}(?:{OPERATOR}{TERM}){{1,{_TERMS}}}"
"""Two or more numbers, each with up to two words of unit, joined by operators."""
_EQUATION = re.compile(
    rf"(?P<left>{TERMS})"
    rf"\s*(?P<sign>=|≈|\\approx|\b(?:equals|is|makes|gives)\b)\s*{MONEY}"
    rf"(?P<result>[-−]?{MONEY}{NUMBER})(?!\w|[.,]\d|\s*[/^])"
)
_EXPRESSION = re.compile(TERMS)
_SIDE = rf"[-−]?{TERM}(?:{OPERATOR}{TERM}){{0,{_TERMS}}}"
_EQUALITY = re.compile(rf"(?<![\d.,])(?P<left>{_SIDE})\s*=\s*(?=(?P<right>{_SIDE})(?![\d]|[.,]\d))")
_GOES_ON_BEFORE = re.compile(
    r"(?:(?<![a-zA-Z])[a-zA-Z]|\\[a-zA-Z]+|[\d)}\]|!^_+\-−*/×·÷<>≤≥\\])\n?[ $]*\Z"
)
_GOES_ON_AFTER = re.compile(r"[ $]*(?:[a-zA-Z](?![a-zA-Z])|[\d({\[|!^_+\-−*/×·÷\\]|mod\b)")
"""Text after an equality of numbers that shows it to be part of a longer expression."""
_NEAR = 80
"""Number of characters before an equality that are searched for a longer expression."""
_DEEPEST = 16
"""Deepest nesting of fractions, roots and powers that is written out."""
_NAMED = re.compile(r"[a-zA-Z]{2}|[a-zA-Z]\s*$")
"""A name before `=`, as in `x = 2 and y = 1` or `8 apples = 4 bananas`: no equality of numbers."""
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]+)\}\{([^{}]+)\}")
_POWER = re.compile(r"(?<![\w.)}])(\d{1,4})\s*\^(?:\{([0-9])\}|([0-9])(?!\d))")
_BINOMIAL = re.compile(r"\\[dt]?binom\{(\d{1,3})\}\{(\d{1,3})\}")
_ROOT = re.compile(r"\\sqrt\{(\d{1,9})\}")
TOKEN = re.compile(rf"(?P<number>{NUMBER})(?P<percent>\s?\\?%)?|(?P<bracket>[()\[\]])")
_SYMBOLS = {"−": "-", "–": "-", "×": "*", "·": "*", "x": "*", "X": "*", "÷": "/"} | {
    r"\times": "*",
    r"\cdot": "*",
    r"\div": "/",
    r"\*": "*",
}
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Calculation:
    """An equation in a text: numbers joined by operators, and the stated result."""

    start: int
    end: int
    """Half-open character span in the text."""
    targets: tuple[tuple[int, int, str], ...]
    """Half-open spans of the numbers after an operator (`operand`) and of the `result`."""
    holds: bool
    """Whether the equation is true, to the decimal places of the written result."""


def calculations(text: str) -> list[Calculation]:
    """Every equation in `text` that can be evaluated, in order.

    Equations of sums, differences, products and quotients of plain numbers with brackets; currency
    signs, percent signs and up to two words of unit after a number are skipped. Step labels and
    list counters are no part of an equation.
    """
    labels = [m.span() for m in LABEL.finditer(text)]
    equations = []
    for match in _EQUATION.finditer(text):
        holds = _holds(match)
        if holds is None:
            continue
        numbers = [
            m.span("number")
            for m in TOKEN.finditer(text, match.start("left"), match.end("left"))
            if m["number"]
        ]
        result = re.search(rf"{NUMBER}$", match["result"])
        assert result is not None
        at = match.start("result")
        targets = [(a, b, "operand") for a, b in numbers[1:]]
        targets.append((at + result.start(), at + result.end(), "result"))
        free = tuple(t for t in targets if not touched(labels, *t[:2]))
        if free:
            equations.append(Calculation(*match.span(), free, holds))
    return equations


def is_wrong_alone(text: str) -> bool:
    """Whether a text holds an equality of numbers that is false whatever its context.

    Evaluates sums, differences, products and quotients of plain numbers, LaTeX fractions, small
    whole powers, binomials and roots of squares, link by link of a chain of equalities.
    """
    plain = _without_latex(text)
    for match in _EQUALITY.finditer(plain):
        if _GOES_ON_BEFORE.search(plain, max(0, match.start() - _NEAR), match.start()):
            continue
        if _GOES_ON_AFTER.match(plain, match.end("right")):
            continue
        if _NAMED.search(match["left"]):
            continue
        left, right = (_value(match[side], Fraction(1, 100)) for side in ("left", "right"))
        if left is None or right is None:
            continue
        places = len(match["right"].partition(".")[2])
        if abs(left - right) > (Fraction(1, 2 * 10**places) if places else 0):
            return True
    return False


def _without_latex(text: str) -> str:
    """`text` with LaTeX fractions, powers, binomials and roots of plain numbers written out."""
    text = re.sub(r"\\(?:left|right|displaystyle|,|;|!)|\$", " ", text)
    text = re.sub(r"\\(?:cdot|times)(?![a-zA-Z])", " * ", text)
    for _ in range(_DEEPEST):
        plain = _FRACTION.sub(r"((\1)/(\2))", text)
        plain = _POWER.sub(lambda m: str(int(m[1]) ** int(m[2] or m[3])), plain)
        plain = _BINOMIAL.sub(lambda m: f"({comb(int(m[1]), int(m[2]))})", plain)
        plain = _ROOT.sub(_root, plain)
        if plain == text:
            break
        text = plain
    return text


def _root(match: re.Match[str]) -> str:
    root = isqrt(int(match[1]))
    return str(root) if root**2 == int(match[1]) else match[0]


def value_at(text: str, at: int) -> Fraction | None:
    """Value of the sum, difference, product or quotient of numbers around the character `at`.

    None if there is no such expression, or if it cannot be evaluated.
    """
    around = (m for m in _EXPRESSION.finditer(text) if m.start() <= at < m.end())
    match = next(around, None)
    return None if match is None else _value(match.group(), Fraction(1, 100))


def miscalculation(text: str, seed: int | str) -> Change | None:
    """The change that makes one true equation of `text` false; None without such an equation.

    `seed` draws the number; its leading digit is exchanged for another, so that the number keeps
    its length.
    """
    rng = random.Random(f"miscalculate-{seed}-{text}")
    targets = [(c, t) for c in calculations(text) if c.holds for t in c.targets]
    for calculation, (start, end, rule) in rng.sample(targets, len(targets)):
        others = other_leading_digits(text[start:end])
        for new in rng.sample(others, len(others)):
            # the text next to a calculation decides on whether it is one, too
            first, last = max(0, calculation.start - 1), calculation.end + _NEAR
            changed = text[first:start] + new + text[start + 1 : last]
            again = _EQUATION.match(changed, calculation.start - first)
            if again is not None and _holds(again) is False:
                return Change(start, start + 1, new, rule)
    return None


def miscalculate(trace: Trace, seed: int, encode: Encode, pieces_of: Pieces) -> Trace:
    """The trace with one arithmetic error, in a step drawn by `seed`; later text stays.

    The edit is a `corrupt` whose rule is `operand` or `result`. Only tokens that overlap the
    changed digit are made anew. A short stretch that is no step of its own ("3 + 4 = 7.") may hold
    the error too.

    Raises:
        NotCorruptible: no step has a calculation that holds.
    """
    able = [s.index for s in trace.steps if miscalculation(s.text, seed) is not None]
    if not able:
        raise NotCorruptible(
            f"trace of {trace.question.id!r}: no step has a calculation that holds; leave it out "
            "of error detection"
        )
    rng = random.Random(f"miscalculate-{seed}-{trace.question.task}-{trace.question.id}")
    return corrupt_step(trace, rng.choice(able), seed, encode, pieces_of, rule=miscalculation)


def _holds(match: re.Match[str]) -> bool | None:
    """Whether an equation is true; None if its left side cannot be evaluated."""
    result = _result(match["result"])
    places = len(match["result"].partition(".")[2])
    rounded = places > 0 or match["sign"] in ("≈", r"\approx")
    slack = Fraction(1, 2 * 10**places) if rounded else Fraction(0)
    values = [_value(match["left"], percent) for percent in (Fraction(1), Fraction(1, 100))]
    known = [v for v in values if v is not None]
    return any(abs(v - result) <= slack for v in known) if known else None


def _result(written: str) -> Fraction:
    size = Fraction(re.sub(r"[^\d.]", "", written))
    return -size if written[0] in "-−" else size


def _value(expression: str, percent: Fraction) -> Fraction | None:
    """The value of an expression, in which a number with a percent sign counts times `percent`."""
    tree = tree_of(expression, lambda token: python_of(token, percent))
    try:
        return None if tree is None else evaluated(tree)
    except (ValueError, ZeroDivisionError):
        return None


def tree_of(expression: str, write: Callable[[re.Match[str]], str]) -> ast.expr | None:
    """An expression as Python reads it, its numbers and brackets written by `write`; None if it is
    none."""
    python, end = "", 0
    for token in TOKEN.finditer(expression):
        if (between := _operator(expression[end : token.start()])) is None:
            return None
        python += between + write(token)
        end = token.end()
    opened, closed = python.count("("), python.count(")")
    # "\( 3 + 4 = 7 \)" and "[3 + 4 = 7]": the bracket is not part of the calculation.
    for _ in range(opened - closed):
        python = python.removeprefix("(")
    try:
        return ast.parse(python.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _operator(between: str) -> str | None:
    """The Python operator in the text between two numbers, units ignored; None if there is none."""
    words = re.sub(r"\\text\{[^{}]*\}|\\?[$€£]|\\(?=[)\]])", " ", between).split()
    signs = [_SYMBOLS.get(w, w) for w in words if not re.fullmatch(r"\w{2,}|[a-wyzA-WYZ]", w)]
    if not signs:
        return ""
    return f" {signs[0]} " if len(signs) == 1 and signs[0] in "+-*/" else None


def python_of(token: re.Match[str], percent: Fraction) -> str:
    if token["bracket"]:
        return "(" if token["bracket"] in "([" else ")"
    digits = token["number"].replace(",", "")
    return f"({digits}*{percent})" if token["percent"] else digits


def evaluated(node: ast.expr, names: Mapping[str, Fraction] = MappingProxyType({})) -> Fraction:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](evaluated(node.left, names), evaluated(node.right, names))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -evaluated(node.operand, names)
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    raise ValueError("not plain arithmetic")
