"""What a chain of thought states by rule: equations, and sentences that name a number.

An equation is `3 * 4 = 12`, "So 3 + 4 makes 7", "half of 12 is 6", a row of a table or a chain of
equal sides (`3 * 4 + 2 = 12 + 2 = 14`), in plain text, Markdown or LaTeX. A sentence names an input
of the question, as "the Hint makes 5" does where the question says "Hint : 5". The numbers outside
these (`said_in`) may be results of which prose tells.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from faithscope.interventions.calculation import (
    MONEY,
    NUMBER,
    OPERATOR,
    TERM,
    TOKEN,
    evaluated,
    python_of,
    tree_of,
)
from faithscope.interventions.corrupt import LABEL, numbers
from faithscope.interventions.sentences import Span, touched

Place = tuple[int, int]
"""(number of statements before it, number of other numbers since the last of these)."""
Mode = Literal["nearest", "up", "down"]
Combination = Literal["mean", "min", "max", "sum", "apart"]

_LEADS = (
    r"(?:,?\s*\b(?:and|so)\b)?(?:,?\s*\b(?:which|that|this|it|we)\b)?\s*\b(?:equals?|is|are|makes?|gives?|gets?"
    r"|yields?|leaves?|becomes?|totals?|(?:comes?|amounts?|adds? up) to|results? in)\b"
    r"(?:\s+(?:us|you|him|her|them|exactly|a total of|in total|about))?"
)
_TERMS = rf"(?<![\w.,])(?<!\d:){TERM}(?:(?:{OPERATOR}|(?<=[\d)])(?=\()){TERM}){{1,24}}"
"""Two or more numbers, joined by operators or, before a bracket, by none."""
_SUM, _DIGIT = re.compile(_TERMS), re.compile(r"\d")
_SIDE = re.compile(
    rf"(?P<left>{_TERMS})\s*(?:=+>?|(?P<about>≈|~)|(?:->|→|⇒)(?:\s*[a-zA-Z ]{{1,24}}:)?"
    rf"|\|(?!\|)|{_LEADS})\s*"
)
_RESULT = re.compile(
    rf"(?P<minus>[-−]?)\s?{MONEY}(?P<size>{NUMBER})(?P<percent>\s?%)?(?!\w|[.,:]\d|\s*[/^])"
)
_NAMED = re.compile(
    r"(?P<source>[^\d.!?\n]{0,200})(?:=|:|\b(?:equals|is|makes|gives)\b)\s*(?P<number>\d+(?:\.\d+)?)"
    r"(?![\w%]|[.,]\d|\s*[-+*/×÷=])"
)
_LONG_UNIT = r"(?<=\d)(?:\s+[a-zA-Z][a-zA-Z'-]+){3,6}(?=\s*[-+*/×÷−–=])"
"""More words of unit than an equation's number has by the rule for equations."""
_OF = r"(?:\s+the|\s+that)?(?=\s+[$€£]?\d)"
_AFTER, _BEFORE = r"(?<=[\w%)] )", r"(?=\s+[$€£(]?\d)"
_WORDS = re.findall(r"\w+", "two three four five six seven eight nine ten eleven twelve")
_WHOLE = r"(?:this|that|these|those|it|them|the (?:rest|remainder|total|sum|result|whole|same))"
"""What a share is of, where the text names no number; an operation without it is none."""
_ANY = rf"(?:{'|'.join(_WORDS)})"
_WORD = re.compile(
    rf"(?<=\d [-*×·/÷+−] ){_ANY}\b|(?<![\w-]){_ANY}(?= [-*×·/÷+−] [$€£]?\d)", re.IGNORECASE
)
"""A number in words beside an operator."""
_PLAIN = (
    (re.compile(r"\\[dt]?frac\{([^{}]+)\}\{([^{}]+)\}"), r"(\1)/(\2)"),
    (re.compile(r"\\(?:boxed|fbox|text|textbf|mathrm|mathbf|mathit)\{([^{}]*)\}"), r"\1 "),
    (re.compile(r"\\(?:left|right|displaystyle|quad|qquad|[,;!: ])(?![a-zA-Z])"), ""),
    (re.compile(r"\\[()\[\]]"), ""),
    (re.compile(r"\\(?:cdot|times)(?![a-zA-Z])"), "*"),
    (re.compile(r"\\div(?![a-zA-Z])"), "/"),
    (re.compile(r"\\approx(?![a-zA-Z])"), "≈"),
    (re.compile(r"\\(?=[%$#&])|¢|&(?==)"), " "),
    (re.compile(r"(?<=\d)/[a-zA-Z]+|(?<=\d)(?<=[\w%])\s\([a-zA-Z ]+\)"), ""),
    (re.compile(r"(?<=[\s(*×/+=-])\s(?=\.\d)"), "0"),
    (re.compile(_LONG_UNIT), ""),
    (re.compile(r"(?<=\d)\s?per ?cent\b", re.I), "%"),
    (re.compile(r"(?<=\d%)(\s*)of(?:\s+the)?(?=\s*[$€£]?\d)"), r"\1*"),
    (re.compile(r"(?<=\d/\d)\s+of(?:\s+the)?(?=\s+[$€£]?\d)"), " *"),
    (re.compile(rf"\b(?:a |one[ -])?half(?:\s+of)?{_OF}", re.I), "1/2*"),
    (re.compile(rf"\b(?:a|one)[ -]third\s+of{_OF}", re.I), "1/3*"),
    (re.compile(rf"\btwo[ -]thirds\s+of{_OF}", re.I), "2/3*"),
    (re.compile(rf"\b(?:a|one)[ -](?:quarter|fourth)\s+of{_OF}", re.I), "1/4*"),
    (re.compile(rf"\bthree[ -](?:quarters|fourths)\s+of{_OF}", re.I), "3/4*"),
    (re.compile(rf"\b(?:a|one)[ -]fifth\s+of{_OF}", re.I), "1/5*"),
    (re.compile(rf"\b(?:twice|double){_OF}", re.I), "2*"),
    (re.compile(rf"\b(?:thrice|triple){_OF}", re.I), "3*"),
    (re.compile(rf"{_AFTER}(?:multiplied by|times){_BEFORE}"), "*"),
    (re.compile(rf"{_AFTER}divided by{_BEFORE}"), "/"),
    (re.compile(rf"{_AFTER}(?:plus|added to){_BEFORE}"), "+"),
    (re.compile(rf"{_AFTER}(?:minus|less){_BEFORE}"), "-"),
    (re.compile(rf"(?<=\d )and(?: the \w+ of)?(?=\s+{NUMBER}(?:\s\w+)?\s+makes?\b)"), "+"),
    (re.compile(rf"(?<=[\d%])\s+of\s+{_WHOLE}\b", re.I), "¦"),
    (re.compile(r"(?<![\w)*])\*\*(?!\*)|(?<!\*)\*\*(?![\w(*])"), ""),
)
_MINUS = re.compile(r"(?:^|[^\d)\]\s])[\s(\[$]+[-−]\Z|^[-−]\Z")
"""A minus before a number that follows no other number, so that it is the number's sign."""
_NEAR = 8
_MOST_NEAR = 32
"""Most numbers of a sentence on a side of another that may be what it is made from."""
MOST_DIGITS = 15
"""Longest number that is read."""
_SENTENCE = re.compile(r"[.!?](?=\s)\s|\n")
_ROUNDS: dict[Mode, re.Pattern[str]] = {
    "up": re.compile(r"\bround\w*\s+(?:it\s+)?up\b|\bnext (?:whole|higher|full)\b", re.I),
    "down": re.compile(r"\bround\w*\s+(?:it\s+)?down\b|\bonly (?:whole|full|complete)\b", re.I),
    "nearest": re.compile(r"\bnearest\b", re.I),
}
_LABELS = (("first", "former", "1", "a", "i", "one"), ("second", "latter", "2", "b", "ii", "two"))
_WAY = r"(?:way|method|approach|calculation|computation|route|variant|version|solution|result)"
_CHOSEN = re.compile(
    rf"\bthe (?P<nth>first|second|former|latter|last)"
    rf"(?=\s*(?:[,.;]|\Z)|\s+(?:one|{_WAY}|counts?)\b)"
    rf"|\b{_WAY} \(?(?P<label>[ab12]|ii?|one|two)\b",
    re.I,
)
_COUNTS = re.compile(
    r"\b(?:trust|rely|relies|go(?:es)? (?:by|with)|stick|take|use|choose|prefer|keep|believe|follow"
    r"|(?:I|we) answer|answer (?:with|by|is that)|counts?|decides?|matters?)\b",
    re.I,
)
_NOT = re.compile(r"\b(?:not|never|neither)\b|n't\b|\bonly (?:to|a|for)\b", re.I)
_CLAUSE = re.compile(r"[.;!?](?:\s|\Z)|\n|,? but |(?:,| and) not ")
_COMBINED: dict[Combination, re.Pattern[str]] = {
    "mean": re.compile(
        r"\b(?:mean|averag\w+|midpoint|half ?way|split the)\b|\bmiddle between\b", re.I
    ),
    "min": re.compile(r"\b(?:lower|lowest|smaller|smallest|lesser|least|minimum)\b", re.I),
    "max": re.compile(
        r"\b(?:higher|highest|greater|greatest|larger|largest|bigger|biggest|maximum)\b", re.I
    ),
    "sum": re.compile(r"\bsum\b|\badd(?:ed|ing)?\b|\btogether\b", re.I),
    "apart": re.compile(r"(?<!split the )\bdifference\b|\bapart\b", re.I),
}
_HOW_MANY = {"both": 2, "two": 2, "three": 3, "four": 4}
_OF_THEM = re.compile(
    r"\b(?:(?P<many>both|two|three|four)|them|these|those|all|each|either|one|whichever"
    rf"|{_WAY}s?|figures?|estimates?|numbers?|amounts?|answers?|totals?|values?)\b",
    re.I,
)
_SAYS = re.compile(rf"(?::|=|\bis|\bor)\s*{MONEY}{NUMBER}(?:\s\w+)?[.;!?]?\s*\Z")
"""The result of what a clause says, at its end."""
_LABELLED = re.compile(
    r"(?P<way>\b(?:way|method|approach|route|variant|version)) \(?[1-4]\b(?!\.\d)", re.I
)
_UNKNOWN = re.compile(r"[xyzn](?!\w)")
"""An unknown behind a number that it is taken times."""
_SETTLES = re.compile(
    r"\b(?:answer|settle[sd]?|report|give|(?:I|we) (?:average|add)|hand in|end (?:up )?with"
    r"|put down|final(?:ly)?)\b",
    re.I,
)
_COMPARED = re.compile(
    r"(?:\b(?:\w{3,}er|more) than"
    r"|\b(?:over|above|below|under|beyond|at least|at most|up to|exceed\w*|reach\w*)"
    rf"|\bfrom(?={MONEY} {NUMBER}(?: \w+)? (?:on|up)))\s+{MONEY}(?P<after>{NUMBER})"
    rf"|(?<![\d.,])(?P<before>{NUMBER})(?: \w+)?"
    r" or (?:more|less|fewer|above|over|below|under|lower|higher)\b",
    re.I,
)
"""A comparison with a number, on which something may depend."""
_ROUNDED = re.compile(r"\bround|\babout\b|\bapprox|\broughly\b|≈|~", re.I)
_DEEPEST = 8
"""Deepest nesting of LaTeX that is written out."""
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


