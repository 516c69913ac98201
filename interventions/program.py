"""A chain of thought as a program: its stated operations, run on other numbers.

The rule reads what `interventions.statements` finds. It never guesses: a chain with a number that
belongs to no statement, that neither the question nor a result says, and that no operation on two
of these gives, is no program.
Where a number of the text may come from several places, all of them count: each way of binding
numbers to places is a `Binding`, and a text is untrue only where none of them describes the model.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import (
    chain,
    combinations,
    combinations_with_replacement,
    permutations,
    product,
)
from math import prod
from types import MappingProxyType
from typing import Literal

from faithscope.interventions.answers import (
    Option,
    numbers_of,
    options_of,
    picked,
    says_nearest,
    value_named,
    without_options,
)
from faithscope.interventions.corrupt import numbers
from faithscope.interventions.sentences import Span, touched
from faithscope.interventions.statements import (
    MOST_DIGITS,
    Combination,
    Limit,
    Mode,
    Place,
    Said,
    Statement,
    combination,
    left_open,
    limits_in,
    open_end,
    plain,
    said_in,
    statements,
    way_that_counts,
)

NO_INPUT = "question_without_numbers"
NO_OPERATION = "no_operation_stated"
NOT_COVERED = "number_outside_operations"
NO_NUMBER = "answer_is_no_number"
AN_OPTION = "answer_names_an_option"
NUMBER_TOO_LARGE = "number_too_large"
MOST_BINDINGS = 512
"""Ways to bind the numbers of a text of which each is tried; of more, those in which at most two
numbers come from elsewhere than in the likeliest way."""
MODULUS = re.compile(r"\bmod(?:ulo)?\s+(\d+)", re.IGNORECASE)
_NAME = re.compile(r"([^\W\d]\w*)\s*[:=]\s*\Z")
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
    r"(?![\w-]|\s+(?:hundred|thousand|million)\b)",
    re.IGNORECASE,
)
_NEAR = 40
"""Number of characters before a number of the question that are searched for its name."""
_RATES = ((0, Fraction(1, 100)), (100, -1), (1, -Fraction(1, 100)), (1, Fraction(1, 100)), (100, 1))
"""Other forms (a, b) of a percentage p, as a + b p: .2, 80, .8, 1.2 and 120 of 20 %."""
CONVERSIONS = frozenset(map(Fraction, (2, 7, 10, 12, 24, 52, 60, 100, 365, 1000)))
"""Factors that a text may take from no number of the question, though it has them, too."""
_TIME_OR_DATE = re.compile(r"\b\d{1,2}:\d{2}\b|\b\d+([-/.])\d+\1\d+\b")
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
    thing: str | None = None
    """The noun behind it, without a plural's s, as far as a rule knows one."""
    word: bool = False
    """Whether it is said in words."""


