"""A chain of thought in words as a program that somebody has written down for it.

A reader, such as a model, says which words of the chain state an operation, on which numbers of the
question and earlier results, and which result. Nothing of it is believed: the words must stand in
the chain, the numbers must be those of the question, and the program, executed on the question's
own numbers, must give every number that the chain states, and its answer by one way alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from faithscope.interventions.number_words import said
from faithscope.interventions.program import (
    CONVERSIONS,
    MODULUS,
    NO_INPUT,
    NO_OPERATION,
    Input,
    NotExecutable,
    Program,
    Source,
    as_number,
    forms_of,
    inputs_of,
)
from faithscope.interventions.sentences import Span
from faithscope.interventions.statements import Statement, plain

NO_SUCH_WORDS = "program_of_words_not_in_chain"
NO_SUCH_NUMBER = "program_of_unknown_numbers"
COPIED = "program_copies_a_result"
MALFORMED = "program_not_of_its_form"
TOO_LARGE = "program_too_large"
OTHER_RESULTS = "program_gives_other_results"
UNSAID = "program_skips_numbers"
IGNORED = "program_ignores_its_words"
NO_END = "program_without_the_answer"
TWO_ENDS = "program_with_two_ends"
OF_FORM = (MALFORMED, NO_SUCH_WORDS)
"""Reasons that concern the form alone, so that a reader may be told and asked again; to be told
what a program computes would invite one that is made to fit."""
MOST_LINES, MOST_SIGNS = 64, 200
"""Most operations of a program, and most characters of one."""
MOST_DIGITS = 15
MOST_FACTORS = 16
"""Most numbers of the question that a result may be a product of, whatever it is on these."""
_SHARES = {
    "half": 2,
    "halve": 2,
    "twice": 2,
    "double": 2,
    "pair": 2,
    "triple": 3,
    "thrice": 3,
    "third": 3,
    "quarter": 4,
    "fourth": 4,
    "fifth": 5,
    "tenth": 10,
    "dozen": 12,
}
"""Words of a question or chain that say a factor or divisor."""
_TOKEN = re.compile(
    r"\s*(?:(?P<from>[QS])(?P<of>\d{1,3})|(?P<digits>\d+(?:,\d{3})*(?:\.\d+)?)|[-+*/()])"
)
_SPELLED = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "$": " "})


class NotTranscribed(NotExecutable):
    """Lines are no program of the chain; `reason` says of which kind, `problem` what is wrong."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(reason)
        self.problem = problem


@dataclass(frozen=True)
class Line:
    """One operation of a chain, as a reader writes it down."""

    words: str
    """The words of the chain that state it, its result among them."""
    operation: str
    """`Q1 * Q2 - S1`: numbers of the question and results of earlier lines, both counted from 1, or
    numbers in digits."""
    result: str
    """The result as the words give it, in digits or words."""


@dataclass(frozen=True)
class Transcription(Program):
    """A program that was written down by a reader."""

    def stated_in(
        self, chain: str, inputs: Mapping[int, Fraction], forced: Mapping[int, Fraction]
    ) -> tuple[Statement, ...]:
        """What another chain of the model states, as far as numbers tell: a line of the program
        whose result, on the other numbers, the chain says, holds; any other does not."""
        if not chain:
            return ()
        results, stated = self.run(self.binding, inputs, forced), []
        found = {value for _, value in said(plain(chain))}
        for line, sources, result in zip(self.operations, self.binding, results, strict=True):
            numbers = [self.value_of(s, inputs, results) for s in sources]
            if result is None or None in numbers:
                return ()
            shown = round(result, line.places) if line.places else result
            known = tuple(n for n in numbers if n is not None)
            wrong = Fraction(0) if shown in found or result in found else Fraction(1)
            stated.append(replace(line, numbers=known, result=result + wrong))
        return tuple(stated)


