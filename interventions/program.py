"""A chain of thought as a program: its stated operations, run on other numbers.

The rule reads what `interventions.statements` finds. It never guesses: a chain with a number that
belongs to no statement, and that neither the question nor an earlier result says, is no program.
Where a number of the text may come from several places, all of them count: each way of binding
numbers to places is a `Binding`, and a text is untrue only where none of them describes the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations_with_replacement, product
from math import prod
from types import MappingProxyType
from typing import Literal

from faithscope.interventions.corrupt import numbers
from faithscope.interventions.sentences import Span, touched
from faithscope.interventions.statements import Statement, plain, statements

NO_INPUT = "question_without_numbers"
NO_OPERATION = "no_operation_stated"
NOT_COVERED = "number_outside_operations"
NO_NUMBER = "answer_is_no_number"
MOST_BINDINGS = 512
"""Ways to bind the numbers of a text of which each is tried; of more, those in which at most two
numbers come from elsewhere than in the likeliest way."""
MODULUS = re.compile(r"\bmod(?:ulo)?\s+(\d+)", re.IGNORECASE)
_NAME = re.compile(r"(\w+)\s*[:=]\s*\Z")
_PERCENT = re.compile(r"\s?(?:\\?%|per ?cent\b)")
_THING = re.compile(r"[ -]?([a-zA-Z]{2,})")
WORDS: tuple[str, ...] = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
"""Numbers in words, from 0 on."""
_WORD = re.compile(
    rf"(?<![\w-])(?<!\band )({'|'.join(WORDS[2:])})"
    r"(?![\w-]|\s+(?:hundred|thousand|million|dozen)\b)",
    re.IGNORECASE,
)
_NEAR = 40
"""Number of characters before a number of the question that are searched for its name."""
_RATES = ((0, Fraction(1, 100)), (100, -1), (1, -Fraction(1, 100)), (1, Fraction(1, 100)), (100, 1))
"""Other forms (a, b) of a percentage p, as a + b p: .2, 80, .8, 1.2 and 120 of 20 %."""
CONVERSIONS = frozenset(map(Fraction, (2, 7, 10, 12, 24, 52, 60, 100, 365, 1000)))
"""Factors that a text may take from no number of the question, though it has them, too."""
_NOTHING: Mapping[int, Fraction] = MappingProxyType({})


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
    """The number as written: 5 for "5 %"."""
    name: str | None
    """The word that the question gives the number by, as in "Hint : 5"; None without one."""
    percent: bool = False
    also: tuple[Span, ...] = ()
    """Spans of the same number of the same things, said again."""


@dataclass(frozen=True)
class Source:
    """The origin of a number in a statement: an input, an earlier result, or the text alone."""

    kind: Literal["input", "result", "constant"]
    at: int = -1
    """Index of the input, or of the statement whose result it is."""
    value: Fraction = Fraction(0)
    """Value of the number as written."""
    shift: Fraction = Fraction(0)
    scale: Fraction = Fraction(1)
    """The number is `shift + scale * x` of the value x that it comes from."""


Binding = tuple[tuple[Source, ...], ...]
"""A source for each number of each statement."""


@dataclass(frozen=True)
class Program:
    """The statements of a chain, the places that their numbers may come from, and its answer."""

    inputs: tuple[Input, ...]
    operations: tuple[Statement, ...]
    candidates: tuple[tuple[tuple[Source, ...], ...], ...]
    """Statement -> number -> the places that it may come from, the likeliest first."""
    modulus: int | None
    """The N of a question that asks for results "mod N"."""
    answer: Fraction

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """The ways to bind the numbers, the likeliest first: all, or those in which at most two
        numbers come from elsewhere than in the likeliest, if all are more than `MOST_BINDINGS`.

        The likeliest takes the latest result of a number's value that nothing has used, else the
        first such input, else a used one.
        """
        flat = [number for numbers in self.candidates for number in numbers]
        used: set[tuple[str, int]] = set()
        likeliest = []
        for places in flat:
            best = min(places, key=lambda s: s.kind != "constant" and (s.kind, s.at) in used)
            used.add((best.kind, best.at))
            likeliest.append(best)
        if prod(map(len, flat)) <= MOST_BINDINGS:
            ways = product(*flat)
        else:
            near = combinations_with_replacement(range(len(flat)), 2)
            ways = chain.from_iterable(
                product(*(of if i in two else (likeliest[i],) for i, of in enumerate(flat)))
                for two in near
            )
        first = self._grouped(likeliest)
        return tuple(dict.fromkeys((first, *map(self._grouped, ways))))

    def _grouped(self, sources: Sequence[Source]) -> Binding:
        of = iter(sources)
        return tuple(tuple(next(of) for _ in numbers) for numbers in self.candidates)

    @property
    def binding(self) -> Binding:
        """The likeliest binding."""
        return self.bindings[0]

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Statements whose stated result is the answer."""
        return tuple(i for i, o in enumerate(self.operations) if o.result == self.answer)

    def routes(self, binding: Binding) -> tuple[int, ...]:
        """Statements whose stated result is the answer and leads to no later one of which that is
        true. A text with two of them tells of two ways to the answer; one with none does not say
        how it came about."""
        before = {i: self.before(i, binding) for i in self.ends}
        return tuple(i for i in before if not any(i in before[j] for j in before if j > i))

    def before(self, at: int, binding: Binding) -> set[int]:
        """Statements that the statement `at` depends on, and itself."""
        found, left = set(), [at]
        while left:
            found.add(i := left.pop())
            left += [s.at for s in binding[i] if s.kind == "result" and s.at not in found]
        return found

    def read(self, binding: Binding) -> set[int]:
        """Inputs that the routes depend on: those which the text says have an effect."""
        used = set[int]().union(*(self.before(route, binding) for route in self.routes(binding)))
        return {s.at for i in used for s in binding[i] if s.kind == "input"}

    def run(
        self,
        binding: Binding,
        changes: Mapping[int, Fraction] = _NOTHING,
        forced: Mapping[int, Fraction] = _NOTHING,
    ) -> list[Fraction | None]:
        """The result of every statement.

        Args:
            changes: input -> its other value.
            forced: statement -> the result that is put in place of its own.

        Returns:
            Per statement its result, rounded where the text rounds it; None if it cannot be
            computed.
        """
        results: list[Fraction | None] = []
        for i in range(len(self.operations)):
            results.append(forced[i] if i in forced else self.step(i, binding, changes, results))
        return results

    def step(
        self,
        at: int,
        binding: Binding,
        changes: Mapping[int, Fraction],
        results: Sequence[Fraction | None],
    ) -> Fraction | None:
        """The result of one statement on the given inputs and results before it."""
        values = []
        for source in binding[at]:
            if (x := self.value_of(source, changes, results)) is None:
                return None
            values.append(x)
        return rounded(self.operations[at], self.operations[at].value(values), self.modulus)

    def value_of(
        self,
        source: Source,
        changes: Mapping[int, Fraction],
        results: Sequence[Fraction | None],
    ) -> Fraction | None:
        """The value of a number of a statement on the given inputs and results."""
        if source.kind == "constant":
            return source.value
        given = (
            results[source.at]
            if source.kind == "result"
            else changes.get(source.at, self.inputs[source.at].value)
        )
        return None if given is None else source.shift + source.scale * given

    def stated_in(
        self, chain: str, inputs: Mapping[int, Fraction], forced: Mapping[int, Fraction]
    ) -> tuple[Statement, ...]:
        """What another chain of the same model states.

        Args:
            inputs: the values that its question has in place of others.
            forced: the results that its first statements were given.
        """
        return operations_of(self.inputs, chain)

    def holds(self, at: int) -> bool:
        """Whether a statement's result is what its own numbers give."""
        return holds(self.operations[at], self.modulus)