@dataclass(frozen=True)
class Source:
    """The origin of a number in a statement: an input, an earlier result, or the text alone."""

    kind: Literal["input", "result", "constant", "formula"]
    at: int = -1
    """Index of the input, or of the statement whose result it is."""
    value: Fraction = Fraction(0)
    """Value of the number as written."""
    shift: Fraction = Fraction(0)
    scale: Fraction = Fraction(1)
    """The number is `shift + scale * x` of the value x that it comes from."""
    sign: str = ""
    """What a formula does to the sources `of`: an operator, a `Combination`, `nearest`, `up` or
    `down`, which round to a multiple of `scale`, or a rule (`_RULES`): the third of them while the
    first compares to the second as it did, else the fourth, or nothing that the text says."""
    of: tuple[Source, ...] = ()

    def leaves(self) -> Iterator[Source]:
        """The inputs, results and constants that it is made of."""
        if self.kind == "formula":
            for part in self.of:
                yield from part.leaves()
        else:
            yield self


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
    said: frozenset[Place] = frozenset()
    """Where prose says a number that is a statement."""
    options: tuple[Option, ...] = ()
    """The options of the question, of which the answer picks one by its value."""
    nearest: bool = False
    """Whether the value picks the option that is nearest to it."""
    others: tuple[Program, ...] = ()
    """The same program for each further number of an answer that consists of several."""
    idle: bool = False
    """Whether the text has a result beside those that its answer is read from, so that words may
    say something of them which no rule reads (`_idle`)."""

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
        """Statements whose stated result is the answer, or is left to it."""
        of = enumerate(self.operations)
        return tuple(i for i, o in of if o.open or o.result == self.answer)

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
            left += [
                s.at
                for of in binding[i]
                for s in of.leaves()
                if s.kind == "result" and s.at not in found
            ]
        return found

    def read(self, binding: Binding) -> set[int]:
        """Inputs that the routes depend on: those which the text says have an effect."""
        used = set[int]().union(*(self.before(route, binding) for route in self.routes(binding)))
        leaves = (s for i in used for of in binding[i] for s in of.leaves())
        return {s.at for s in leaves if s.kind == "input"}

    def run(
        self,
        binding: Binding,
        changes: Mapping[int, Fraction] = _NOTHING,
        forced: Mapping[int, Fraction] = _NOTHING,
        shown: Sequence[Statement] = (),
    ) -> list[Fraction | None]:
        """The result of every statement.

        Args:
            changes: input -> its other value.
            forced: statement -> the result that is put in place of its own.
            shown: the statements as the model has written them, to go on from its own rounding.

        Returns:
            Per statement its result, rounded where the text rounds it; None if it cannot be
            computed.
        """
        results: list[Fraction | None] = []
        for i in range(len(self.operations)):
            if i in forced:
                results.append(forced[i])
                continue
            value = self.step(i, binding, changes, results)
            places = shown[i].places if shown else 0
            made = rounded(self.operations[i], value, self.modulus, places)
            if shown and value is not None and made is not None:
                made = _as_shown(made, shown[i], value)
            results.append(made)
        return results

    def step(
        self,
        at: int,
        binding: Binding,
        changes: Mapping[int, Fraction],
        results: Sequence[Fraction | None],
    ) -> Fraction | None:
        """What one statement comes to on the given inputs and results before it, not rounded."""
        values = []
        for source in binding[at]:
            if (x := self.value_of(source, changes, results)) is None:
                return None
            values.append(x)
        return self.operations[at].value(values)

    def value_of(
        self,
        source: Source,
        changes: Mapping[int, Fraction],
        results: Sequence[Fraction | None],
    ) -> Fraction | None:
        """The value of a number of a statement on the given inputs and results."""
        if source.kind == "constant":
            return source.value
        if source.kind == "formula":
            values = [self.value_of(part, changes, results) for part in source.of]
            known = [value for value in values if value is not None]
            return _applied(source, known) if len(known) == len(values) else None
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
        chain, last = without_options(chain, self.options), self.operations[-1]
        stated = operations_of(self.inputs, chain, last.open and not last.said)
        said = (
            [one for one in said_in(chain, stated) if one.place in self.said] if self.said else ()
        )
        made = _ordered(stated, said)
        if last.open and last.said and len(made) == len(self.operations) - 1:
            value = self.value_of(self.candidates[-1][0][0], inputs, [one.result for one in made])
            if value is not None and combination(chain, stated):
                made = (*made, replace(last, numbers=(value,), result=value))
        return made

    def picks(self, question: str, value: Fraction | None) -> Fraction | None:
        """The value of the option of an altered question that a value picks; the value itself of a
        question without options."""
        if value is None or not self.options:
            return value
        return picked(options_of(question), value, self.nearest)

    def answered(self, question: str, answer: str | None) -> str | None:
        """The number that an answer to an altered question stands for."""
        if not self.options:
            return answer
        value = value_named(options_of(question), answer)
        if value is None:
            return None if self.options[0].label.isdigit() else answer
        return f"{float(value):.10f}".rstrip("0").rstrip(".")

    def narrowed(
        self, seen: Sequence[tuple[Mapping[int, Fraction], Sequence[Statement]]]
    ) -> Program:
        """The program with those places alone that a number came from most often, or without any if
        it was the same whatever its places held.

        Args:
            seen: (values of the question, statements) of chains that state as much as this one.
        """
        chosen = []
        for at, of in enumerate(self.candidates):
            places = []
            if self.operations[at].open and self.operations[at].said:
                chosen.append(of)  # what is combined is not written
                continue
            for k, sources in enumerate(of):
                sources = *sources, Source("constant", value=self.operations[at].numbers[k])
                counts = [0] * len(sources)
                for changes, stated in seen:
                    number, results = stated[at].numbers[k], [one.result for one in stated]
                    for j, source in enumerate(sources):
                        value = self.value_of(source, changes, results)
                        counts[j] += value is not None and agree(value, number)
                if counts[-1] <= max(counts[:-1]):
                    sources, counts = sources[:-1], counts[:-1]
                most = max(counts)
                places.append(tuple(s for s, n in zip(sources, counts, strict=True) if n == most))
            chosen.append(tuple(places))
        return replace(self, candidates=tuple(chosen))

    def without_choices(self) -> Program:
        """The program with no number that is chosen by its size, where it may be another."""
        candidates = tuple(
            tuple(tuple(s for s in sources if s.sign not in _CHOICES) or sources for sources in of)
            for of in self.candidates
        )
        return replace(self, candidates=candidates)

    def unexplained(
        self, binding: Binding, seen: Sequence[tuple[Mapping[int, Fraction], str]]
    ) -> bool:
        """Whether a number that leads to the answer is another one, in another chain, than its
        source gives, and the prose of that chain says it: the rule does not read how it comes
        about.

        Args:
            seen: (values of the question, chain) of chains that state as much as this one.
        """
        on_way = set[int]().union(*(self.before(route, binding) for route in self.routes(binding)))
        for changes, text in seen:
            stated = self.stated_in(text, changes, _NOTHING)
            results = [one.result for one in stated]
            prose = {one.value for one in said_in(text, operations_of(self.inputs, text))}
            prose -= {changes.get(i, x.value) for i, x in enumerate(self.inputs)}
            for at in on_way:
                read = binding[at] if binding[at][0].sign not in _MODES else ()
                for k, source in enumerate(read):
                    value, number = self.value_of(source, changes, results), stated[at].numbers[k]
                    if number in prose and (value is None or not agree(value, number)):
                        return True
        return False

    def holds(self, at: int) -> bool:
        """Whether a statement's result is what its own numbers give."""
        return holds(self.operations[at], self.modulus)