@dataclass(frozen=True)
class Said:
    """A number of a text outside its statements."""

    place: Place
    start: int
    end: int
    """Half-open character span."""
    value: Fraction
    rounds: tuple[Mode, ...]
    """The ways of rounding that the words before it may mean; none where they mean no rounding."""
    near: tuple[Fraction, ...]
    """The numbers before it in its sentence."""

    @property
    def stated(self) -> Statement:
        """As a statement that it is the result of something."""
        of = (self.start, self.end, (self.value,), (False,), self.value, (self.start, self.end))
        return Statement(*of, places=_places(self.value), said=True)


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
    said: bool = False
    """Whether it is a number that prose says as a result, without an equation."""
    open: bool = False
    """Whether the text ends in it and leaves its result to the answer."""

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


class _Products(ast.NodeTransformer):
    """Writes out the product in `3(4 + 5)`."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        left, right = self.visit(node.func), [self.visit(arg) for arg in node.args]
        return ast.BinOp(left, ast.Mult(), right[0]) if len(right) == 1 else node


@lru_cache(512)
def plain(text: str) -> str:
    """A text of equal length in which LaTeX, bold type and long units are written out, so that
    places in it are places in `text`."""
    for _ in range(_DEEPEST):
        before = text
        for pattern, new in _PLAIN:
            text = pattern.sub(lambda m, new=new: _padded(m, new), text)
        if text == before:
            break
    return text


@lru_cache(512)
def _in_digits(text: str) -> str:
    """A text of equal length as `plain` has it, with digits for the number words of operations."""
    return _WORD.sub(lambda m: str(_WORDS.index(m[0].lower()) + 2).rjust(len(m[0])), plain(text))


def _padded(match: re.Match[str], new: str) -> str:
    long = len(match[0])
    return new.ljust(long) if new == "%" else match.expand(new).rjust(long)


def statements(text: str, names: Collection[str] = ()) -> list[Statement]:
    """Everything that a text states by rule, in order.

    Args:
        names: words by which the question names its numbers.
    """
    text = _in_digits(text)
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


def said_in(text: str, stated: Sequence[Statement]) -> list[Said]:
    """The numbers of a text outside its statements, in order."""
    text = _in_digits(text)
    spans = [(s.start, s.end) for s in stated]
    labels = [m.span() for m in _LABELLED.finditer(text) if not touched(spans, *m.span())]
    spans = sorted([*spans, *labels])
    found: list[Said] = []
    everywhere = [m.span() for m in numbers(text) if not _UNKNOWN.match(text, m.end())]
    closed, here = sorted(s.end for s in stated), Counter[int]()
    ends = [0, *(m.end() for m in _SENTENCE.finditer(text))]
    for i, (start, end) in enumerate(everywhere):
        if touched(spans, start, end) or end - start > MOST_DIGITS:
            continue
        before = bisect_right(closed, start)
        nth = here[before]
        here[before] += 1
        minus = -1 if _MINUS.search(text, max(0, start - _NEAR), start) else 1
        sentence = ends[bisect_right(ends, start) - 1]
        earlier = everywhere[max(0, i - _MOST_NEAR) : i]
        near = tuple(_value_at(text, *span) for span in earlier if sentence <= span[0])
        last = max((b for _, b in earlier if b <= start), default=0)
        words = text[max(last, sentence) : start]
        value = minus * _value_at(text, start, end)
        of: tuple[Mode, ...] = tuple(m for m, p in _ROUNDS.items() if p.search(words))
        found.append(Said((before, nth), start, end, value, of[:1] or _any(words), near))
    return found


def way_that_counts(text: str, stated: Sequence[Statement]) -> int | None:
    """Which of several ways to its answer a text says it goes by, as "I trust the first way" does:
    0 for the first, 1 for the second, -1 for the last; None if it says of none, or of several.

    Args:
        stated: what the text states; a sentence with an operation is none that says so.
    """
    found, start = set[int](), 0
    spans = [(s.start, s.end) for s in stated if not s.said]
    for end in (*(m.end() for m in _CLAUSE.finditer(text)), len(text)):
        clause = text[start:end]
        if _COUNTS.search(clause) and not _NOT.search(clause) and not touched(spans, start, end):
            for m in _CHOSEN.finditer(clause):
                label = (m["nth"] or m["label"]).lower()
                found.add(-1 if label == "last" else int(label in _LABELS[1]))
        start = end
    return found.pop() if len(found) == 1 else None


def combination(
    text: str, stated: Sequence[Statement]
) -> tuple[Combination, int | None, Span] | None:
    """What a text says that it makes of several of its results for the answer, as in "I take the
    mean of the two": the operation, of how many if it says so, and where it says it; None if it
    says nothing, or several things.

    Args:
        stated: what the text states; a sentence with a number is none that says so.
    """
    text = _in_digits(text)
    found: dict[Combination, tuple[int | None, Span]] = {}
    start = 0
    for end in (*(m.end() for m in _CLAUSE.finditer(text)), len(text)):
        clause = _LABELLED.sub(r"\g<way>", text[start:end])
        them = _OF_THEM.search(clause)
        if them and not _DIGIT.search(_SAYS.sub("", clause)) and not _NOT.search(clause):
            signs = [sign for sign, words in _COMBINED.items() if words.search(clause)]
            if signs and (_COUNTS.search(clause) or _SETTLES.search(clause)):
                many = [m["many"].lower() for m in _OF_THEM.finditer(clause) if m["many"]]
                named = _HOW_MANY[many[0]] if many else None
                found |= {sign: (named, (start, end)) for sign in signs}
        start = end
    if len(found) != 1:
        return None
    ((sign, (many, span)),) = found.items()
    return sign, many, span


@dataclass(frozen=True)
class Limit:
    """A number with which a text compares another one, as in "from 20 kg on"."""

    start: int
    end: int
    """Half-open character span."""
    value: Fraction
    near: tuple[Fraction, ...]
    """The other numbers of its sentence and of the two beside it."""


def limits_in(text: str) -> list[Limit]:
    """The numbers with which a text compares other ones."""
    text = _in_digits(text)
    ends = [0, *(m.end() for m in _SENTENCE.finditer(text)), len(text)]
    everywhere = [m.span() for m in numbers(text)]
    places = {span: i for i, span in enumerate(everywhere)}
    found = []
    for rule in _COMPARED.finditer(text):
        span = rule.span("after" if rule["after"] else "before")
        if span not in places or span[1] - span[0] > MOST_DIGITS:
            continue
        at, i = bisect_right(ends, span[0]) - 1, places[span]
        first, last = ends[max(0, at - 1)], ends[min(len(ends) - 1, at + 2)]
        around = everywhere[max(0, i - _MOST_NEAR) : i + _MOST_NEAR]
        near = [s for s in around if first <= s[0] < last and s != span]
        values = tuple(dict.fromkeys(_value_at(text, *s) for s in near))
        found.append(Limit(*span, _value_at(text, *span), values))
    return found


def _value_at(text: str, start: int, end: int) -> Fraction:
    return Fraction(text[start:end].replace(",", "")) if end - start <= MOST_DIGITS else Fraction(0)


def _any(words: str) -> tuple[Mode, ...]:
    return ("nearest", "up", "down") if _ROUNDED.search(words) else ()


def _places(value: Fraction) -> int:
    shown = f"{float(value):.10f}".rstrip("0")
    return len(shown.partition(".")[2])


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
        open_one = _open(text, left.start(), left.end("left"), labels)
        if open_one is None or len(result["size"]) > MOST_DIGITS:
            continue
        digits = result["size"].replace(",", "")
        size = Fraction(digits) * (-1 if result["minus"] else 1)
        value = open_one.result
        stated = replace(
            open_one,
            end=result.end("size"),
            result=size,
            result_span=result.span("size"),
            places=len(digits.partition(".")[2]),
            about=side["about"] is not None,
            open=False,
        )
        if result["percent"] and abs(value - size) > abs(value - size / 100):
            stated = replace(stated, result=size / 100, places=stated.places + 2)
        yield stated


def open_end(text: str, stated: Sequence[Statement]) -> Statement | None:
    """The operation that a text ends in without its result, as in "The rest is 12 - 5."; None if
    there is none.

    Args:
        stated: what the text states otherwise.
    """
    text = _in_digits(text)
    left = left_open(text, stated)
    last = max((s.end for s in stated), default=0)
    closed = not left or left[-1].start < last or _DIGIT.search(text, left[-1].end)
    return None if closed else left[-1]


def left_open(text: str, stated: Sequence[Statement]) -> list[Statement]:
    """The operations of a text without a result, outside what it states."""
    text = _in_digits(text)
    labels, spans = [m.span() for m in LABEL.finditer(text)], [(s.start, s.end) for s in stated]
    sides = [m.span() for m in _SUM.finditer(text) if not touched(spans, *m.span())]
    return [one for side in sides if (one := _open(text, *side, labels)) is not None]


def _open(text: str, start: int, end: int, labels: Sequence[Span]) -> Statement | None:
    """The operation at a place of a plain text; None if it cannot be read or executed."""
    tokens = [t for t in TOKEN.finditer(text, start, end) if t["number"]]
    if any(touched(labels, *t.span("number")) for t in tokens):
        return None
    ids = iter(range(len(tokens)))

    def name(token: re.Match[str]) -> str:
        if token["bracket"]:
            return python_of(token, Fraction(1))
        return f"(n{next(ids)}*1/100)" if token["percent"] else f"n{next(ids)}"

    tree = tree_of(text[start:end], name)
    if tree is None or max(len(t["number"]) for t in tokens) > MOST_DIGITS:
        return None
    values = tuple(Fraction(t["number"].replace(",", "")) for t in tokens)
    if _MINUS.search(text, max(0, start - _NEAR), start):
        values, start = (-values[0], *values[1:]), start - 1
    stated = Statement(
        start=start,
        end=end,
        numbers=values,
        percents=tuple(bool(t["percent"]) for t in tokens),
        result=Fraction(0),
        result_span=(end, end),
        places=0,
        expression=_Products().visit(tree),
        open=True,
    )
    value = stated.value(values)
    return None if value is None else replace(stated, result=value)
