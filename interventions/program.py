"""A chain of thought as a program: its stated operations, run on other numbers of the question.

The rule reads equations (`3 * 4 = 12`, "So 3 + 4 makes 7") and sentences that name an input of the
question ("the Hint makes 5" where the question says "Hint : 5"). It never guesses: a chain with a
number that belongs to none of these, and that neither the question nor an earlier result says, is
no program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from faithscope.interventions.calculation import Equation, equations
from faithscope.interventions.corrupt import numbers

NO_INPUT = "question_without_numbers"
NO_OPERATION = "no_operation_stated"
NOT_COVERED = "number_outside_operations"
NO_NUMBER = "answer_is_no_number"
_MODULUS = re.compile(r"\bmod(?:ulo)?\s+(\d+)", re.IGNORECASE)
_NAME = re.compile(r"(\w+)\s*[:=]\s*\Z")
_NAMED = re.compile(
    r"(?P<source>[^\d.!?\n]*)(?:=|:|\b(?:equals|is|makes|gives)\b)\s*(?P<number>\d+(?:\.\d+)?)"
    r"(?![\w%]|[.,]\d|\s*[-+*/×÷=])"
)
_NEAR = 40
"""Number of characters before a number of the question that are searched for its name."""


class NotExecutable(ValueError):
    """The chain is no program; the exception's `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Input:
    """A number of the question."""

    start: int
    end: int
    """Half-open character span in the question."""
    value: Fraction
    name: str | None
    """The word that the question gives the number by, as in "Hint : 5"; None without one."""


@dataclass(frozen=True)
class Source:
    """The origin of a number in an operation: an input, an earlier result, or the text alone."""

    kind: Literal["input", "result", "constant"]
    at: int = -1
    """Index of the input, or of the operation whose result it is."""
    value: Fraction = Fraction(0)
    """Value of the number."""


@dataclass(frozen=True)
class Operation:
    """A stated operation: an equation, or a sentence that names an input."""

    start: int
    """Character of the reasoning at which it begins."""
    sources: tuple[Source, ...]
    result: Fraction
    """The result as stated, right or wrong."""
    equation: Equation | None
    """None for a sentence that names an input."""

    def apply(self, values: Sequence[Fraction]) -> Fraction | None:
        """The result on other numbers; None for a division by zero."""
        return self.equation.value(values) if self.equation else values[0]


@dataclass(frozen=True)
class Program:
    """The stated operations of a chain, and which of their results is its answer."""

    inputs: tuple[Input, ...]
    operations: tuple[Operation, ...]
    modulus: int | None
    """The N of a question that asks for results "mod N"."""
    answer: Fraction

    @cached_property
    def routes(self) -> tuple[int, ...]:
        """Operations whose stated result is the answer and leads to no later one of which that is
        true. A text with two of them tells of two ways to the answer; one with none does not say
        how it came about."""
        ends = [i for i, o in enumerate(self.operations) if o.result == self.answer]
        return tuple(i for i in ends if not any(i in self.before(j) for j in ends if j > i))

    def before(self, at: int) -> set[int]:
        """Operations that the operation `at` depends on, and itself."""
        results = [s.at for s in self.operations[at].sources if s.kind == "result"]
        return {at}.union(*(self.before(i) for i in results))

    @cached_property
    def read(self) -> set[int]:
        """Inputs that the routes depend on: those which the text says have an effect."""
        used = set().union(*(self.before(route) for route in self.routes))
        return {s.at for i in used for s in self.operations[i].sources if s.kind == "input"}

    def run(self, changes: Mapping[int, Fraction]) -> list[Fraction | None]:
        """The result of every operation, executed with other values of some inputs.

        None stands for a result that cannot be computed.
        """
        results: list[Fraction | None] = []
        for operation in self.operations:
            results.append(self.step(operation, changes, results))
        return results

    def step(
        self,
        operation: Operation,
        changes: Mapping[int, Fraction],
        results: Sequence[Fraction | None],
    ) -> Fraction | None:
        """The result of one operation on the given inputs and results before it."""

        def value(source: Source) -> Fraction | None:
            if source.kind == "result":
                return results[source.at]
            return changes.get(source.at, source.value) if source.kind == "input" else source.value

        values = [value(source) for source in operation.sources]
        known = [v for v in values if v is not None]
        result = operation.apply(known) if len(known) == len(values) else None
        return result if result is None or self.modulus is None else result % self.modulus