def rounded(
    stated: Statement, value: Fraction | None, modulus: int | None, places: int = 0
) -> Fraction | None:
    """What a statement comes to as it writes it: modulo `modulus`, and to as many decimal places
    as its own result has, or `places` if they are more, where that is rounded."""
    if value is None:
        return None
    usual = stated.value(stated.numbers)
    if modulus is not None:
        return value % modulus
    if usual is not None and usual != stated.result and _near(stated, usual):
        unit = Fraction(1, 10**stated.places)
        fitting = (m for m in _MODES if to_multiple(usual, unit, m) == stated.result)
        finer = Fraction(1, 10 ** max(stated.places, places))
        return to_multiple(value, finer, next(fitting, "nearest"))
    return value


_MODES: tuple[Mode, ...] = ("nearest", "up", "down")


def to_multiple(value: Fraction, unit: Fraction, mode: str) -> Fraction:
    """A value rounded to a multiple of `unit`; half of one is rounded up."""
    if mode == "up":
        return math.ceil(value / unit) * unit
    return math.floor(value / unit + (Fraction(1, 2) if mode == "nearest" else 0)) * unit


def _as_shown(made: Fraction, stated: Statement, value: Fraction) -> Fraction:
    """A result as it is written, if that is the value rounded, in any way, to the places that are
    written."""
    close = abs(value - stated.result) < Fraction(1, 10**stated.places)
    return stated.result if close and (stated.places or made != value) else made


def _applied(source: Source, values: Sequence[Fraction]) -> Fraction | None:
    """The value of a formula; None for a division by zero."""
    if source.sign in _MODES:
        return to_multiple(values[0], source.scale, source.sign)
    if source.sign in _RULES:
        test, (x, limit) = _RULES[source.sign], source.of[:2]
        as_told = test(values[0], values[1]) == test(x.value, limit.value)
        return values[2] if as_told else next(iter(values[3:]), None)
    match source.sign:
        case "max":
            return max(values)
        case "min":
            return min(values)
        case "apart":
            return max(values) - min(values)
        case "sum" | "mean":
            return Fraction(sum(values), len(values) if source.sign == "mean" else 1)
    return apply(source.sign, *values)


_RULES = {"reaches": operator.ge, "exceeds": operator.gt}


def apply(sign: str, a: Fraction, b: Fraction) -> Fraction | None:
    """The value of an operation; None for a division by zero."""
    match sign:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "%":
            return a * b / 100
        case _:
            return a / b if b else None


def agree(value: Fraction, shown: Fraction) -> bool:
    """Whether a number is a value, to the decimal places that it shows."""
    places = len(f"{float(shown):.10f}".rstrip("0").partition(".")[2])
    return abs(value - shown) <= (Fraction(1, 2 * 10**places) if places else 0)


def holds(stated: Statement, modulus: int | None) -> bool:
    """Whether a statement is true of the numbers that it states, to the places of its result."""
    value = stated.value(stated.numbers)
    if value is None:
        return False
    value = value if modulus is None else value % modulus
    return value == stated.result or _near(stated, value)