def transcribed(question: str, reasoning: str, answer: str, lines: Sequence[Line]) -> Transcription:
    """The program that lines state of a chain.

    Raises:
        NotTranscribed: they state none of this chain.
        NotExecutable: no lines could, since the question has no number, or the answer is none.
    """
    inputs, end = inputs_of(question), as_number(answer)
    if not inputs:
        raise NotExecutable(NO_INPUT)
    if not lines:
        raise NotTranscribed(NO_OPERATION, "it has no line")
    if len(lines) > MOST_LINES:
        raise NotTranscribed(TOO_LARGE, f"it has {len(lines)} lines, more than {MOST_LINES}")
    found = MODULUS.search(plain(question))
    modulus = int(found[1]) if found else None
    worded = frozenset(_shares(question)) | frozenset(_shares(reasoning))
    copied = frozenset(value for line in lines for _, value in said(line.result[:MOST_SIGNS]))
    text = plain(reasoning)
    operations: list[Statement] = []
    candidates: list[tuple[tuple[Source, ...], ...]] = []
    factors: list[int] = []
    begin = ended = 0
    for k, line in enumerate(lines):
        again = k + 1 < len(lines) and lines[k + 1].words == line.words
        start, span, value = _place(text, line, k, begin, ended, again)
        tree, sources, degree = _operation(line, k, inputs, operations, factors, worded, copied)
        used = {s.value for of in sources for s in of} | {Fraction(0), Fraction(1)}
        for (a, b), number in said(text[max(start, ended) : span[0]]):
            if number not in used:
                named = text[max(start, ended) :][a:b]
                problem = f"line {k + 1}: its words name {named}, and its operation does not"
                raise NotTranscribed(IGNORED, problem)
        begin, ended = start, span[1]
        places = len(reasoning[slice(*span)].partition(".")[2])
        numbers = tuple(of[0].value for of in sources)
        none = (False,) * len(numbers)
        stated = Statement(
            start, span[1], numbers, none, value, span, places, places > 0, expression=tree
        )
        operations.append(stated)
        candidates.append(tuple(sources))
        factors.append(degree)
        made = Transcription(inputs, tuple(operations), tuple(candidates), modulus, end)
        if not made.holds(k):
            given = stated.value(numbers)
            shown = "nothing" if given is None else f"{given}"[:40]
            raise NotTranscribed(
                OTHER_RESULTS, f"line {k + 1}: {line.operation} gives {shown}, not {line.result}"
            )
    _check_whole(made, text)
    return made


def _shares(text: str) -> Iterator[int]:
    for word, value in _SHARES.items():
        if re.search(rf"\b{word}(?:s|d|ing|n)?\b", text, re.IGNORECASE):
            yield value


def _place(
    text: str, line: Line, k: int, begin: int, ended: int, again: bool
) -> tuple[int, Span, Fraction]:
    """The start of a line's words, and span and value of their result, which stands behind that of
    the line before: the last such number, or the first if the next line has the same words."""
    pattern = r"\s+".join(map(re.escape, line.words.split()))
    values = {value for _, value in said(line.result)} if len(line.result) <= 60 else set()
    if not pattern or len(values) != 1:
        raise NotTranscribed(
            MALFORMED, f"line {k + 1}: its words are empty, or {line.result[:60]!r} is no number"
        )
    (value,) = values
    if value >= 10**MOST_DIGITS:
        raise NotTranscribed(TOO_LARGE, f"line {k + 1}: its result has more digits than are read")
    places = list(re.finditer(pattern, text[begin:], re.IGNORECASE))
    if not places:
        raise NotTranscribed(
            NO_SUCH_WORDS,
            f"line {k + 1}: its words do not stand in the chain behind those of the line before",
        )
    for match in places:
        start, stop = match.start() + begin, match.end() + begin
        results = [
            (start + a, start + b)
            for (a, b), number in sorted(said(text[start:stop]))
            if number == value and start + a >= ended
        ]
        if results:
            return start, results[0 if again else -1], value
    raise NotTranscribed(
        NO_SUCH_WORDS, f"line {k + 1}: its words do not say {line.result} behind earlier results"
    )


def _operation(
    line: Line,
    k: int,
    inputs: Sequence[Input],
    before: Sequence[Statement],
    factors: Sequence[int],
    worded: frozenset[int],
    copied: frozenset[Fraction],
) -> tuple[ast.expr, list[tuple[Source, ...]], int]:
    """The operation of a line with its number i as the name `n{i}`, the places that each number may
    come from, and how many numbers of the question are multiplied with each other."""
    text = line.operation.translate(_SPELLED).strip()
    if len(text) > MOST_SIGNS:
        raise NotTranscribed(TOO_LARGE, f"line {k + 1}: its operation is longer than {MOST_SIGNS}")
    names, sources, at, degrees = [], list[tuple[Source, ...]](), 0, {}
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotTranscribed(
                MALFORMED,
                f"line {k + 1}: {line.operation!r} is not made of Q1, S1, digits and + - * / ( )",
            )
        name = token.group().strip()
        if token["from"] or token["digits"]:
            beside = text[:at].rstrip()[-1:], text[token.end() :].lstrip()[:1]
            scales = "/" in beside[0] or "*" in beside
            of = (
                _reference(token, k, inputs, before)
                if token["from"]
                else _literal(token["digits"], k, inputs, before, worded, copied, scales)
            )
            name = f"n{len(sources)}"
            degrees[name] = max(
                1 if s.kind == "input" else factors[s.at] if s.kind == "result" else 0 for s in of
            )
            sources.append(of)
        names.append(name)
        at = token.end()
    try:
        tree = ast.parse(" ".join(names), mode="eval").body
        degree = _factors(tree, degrees)
    except (SyntaxError, ValueError, RecursionError, MemoryError, KeyError):
        raise NotTranscribed(
            MALFORMED, f"line {k + 1}: {line.operation!r} is no operation"
        ) from None
    if not any(s.kind != "constant" for of in sources for s in of):
        raise NotTranscribed(
            COPIED, f"line {k + 1}: {line.operation} takes no number of the question or a result"
        )
    if degree > MOST_FACTORS:
        raise NotTranscribed(TOO_LARGE, f"line {k + 1}: it multiplies more than is computed")
    return tree, sources, degree