def inputs_of(question: str) -> tuple[Input, ...]:
    """The numbers of a question but for the N of "mod N", each with its name if it has one."""
    moduli = {m.start(1) for m in _MODULUS.finditer(question)}
    return tuple(
        Input(*m.span(), as_number(m.group()), _name(question, m.start()))
        for m in numbers(question)
        if m.start() not in moduli
    )


def _name(question: str, at: int) -> str | None:
    named = _NAME.search(question, max(0, at - _NEAR), at)
    return named[1] if named else None


def as_number(text: str) -> Fraction:
    """
    Raises:
        NotExecutable: the text is no plain number.
    """
    try:
        return Fraction(text.replace(",", ""))
    except (ValueError, ZeroDivisionError):
        raise NotExecutable(NO_NUMBER) from None


def operations_of(inputs: Sequence[Input], reasoning: str) -> tuple[Operation, ...]:
    """The stated operations of a reasoning, in order, each number with its source.

    A number comes from the latest result of its value that no operation has used, else from the
    first input of its value that none has used, else from a used result or input of its value; if
    there is none, it is a constant of the text.
    """
    stated: list[tuple[int, Equation | tuple[str, Fraction]]] = [
        (e.start, e) for e in equations(reasoning)
    ]
    spans = [(e.start, e.end) for _, e in stated if isinstance(e, Equation)]
    for match in _NAMED.finditer(reasoning):
        inside = any(a < match.end() and match.start("number") < b for a, b in spans)
        for given in inputs:
            if given.name and not inside and re.search(rf"\b{given.name}\b", match["source"], re.I):
                stated.append((match.start(), (given.name, Fraction(match["number"]))))
                break
    operations: list[Operation] = []
    used: set[tuple[str, int]] = set()

    def source(value: Fraction, name: str | None = None) -> Source:
        if name is not None:
            named = [i for i, x in enumerate(inputs) if (x.name, x.value) == (name, value)]
            return Source("input", named[0], value) if named else Source("constant", value=value)
        results = [i for i, o in enumerate(operations) if o.result == value][::-1]
        given = [i for i, x in enumerate(inputs) if x.value == value]
        places = [("result", i) for i in results] + [("input", i) for i in given]
        for kind, at in sorted(places, key=lambda place: place in used):
            used.add((kind, at))
            return Source("result" if kind == "result" else "input", at, value)
        return Source("constant", value=value)

    for start, what in sorted(stated, key=lambda pair: pair[0]):
        if isinstance(what, Equation):
            sources = tuple(source(number) for number in what.numbers)
            operations.append(Operation(start, sources, what.result, what))
        else:
            name, value = what
            operations.append(Operation(start, (source(value, name),), value, None))
    return tuple(operations)


def program_of(question: str, reasoning: str, answer: str) -> Program:
    """The program that a reasoning states.

    Raises:
        NotExecutable: the rule cannot read the chain as a program; the exception has the reason.
    """
    inputs = inputs_of(question)
    if not inputs:
        raise NotExecutable(NO_INPUT)
    operations = operations_of(inputs, reasoning)
    if not operations:
        raise NotExecutable(NO_OPERATION)
    said = {i.value for i in inputs} | {o.result for o in operations}
    spans = [(o.equation.start, o.equation.end) for o in operations if o.equation]
    for match in numbers(reasoning):
        inside = any(a <= match.start() < b for a, b in spans)
        if not inside and as_number(match.group()) not in said:
            raise NotExecutable(NOT_COVERED)
    modulus = _MODULUS.search(question)
    return Program(inputs, operations, int(modulus[1]) if modulus else None, as_number(answer))