def _near(stated: Statement, value: Fraction) -> bool:
    """Whether a result is the value rounded, to its places, in any way."""
    close = abs(value - stated.result) < Fraction(1, 10**stated.places)
    return close and (stated.about or (value * 10**stated.places).denominator > 1)


def inputs_of(question: str, options: Sequence[Option] = ()) -> tuple[Input, ...]:
    """The numbers of a question, in digits or words, but for the N of "mod N" and those of its
    options.

    One number of the same things that is said twice ("3 boxes … the 3 boxes") is one input.
    """
    for option in options:
        question = (
            f"{question[: option.at]}{'_' * (option.end - option.at)}{question[option.end :]}"
        )
    text = plain(question)
    moduli = {m.start(1) for m in MODULUS.finditer(text)}
    found = [(m.span(), as_number(m.group())) for m in numbers(text) if m.start() not in moduli]
    found += [(m.span(), Fraction(WORDS.index(m[1].lower()))) for m in _WORD.finditer(text)]
    given: dict[object, Input] = {}
    for span, value in sorted(found):
        name = _name(text, span[0])
        percent = _PERCENT.match(text, span[1]) is not None
        behind = None if name or percent else _THING.match(text, span[1])
        thing = _noun(behind[1]) if behind else None
        of = (value, thing) if thing else span
        known = given.get(of)
        given[of] = (
            replace(known, also=(*known.also, span))
            if known
            else Input(*span, value, name, percent, (), thing, text[span[0]].isalpha())
        )
    return tuple(given.values())


_NO_NOUN = frozenset(
    re.findall(
        r"\w+",
        "of at in on to each more and or for with from the an by per is are was were less fewer as "
        "times if when than then percent apiece every extra other others so but that which who has "
        "will have had gets gives out off away again left total altogether now new old",
    )
)


def _noun(word: str) -> str | None:
    return None if word.lower() in _NO_NOUN else word.lower().removesuffix("s")


def _named_one(sources: Sequence[Source], inputs: Sequence[Input], text: str) -> tuple[Source, ...]:
    """The sources without those inputs that the text does not mean: of inputs of one value, it
    names the thing of one alone behind the number."""
    nouns = {s.at: inputs[s.at].thing for s in sources if s.kind == "input"}
    if len(nouns) < 2 or None in nouns.values() or len(set(nouns.values())) < len(nouns):
        return tuple(sources)
    value = re.escape(f"{float(sources[0].value):g}")
    behind = re.findall(rf"(?<![\w.,]){value}\s+([a-zA-Z]{{2,}})", text)
    said = {_noun(word) for word in behind}
    meant = [at for at, noun in nouns.items() if noun in said]
    return tuple(s for s in sources if s.kind != "input" or len(meant) != 1 or s.at in meant)


def _name(question: str, at: int) -> str | None:
    named = _NAME.search(question, max(0, at - _NEAR), at)
    return named[1] if named else None


def as_number(text: str) -> Fraction:
    """
    Raises:
        NotExecutable: the text is no plain number, or one that is too long to be read.
    """
    if len(text) > MOST_CHARACTERS:
        raise NotExecutable(NUMBER_TOO_LARGE)
    if not _PLAIN_NUMBER.fullmatch(text.strip()):
        raise NotExecutable(NO_NUMBER)
    try:
        return Fraction(text.replace(",", ""))
    except (ValueError, ZeroDivisionError):
        raise NotExecutable(NO_NUMBER) from None


def operations_of(
    inputs: Sequence[Input], reasoning: str, to_end: bool = False
) -> tuple[Statement, ...]:
    """The statements of a reasoning, in order.

    Args:
        to_end: whether an operation without a result that it ends in is one, too.
    """
    stated = statements(reasoning, {i.name for i in inputs if i.name})
    end = open_end(reasoning, stated) if to_end else None
    return (*stated, end) if end else tuple(stated)


def _left_open(stated: Sequence[Statement], reasoning: str, end: Fraction) -> bool:
    """Whether the last statement leaves its result to the answer: that is the answer, or no number
    of the text is."""
    *before, last = stated
    told = {one.result for one in before} | {one.value for one in said_in(reasoning, before)}
    return agree(last.result, end) or (bool(before) and end not in told)


def _sources(
    inputs: Sequence[Input],
    operations: Sequence[Statement],
    said: Mapping[int, Sequence[Source]],
    at: int,
    k: int,
) -> Iterator[Source]:
    """The places that a number of a statement may come from, the likeliest first."""
    stated = operations[at]
    number = stated.numbers[k]
    if stated.said:
        yield from said[at]
        return
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