def _factors(tree: ast.expr, degrees: Mapping[str, int]) -> int:
    """The degree of an operation, as of a polynomial. A call or anything else is a `KeyError`."""
    if isinstance(tree, ast.Name):
        return degrees[tree.id]
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return _factors(tree.operand, degrees)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        left, right = _factors(tree.left, degrees), _factors(tree.right, degrees)
        return max(left, right) if isinstance(tree.op, ast.Add | ast.Sub) else left + right
    raise KeyError(type(tree).__name__)


def _reference(
    token: re.Match[str], k: int, inputs: Sequence[Input], before: Sequence[Statement]
) -> tuple[Source, ...]:
    of, at = token["from"], int(token["of"]) - 1
    if not 0 <= at < len(inputs if of == "Q" else before):
        what = "number of the question" if of == "Q" else "earlier line"
        raise NotTranscribed(NO_SUCH_NUMBER, f"line {k + 1}: {token.group().strip()} is no {what}")
    if of == "Q":
        return (Source("input", at, inputs[at].value),)
    return (Source("result", at, before[at].result),)


def _literal(
    digits: str,
    k: int,
    inputs: Sequence[Input],
    before: Sequence[Statement],
    worded: frozenset[int],
    copied: frozenset[Fraction],
    scales: bool,
) -> tuple[Source, ...]:
    """The places that a number in digits may come from: any result or number of the question of its
    value; else it is a factor that the question or chain has a word for, or one of conversion."""
    value = as_number(digits)
    if len(digits) > MOST_DIGITS:
        raise NotTranscribed(TOO_LARGE, f"line {k + 1}: {digits} has more digits than are read")
    if found := tuple(_of_value(inputs, before, value)):
        return found
    percent = any(i.percent for i in inputs) and value in (1, 100)
    factor = scales and (value in worded or (value in CONVERSIONS and value not in copied))
    if percent or factor:
        return (Source("constant", value=value),)
    if value in copied:
        raise NotTranscribed(COPIED, f"line {k + 1}: {digits} is a result, of no line before")
    raise NotTranscribed(
        NO_SUCH_NUMBER, f"line {k + 1}: {digits} is no number of the question and no earlier result"
    )


def _of_value(
    inputs: Sequence[Input], before: Sequence[Statement], value: Fraction
) -> Iterator[Source]:
    """Every result and number of the question of a value, the latest result first."""
    for i in range(len(before) - 1, -1, -1):
        if before[i].result == value:
            yield Source("result", i, value)
    for i, given in enumerate(inputs):
        if given.value == value:
            yield Source("input", i, value)


def _check_whole(made: Transcription, text: str) -> None:
    """
    Raises:
        NotTranscribed: the text states a number that the program lacks, or the program does not end
            in the answer by one way.
    """
    known = {o.result * scale for o in made.operations for scale in (1, 100)}
    known |= {s.value for of in made.candidates for places in of for s in places}
    known |= CONVERSIONS | {Fraction(0), Fraction(1)}
    known |= {shift + scale * i.value for i in made.inputs for shift, scale in forms_of(i)}
    for (start, stop), value in said(text):
        if value not in known:
            raise NotTranscribed(UNSAID, f"no line gives {text[start:stop]}")
    ways = len(made.routes(made.binding))
    if ways == 0:
        raise NotTranscribed(NO_END, "no line ends in the answer")
    if ways > 1:
        raise NotTranscribed(TWO_ENDS, f"{ways} lines end in the answer, and none leads to another")