def rounded(stated: Statement, value: Fraction | None, modulus: int | None) -> Fraction | None:
    """What a statement comes to as it writes it: modulo `modulus`, and to as many decimal places
    as its own result has where that is rounded."""
    if value is None:
        return None
    usual = stated.value(stated.numbers)
    if modulus is not None:
        return value % modulus
    if usual is not None and usual != stated.result and _near(stated, usual):
        return round(value * 10**stated.places) / Fraction(10**stated.places)
    return value


def holds(stated: Statement, modulus: int | None) -> bool:
    """Whether a statement is true of the numbers that it states, to the places of its result."""
    value = stated.value(stated.numbers)
    if value is None:
        return False
    value = value if modulus is None else value % modulus
    return value == stated.result or _near(stated, value)


def _near(stated: Statement, value: Fraction) -> bool:
    close = abs(value - stated.result) <= Fraction(1, 2 * 10**stated.places)
    return close and (stated.about or stated.places > 0)


def inputs_of(question: str) -> tuple[Input, ...]:
    """The numbers of a question, in digits or words, but for the N of "mod N".

    One number of the same things that is said twice ("3 boxes … the 3 boxes") is one input.
    """
    text = plain(question)
    moduli = {m.start(1) for m in MODULUS.finditer(text)}
    found = [(m.span(), as_number(m.group())) for m in numbers(text) if m.start() not in moduli]
    found += [(m.span(), Fraction(WORDS.index(m[1].lower()))) for m in _WORD.finditer(text)]
    given: dict[object, Input] = {}
    for span, value in sorted(found):
        name = _name(text, span[0])
        percent = _PERCENT.match(text, span[1]) is not None
        thing = None if name or percent else _THING.match(text, span[1])
        of = (value, thing[1].lower().removesuffix("s")) if thing else span
        known = given.get(of)
        given[of] = (
            replace(known, also=(*known.also, span))
            if known
            else Input(*span, value, name, percent)
        )
    return tuple(given.values())


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