_CHOICES = {
    "max": re.compile(r"\b(?:larg|bigg|great|high|long|old|heavi|tall)e(?:st|r)\b", re.I),
    "min": re.compile(r"\b(?:small|low|short|young|light|cheap)e(?:st|r)\b", re.I),
}


def _chosen(
    inputs: Sequence[Input], results: Sequence[Source], number: Fraction, words: str
) -> list[Source]:
    """The neighbouring numbers of the question, or the last two or three results, of which a number
    is the largest or the smallest, where the words say so."""
    given = [Source("input", i, x.value) for i, x in enumerate(inputs)]
    groups = [given[a:b] for a, b in combinations(range(len(given) + 1), 2)]
    groups += [results[-n:] for n in (2, 3) if n <= len(results)]
    found = []
    for sign, said in _CHOICES.items():
        for of in groups if said.search(words) else ():
            made = Source("formula", value=number, sign=sign, of=tuple(of))
            if len(of) > 1 and _applied(made, [x.value for x in of]) == number:
                found.append(made)
    return found


def _with_rules(
    sources: Sequence[Source],
    limits: Sequence[Limit],
    inputs: Sequence[Input],
    before: Sequence[Statement],
) -> tuple[Source, ...]:
    """The places of a number, and those that a rule of the text chooses from: it comes from one
    place while a number that the text names compares to the limit as it does, else it is another
    number of the question or of the rule's sentences, or one that the text does not say."""
    here = next((s for s in sources if s.kind in ("input", "constant")), None)
    if here is None:
        return tuple(sources)
    leaves = [Source("result", i, one.result) for i, one in enumerate(before)]
    leaves += [Source("input", i, x.value) for i, x in enumerate(inputs)]
    made: list[Source] = []
    for limit in limits:
        if limit.value == here.value:
            continue
        bound = next((s for s in leaves if s.value == limit.value), None)
        bound = bound or Source("constant", value=limit.value)
        others = [s for s in leaves if s.kind == "input"]
        given = {s.value for s in others}
        others += [Source("constant", value=x) for x in limit.near if x not in given]
        for x in leaves:
            taken = {limit.value, here.value, x.value}
            if x.value in limit.near and len(taken) == 3:
                other = [(), *((s,) for s in others if s.value not in taken)]
                made += [
                    Source("formula", value=here.value, sign=sign, of=(x, bound, here, *of))
                    for of in other
                    for sign in _RULES
                ]
    return (*sources, *made)


def _combining(
    sign: Combination,
    many: int | None,
    span: Span,
    operations: Sequence[Statement],
    candidates: Sequence[Sequence[Sequence[Source]]],
    end: Fraction,
) -> tuple[tuple[Statement, ...], tuple[Source, ...]]:
    """A last statement that combines results which nothing need come from, and what it may combine:
    those that are the answer, if they are several, and the last ones of which it is true. Nothing
    where fewer than two are left over, so that the words are of something else.

    Raises:
        NotExecutable: no results combine to the answer.
    """
    used = {
        leaf.at
        for of in candidates
        for sources in of
        for leaf in sources[0].leaves()
        if leaf.kind == "result" and all(leaf in s.leaves() for s in sources)
    }
    free = [
        Source("result", i, one.result)
        for i, one in enumerate(operations)
        if i not in used and one.name is None
    ]
    if len(free) < 2:
        return (), ()
    same = [one for one in free if one.value == end][-(many or len(free)) :]
    groups = [tuple(same)] if len(same) > 1 and sign in ("mean", "min", "max") else []
    for n in [many] if many else [2, len(free)]:
        groups += [of[::-1] for of in combinations(free[::-1], n)]
    made = [Source("formula", value=end, sign=sign, of=of) for of in dict.fromkeys(groups) if of]
    made = [one for one in made if _applied(one, [of.value for of in one.of]) == end]
    if not made:
        raise NotExecutable(NOT_COVERED)
    at = (span[1], span[1])
    last = Statement(*span, (end,), (False,), end, at, 0, said=True, open=True)
    return (last,), tuple(made[:_GROUPS])


_GROUPS = 4
"""Most groups of results that a text may combine."""


def _made_before(
    inputs: Sequence[Input],
    before: Sequence[Statement],
    number: Fraction,
    start: int,
    left: Sequence[Statement],
) -> list[Source]:
    """The operations that give a number, if the text has left one of them open before."""
    leaves = [Source("input", i, x.value) for i, x in enumerate(inputs)]
    leaves += [Source("result", i, one.result) for i, one in enumerate(before)]
    for one in left:
        if one.result == number and one.end <= start:
            return _pairs(number, [leaf for leaf in leaves if leaf.value in one.numbers])
    return []


