"""What a chain of thought states by rule: equations, and sentences that name a number.

An equation is `3 * 4 = 12`, "So 3 + 4 makes 7" or a chain of equal sides (`3 * 4 + 2 = 12 + 2 =
14`), in plain text, Markdown or LaTeX. A sentence names an input of the question, as "the Hint
makes 5" does where the question says "Hint : 5".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from faithscope.interventions.calculation import (
    MONEY,
    NUMBER,
    TERMS,
    TOKEN,
    evaluated,
    python_of,
    tree_of,
)
from faithscope.interventions.corrupt import LABEL
from faithscope.interventions.sentences import touched

_SIDE = re.compile(rf"(?P<left>{TERMS})\s*(?:=|(?P<about>≈)|\b(?:equals|is|makes|gives)\b)\s*")
_RESULT = re.compile(
    rf"(?P<minus>[-−]?)\s?{MONEY}(?P<size>{NUMBER})(?P<percent>\s?%)?(?!\w|[.,]\d|\s*[/^])"
)
_NAMED = re.compile(
    r"(?P<source>[^\d.!?\n]*)(?:=|:|\b(?:equals|is|makes|gives)\b)\s*(?P<number>\d+(?:\.\d+)?)"
    r"(?![\w%]|[.,]\d|\s*[-+*/×÷=])"
)
_LONG_UNIT = r"(?<=\d)(?:\s+[a-zA-Z][a-zA-Z'-]+){3,6}(?=\s*[-+*/×÷−–=])"
"""More words of unit than an equation's number has by the rule for equations."""
_PLAIN = (
    (re.compile(r"\\[dt]?frac\{([^{}]+)\}\{([^{}]+)\}"), r"(\1)/(\2)"),
    (re.compile(r"\\(?:boxed|fbox|text|textbf|mathrm|mathbf|mathit)\{([^{}]*)\}"), r"\1 "),
    (re.compile(r"\\(?:left|right|displaystyle|quad|qquad|[,;!: ])(?![a-zA-Z])"), ""),
    (re.compile(r"\\[()\[\]]"), ""),
    (re.compile(r"\\(?:cdot|times)(?![a-zA-Z])"), "*"),
    (re.compile(r"\\div(?![a-zA-Z])"), "/"),
    (re.compile(r"\\approx(?![a-zA-Z])"), "≈"),
    (re.compile(r"\\(?=[%$#&])"), " "),
    (re.compile(r"(?<=\d)/[a-zA-Z]+|(?<=\d)(?<=[\w%])\s\([a-zA-Z ]+\)"), ""),
    (re.compile(r"(?<=[\s(*×/+=-])\s(?=\.\d)"), "0"),
    (re.compile(_LONG_UNIT), ""),
    (re.compile(r"(?<![\w)*])\*\*(?!\*)|(?<!\*)\*\*(?![\w(*])"), ""),
)
_MINUS = re.compile(r"(?:^|[^\d)\]\s])[\s(\[]+[-−]\Z|^[-−]\Z")
"""A minus before a number that follows no other number, so that it is the number's sign."""
_NEAR = 8
_DEEPEST = 8
"""Deepest nesting of LaTeX that is written out."""
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


@dataclass(frozen=True)
class Statement:
    """An equation, or a sentence that names an input."""

    start: int
    end: int
    """Half-open character span in the text."""
    numbers: tuple[Fraction, ...]
    """The numbers that it begins with, in order, as written: 5 for "5 %"."""
    percents: tuple[bool, ...]
    """Whether each is followed by a percent sign."""
    result: Fraction
    """The number that it ends in, right or wrong; 1/20 for "5 %" unless only 5 is right."""
    result_span: tuple[int, int]
    """Half-open character span of the result's digits."""
    places: int
    """Decimal places of the result as written."""
    about: bool = False
    """Whether it says that the result is rounded."""
    expression: ast.expr | None = None
    """The first side of an equation, in which the number i is the name `n{i}`."""
    name: str | None = None
    """The word by which a sentence names the input that it takes the result from."""

    @property
    def signs(self) -> frozenset[str]:
        """The operators of an equation."""
        nodes = ast.walk(self.expression) if self.expression else ()
        return frozenset(_SIGNS[type(n.op)] for n in nodes if isinstance(n, ast.BinOp))

    def value(self, numbers: Sequence[Fraction]) -> Fraction | None:
        """What it comes to with other numbers; None for a division by zero."""
        if self.expression is None:
            return numbers[0]
        try:
            return evaluated(self.expression, {f"n{i}": n for i, n in enumerate(numbers)})
        except ZeroDivisionError:
            return None


def plain(text: str) -> str:
    """A text of equal length in which LaTeX, bold type and long units are written out, so that
    places in it are places in `text`."""
    for _ in range(_DEEPEST):
        before = text
        for pattern, new in _PLAIN:
            text = pattern.sub(lambda m, new=new: m.expand(new).rjust(len(m[0])), text)
        if text == before:
            break
    return text


def statements(text: str, names: Collection[str] = ()) -> list[Statement]:
    """Everything that a text states by rule, in order.

    Args:
        names: words by which the question names its numbers.
    """
    text = plain(text)
    found = list(_equations(text))
    spans = [(e.start, e.end) for e in found]
    for match in _NAMED.finditer(text):
        if touched(spans, match.start("number"), match.end()):
            continue
        named = [n for n in names if re.search(rf"\b{re.escape(n)}\b", match["source"], re.I)]
        if named:
            value = Fraction(match["number"])
            places = len(match["number"].partition(".")[2])
            span = match.span("number")
            of = (*match.span(), (value,), (False,), value, span, places)
            found.append(Statement(*of, name=named[0]))
    return sorted(found, key=lambda s: s.start)


def _equations(text: str) -> Iterator[Statement]:
    labels = [m.span() for m in LABEL.finditer(text)]
    sides = list(_SIDE.finditer(text))
    first = 0
    for i, side in enumerate(sides):
        if i + 1 < len(sides) and sides[i + 1].start() == side.end():
            continue
        left, first = sides[first], i + 1
        result = _RESULT.match(text, side.end())
        if result is None:
            continue
        tokens = [t for t in TOKEN.finditer(text, left.start(), left.end("left")) if t["number"]]
        if any(touched(labels, *t.span("number")) for t in tokens):
            continue
        ids = iter(range(len(tokens)))

        def name(token: re.Match[str], ids: Iterator[int] = ids) -> str:
            if token["bracket"]:
                return python_of(token, Fraction(1))
            return f"(n{next(ids)}*1/100)" if token["percent"] else f"n{next(ids)}"

        tree = tree_of(left["left"], name)
        if tree is None:
            continue
        numbers = tuple(Fraction(t["number"].replace(",", "")) for t in tokens)
        start = left.start()
        if _MINUS.search(text, max(0, start - _NEAR), start):
            numbers, start = (-numbers[0], *numbers[1:]), start - 1
        digits = result["size"].replace(",", "")
        size = Fraction(digits) * (-1 if result["minus"] else 1)
        stated = Statement(
            start=start,
            end=result.end("size"),
            numbers=numbers,
            percents=tuple(bool(t["percent"]) for t in tokens),
            result=size,
            result_span=result.span("size"),
            places=len(digits.partition(".")[2]),
            about=side["about"] is not None,
            expression=tree,
        )
        value = stated.value(numbers)
        if value is None:
            continue
        if result["percent"] and abs(value - size) > abs(value - size / 100):
            stated = replace(stated, result=size / 100, places=stated.places + 2)
        yield stated