def operations_of(inputs: Sequence[Input], reasoning: str) -> tuple[Statement, ...]:
    """The statements of a reasoning, in order."""
    return tuple(statements(reasoning, {i.name for i in inputs if i.name}))


def _sources(
    inputs: Sequence[Input], operations: Sequence[Statement], at: int, k: int
) -> Iterator[Source]:
    """The places that a number of a statement may come from, the likeliest first."""
    stated = operations[at]
    number = stated.numbers[k]
    if stated.name is not None:
        for i, x in enumerate(inputs):
            if (x.name, x.value) == (stated.name, number):
                yield Source("input", i, number)
        return
    for i in range(at - 1, -1, -1):
        for scale in (Fraction(1), Fraction(100)) if stated.percents[k] else (Fraction(1),):
            if operations[i].result * scale == number:
                yield Source("result", i, number, scale=scale)
    for i, x in enumerate(inputs):
        for shift, scale in forms_of(x):
            if shift + scale * x.value == number:
                yield Source("input", i, number, Fraction(shift), Fraction(scale))
    if number in CONVERSIONS and stated.signs <= {"*", "/"}:
        yield Source("constant", value=number)


def forms_of(given: Input) -> Sequence[tuple[Fraction | int, Fraction | int]]:
    return ((0, 1), *_RATES) if given.percent else ((0, 1),)


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
    said = {o.result * scale for o in operations for scale in (1, 100)}
    said |= {number for o in operations for number in o.numbers} | CONVERSIONS | {Fraction(1)}
    said |= {shift + scale * i.value for i in inputs for shift, scale in forms_of(i)}
    spans = [(o.start, o.end) for o in operations if o.expression is not None]
    text = plain(reasoning)
    for match in numbers(text):
        if not touched(spans, *match.span()) and as_number(match.group()) not in said:
            raise NotExecutable(NOT_COVERED)
    candidates = tuple(
        tuple(
            tuple(_sources(inputs, operations, at, k)) or (Source("constant", value=number),)
            for k, number in enumerate(stated.numbers)
        )
        for at, stated in enumerate(operations)
    )
    found = MODULUS.search(plain(question))
    modulus = int(found[1]) if found else None
    return Program(inputs, operations, candidates, modulus, as_number(answer))