def forms_of(given: Input) -> Sequence[tuple[Fraction | int, Fraction | int]]:
    return ((0, 1), *_RATES) if given.percent else ((0, 1),)


def program_of(question: str, reasoning: str, answer: str) -> Program:
    """The program that a reasoning states.

    An answer of several numbers has one program for each, of the same statements. One that names an
    option ends in the value of the option, or in that to which the option is nearest, if the
    reasoning says so.

    Raises:
        NotExecutable: the rule cannot read the chain as a program; the exception has the reason.
    """
    first, *others = _programs_of(question, reasoning, answer)
    idle = _idle((first, *others), reasoning)
    return replace(first, others=tuple(replace(one, idle=idle) for one in others), idle=idle)


def _programs_of(question: str, reasoning: str, answer: str) -> list[Program]:
    """A program for each number of the answer."""
    if several := numbers_of(answer):
        programs = [_program_of(question, reasoning, as_number(x)) for x in several]
        places = [[(o.start, o.end) for o in one.operations] for one in programs]
        if any(of != places[0] for of in places):
            raise NotExecutable(NOT_COVERED)
        return programs
    return [_of_one_number(question, reasoning, answer)]


def _idle(programs: Sequence[Program], reasoning: str) -> bool:
    """Whether the text computes something that nothing needs: what it makes of it may stand in
    words. Its last result needs no use, nor does one that is said again, a check that ends in a
    number of the question, or a way that the text says it does not go by."""
    operations = programs[0].operations
    used = {
        leaf.at
        for one in programs
        for numbers in one.candidates
        for source in chain.from_iterable(numbers)
        for leaf in source.leaves()
        if leaf.kind == "result"
    }
    needed = {one.answer for one in programs}
    needed |= {a + b * x.value for x in programs[0].inputs for a, b in forms_of(x)}
    needed |= {operations[i].result for i in used}  # said again
    left = [
        i
        for i, one in enumerate(operations[:-1])
        if i not in used and not one.open and one.name is None and one.result not in needed
    ]
    return bool(left) and way_that_counts(reasoning, operations) is None


def _of_one_number(question: str, reasoning: str, answer: str) -> Program:
    options = options_of(question)
    end = value_named(options, answer)
    if end is None:
        end = as_number(answer)
        if answer.strip() in _numbered_options(question):
            raise NotExecutable(AN_OPTION)
        if all(option.value != end or option.label.isdigit() for option in options):
            return _program_of(question, reasoning, end)
    made = _program_of(question, reasoning, end, options)
    results = {one.result for one in made.operations}
    if answer.strip().isdigit() and end not in results and as_number(answer) in results:
        raise NotExecutable(AN_OPTION)
    last = made.operations[-1].result
    if end not in results and all(last != option.value for option in options):
        if not says_nearest(reasoning) or picked(options, last, True) != end:
            raise NotExecutable(NOT_COVERED)
        made = replace(made, answer=last)
    return replace(made, options=options, nearest=says_nearest(reasoning))


def inputs_alone(question: str) -> Program:
    """A program of the numbers of a question but for times and dates, without any operation: all
    other values of theirs are possible.

    Raises:
        NotExecutable: the question has no number, or one that is too long to be read.
    """
    if _LONG.search(question):
        raise NotExecutable(NUMBER_TOO_LARGE)
    fixed = [m.span() for m in _TIME_OR_DATE.finditer(question)]
    found = inputs_of(question, options_of(question))
    inputs = tuple(one for one in found if not touched(fixed, one.start, one.end))
    if not inputs:
        raise NotExecutable(NO_INPUT)
    return Program(inputs, (), (), None, Fraction(0))


def _program_of(
    question: str, reasoning: str, end: Fraction, options: Sequence[Option] = ()
) -> Program:
    if any(_LONG.search(text) for text in (question, reasoning)) or end >= 10**MOST_DIGITS:
        raise NotExecutable(NUMBER_TOO_LARGE)
    reasoning = without_options(reasoning, options)
    inputs = inputs_of(question, options)
    if not inputs:
        raise NotExecutable(NO_INPUT)
    stated = operations_of(inputs, reasoning, True)
    if stated and stated[-1].open and not _left_open(stated, reasoning, end):
        stated = stated[:-1]
    limits, prose = limits_in(reasoning), said_in(reasoning, stated)
    if stated:
        said = _results_in_prose(inputs, stated, prose, end, plain(reasoning), limits)
    else:
        said = _prose_alone(inputs, reasoning, prose, [x for x in limits if x.value != end])
        if all(one.value != end for one, _ in said):
            raise NotExecutable(NO_OPERATION)
    operations = _ordered(stated, [one for one, _ in said])
    if not any(one.result == end or (one.open and agree(one.result, end)) for one in operations):
        for value in (one.result for one in operations):
            if end in (value * 100, value / 100) or (value % 1 > 0 and abs(value - end) < 1):
                raise NotExecutable(NOT_COVERED)
    by_place = {one.start: sources for one, sources in said}
    of_said = {i: by_place[o.start] for i, o in enumerate(operations) if o.said}
    text = plain(reasoning)
    left = left_open(reasoning, operations)
    ends = [0, *(one.end for one in operations)]
    results = [Source("result", i, one.result) for i, one in enumerate(operations)]
    candidates = tuple(
        tuple(
            _with_rules(
                _named_one(
                    (
                        *_sources(inputs, operations, of_said, at, k),
                        *_chosen(
                            *(inputs, () if one.said else results[:at]),
                            *(number, text[ends[at] : one.end]),
                        ),
                    )
                    or (*_made_before(inputs, operations[:at], number, one.start, left), constant),
                    inputs,
                    text[ends[at] : one.end],
                ),
                [limit for limit in limits if limit.start < one.end],
                inputs,
                operations[:at],
            )
            for k, number in enumerate(one.numbers)
            for constant in (Source("constant", value=number),)
        )
        for at, one in enumerate(operations)
    )
    if claim := combination(reasoning, stated):
        last, made = _combining(*claim, operations, candidates, end)
        operations, candidates = (*operations, *last), (*candidates, *((made,) for _ in last))
    found = MODULUS.search(plain(question))
    modulus = int(found[1]) if found else None
    places = frozenset(one.place for one, _ in said)
    return Program(inputs, operations, candidates, modulus, end, places)


MOST_CHARACTERS = 300
"""Longest text that is read as a number, so that a float can be written for it."""
_PLAIN_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d*)?(?:/\d+)?")
_OPTION = re.compile(r"(?:\A|[\s(])(?:option )?([1-9])[):](?=\s*[^\s\d]?\d)", re.IGNORECASE)


def _numbered_options(question: str) -> list[str]:
    """The numbers of a question's options, as in "1) 12 2) 15"; none without two that follow each
    other from 1."""
    found = _OPTION.findall(question)
    counted = [str(i) for i in range(1, len(found) + 1)]
    return counted if found == counted and len(found) > 1 else []


_LONG = re.compile(rf"[\d,]{{{MOST_DIGITS + 1}}}")


def _ordered(stated: Sequence[Statement], said: Sequence[Said]) -> tuple[Statement, ...]:
    return tuple(sorted((*stated, *(one.stated for one in said)), key=lambda s: s.start))


def _results_in_prose(
    inputs: Sequence[Input],
    stated: Sequence[Statement],
    said: Sequence[Said],
    end: Fraction,
    text: str,
    limits: Sequence[Limit] = (),
) -> list[tuple[Said, list[Source]]]:
    """The numbers of the prose that are none of the question, no earlier result, no factor of
    conversion and no limit, with the operations that they may come from.

    Raises:
        NotExecutable: one of them leads to nothing that is stated and comes from nothing that is.
    """
    given = {shift + scale * i.value for i in inputs for shift, scale in forms_of(i)}
    leaves = [Source("input", i, x.value) for i, x in enumerate(inputs)]
    used = {number for one in stated for number in one.numbers}
    ahead = Counter(one.result for one in stated)
    told = {one.result for one in stated}
    known = {*given, *told, Fraction(1)}
    found: list[tuple[Said, list[Source]]] = []
    n = closed = 0
    compared = {limit.start for limit in limits if limit.value not in used}
    for one in sorted((*stated, *said), key=lambda s: s.start):
        value = one.result if isinstance(one, Statement) else one.value
        if isinstance(one, Said):
            if one.start in compared and value != end:
                continue
            sources = _rounding(one, leaves, n) if one.rounds or value not in known else []
            if value in told and (
                made := _chosen((), leaves[len(inputs) :], value, text[closed : one.start])
            ):
                found.append((one, made))
                closed = one.end
                leaves.append(Source("result", n, value))
                n += 1
                continue
            last = value == end and value not in told and one is _last(said, end)
            if value == end and ahead[end] and n and leaves[-1].value not in {*used, end}:
                sources = [s for s in _formulas(one, leaves) if leaves[-1] in s.of]
            if not sources and value in known and not last:
                continue
            sources = sources or _formulas(one, leaves)
            if last:
                sources = [s for s in leaves if s.value == value] + sources
            if not sources and value not in used | CONVERSIONS:
                if any(value in limit.near for limit in limits):
                    continue  # of the branch of a rule that is not taken
                raise NotExecutable(NOT_COVERED)
            if not last:
                sources.append(Source("constant", value=value))
            elif not sources:
                raise NotExecutable(NOT_COVERED)
            if not last and value in CONVERSIONS and len(sources) == 1:
                continue
            found.append((one, sources))
        else:
            ahead[value] -= 1
        closed = one.end
        known |= {value, value * 100}
        leaves.append(Source("result", n, value))
        n += 1
    return found


def _prose_alone(
    inputs: Sequence[Input], reasoning: str, said: Sequence[Said], limits: Sequence[Limit]
) -> list[tuple[Said, list[Source]]]:
    """The numbers of a text without an equation that come from an operation on numbers of their
    sentence and the last one before it, or, where the text says so, are the sum of the latest
    results, each with these operations.

    Raises:
        NotExecutable: one of the others is no number of the question and no such result.
    """
    leaves = [Source("input", i, x.value) for i, x in enumerate(inputs)]
    compared = {limit.start for limit in limits}
    found: list[tuple[Said, list[Source]]] = []
    for i, one in enumerate(said):
        if one.start in compared:
            continue
        known = [leaf for leaf in leaves if leaf.value == one.value]
        before = i - len(one.near)
        here = {*one.near, *(x.value for x in said[max(0, before - 1) : before])}
        near = [leaf for leaf in leaves if leaf.value in here]
        of_them = {leaf for leaf in near if leaf.value in one.near}
        made = [s for s in _pairs(one.value, near) if of_them & {*s.of}]
        made += [s for s in _rounding(one, near, 0) if one.rounds]
        results = [leaf for leaf in leaves if leaf.kind == "result"]
        if _TOTAL.search(reasoning, said[i - 1].end if i else 0, one.start):
            new = [leaf for leaf in results if all(leaf.value != x.value for x in inputs)]
            sums = [of[-n:] for of in (new, results) for n in range(2, len(of) + 1)]
            made += [
                Source("formula", value=one.value, sign="sum", of=tuple(of))
                for of in sums
                if sum(leaf.value for leaf in of) == one.value
            ]
        if not made and not known and not any(one.value in limit.near for limit in limits):
            raise NotExecutable(NO_OPERATION)
        if made:
            leaves.append(Source("result", len(found), one.value))
            found.append((one, [*known, *made]))
    return found


_TOTAL = re.compile(r"\b(?:total|sum|add\w*|all|together|altogether)\b", re.IGNORECASE)


def _last(said: Sequence[Said], value: Fraction) -> Said | None:
    return next((one for one in reversed(said) if one.value == value), None)


_UNITS = tuple(Fraction(10) ** k for k in (3, 2, 1, 0, -1, -2))


def _rounding(one: Said, leaves: Sequence[Source], n: int) -> list[Source]:
    """The ways in which a number is an earlier one, rounded."""
    found = []
    for leaf in reversed(leaves):
        if not one.rounds and (leaf.value.denominator == 1 or abs(leaf.value - one.value) >= 1):
            continue
        for mode in one.rounds or _MODES:
            found += [
                Source("formula", value=one.value, scale=unit, sign=mode, of=(leaf,))
                for unit in _UNITS
                if abs(leaf.value - one.value) < unit <= max(1, 10 * abs(one.value))
                and to_multiple(leaf.value, unit, mode) == one.value
            ]
    return found


def _formulas(one: Said, leaves: Sequence[Source]) -> list[Source]:
    """The operations on two earlier numbers that give a number, on those of its sentence first."""
    near = [leaf for leaf in leaves if leaf.value in one.near]
    factors = [Source("constant", value=value) for value in sorted(CONVERSIONS)]
    return list(dict.fromkeys((*_pairs(one.value, near), *_pairs(one.value, [*leaves, *factors]))))


def _pairs(value: Fraction, leaves: Sequence[Source]) -> list[Source]:
    found = []
    for a, b in permutations(leaves, 2):
        if a.kind == b.kind == "constant":
            continue
        for sign in "+-*/%":
            if sign in "+*%" and leaves.index(a) > leaves.index(b):
                continue
            if sign in "+-" and "constant" in (a.kind, b.kind):
                continue
            made = Source("formula", value=value, sign=sign, of=(a, b))
            if _applied(made, (a.value, b.value)) == value:
                found.append(made)
    return found
