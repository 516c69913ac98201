"""What may be altered of a question and of a chain that is a program, and what must follow.

A question with options gets others whenever the answer may be another: the value that the program
then ends in at a drawn place (where the model reads its old chain, the old value at its old place),
the old value, those to which other ways of binding the numbers lead, and values as far from it as
the old options are from each other. So neither an old label nor the old value is right by itself.

After Geiger et al. 2021 (Causal abstractions of neural networks, arXiv 2106.02997): the program and
the model are altered alike, and their answers are compared. Numbers of the question are moved near,
far, in pairs and all at once; a stated result is changed and what follows is executed on it; and
what the program does not depend on is altered, under which nothing may change.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Literal

from faithscope.interventions.answers import offered, picked
from faithscope.interventions.calculation import NUMBER
from faithscope.interventions.number_words import in_words as worded
from faithscope.interventions.program import WORDS, Input, Program
from faithscope.interventions.sentences import Span

Kind = Literal["near", "far", "pair", "all", "result", "words", "order", "restated"]
_FURTHEST = 9
"""Greatest difference between a number and one that is near it."""
_LISTED = re.compile(r"(?: [a-z]+)?(?:,|,? and) [$€£]?")
"""What stands between two numbers of a list."""
_DRAWS = 60
"""Numbers that are drawn before a change is given up."""
_TRIED = 6
"""Numbers that fit, of which one is taken."""
_WAYS = 32
"""Ways of binding the numbers whose answers may be among the options."""
PAIRS = 2
WORDINGS = 2
"""Most pairs of numbers that are moved together, and most other wordings of a question."""
_PEOPLE = (
    "Ann Mary Lisa Julia Emma Sarah Anna Laura Maria Emily Jane Kate Alice Eve Rachel Lucy Sophie "
    "Olivia Mia Nina Clara Diane Susan Karen Betty Helen Ruth Janet Natalia Weng Tina Carla Amy",
    "Bob Tom John Mark Peter Paul James David Dan Jack Tim Ben Sam Adam Carl Eric Frank George "
    "Henry Ken Luke Mike Nick Oscar Ralph Steve Toby Victor Walter Joe Jim Bill Josh Randy Alan",
)
_THINGS = (
    "apple orange banana pear lemon peach cookie muffin cupcake pancake",
    "pen pencil marker crayon eraser notebook ruler sticker stamp",
    "marble bead button coin shell stone card ball toy doll",
    "dog cat rabbit chicken cow goat horse duck",
)


@dataclass(frozen=True)
class Alteration:
    """One question and how much of a chain is put after it, for the model to go on from."""

    kind: Kind
    question: str
    chain: str | None = None
    """The chain that is put after the question; None if the model writes it anew."""
    whole: bool = False
    """Whether the chain is whole, so that only the answer is read."""
    inputs: Mapping[int, Fraction] = field(default_factory=dict)
    """Input -> the value that it has in the question."""
    forced: Mapping[int, Fraction] = field(default_factory=dict)
    """Statement -> the result that the chain gives it."""


def alterations(
    program: Program, question: str, reasoning: str, steps: Sequence[Span], seed: int | str
) -> list[Alteration]:
    """Every alteration of a question and its chain, in a fixed order.

    Args:
        steps: half-open character spans of the chain's steps, in order, without overlap.
        seed: draws values, pairs and words.
    """
    rng = random.Random(f"alterations-{seed}")
    movable = _movable(program, question)
    moves = list(_alone(program, movable, rng))
    n = len(movable)
    pairs = list(combinations(movable, 2))
    for pair in rng.sample(pairs, min(PAIRS, len(pairs))) if n > 2 else []:
        if two := _far(program, pair, rng):
            moves.append(("pair", two))
    if (every := _far(program, movable, rng)) and n > 1:
        moves.append(("all", every))
    made = []
    for kind, move in moves:
        other = _asked(program, question, move, {}, rng)
        made.append(Alteration(kind, other, inputs=move))
        if kind in ("near", "far"):
            kept = _asked(program, question, move, None, rng) if program.options else other
            made.append(Alteration(kind, kept, reasoning, True, inputs=move))
    for at, stated in enumerate(program.operations):
        for value in _other_results(program, at, rng):
            a, b = stated.result_span
            cut = reasoning[:a] + written(abs(value), reasoning[a:b]) + reasoning[b : stated.end]
            other = _asked(program, question, {}, {at: value}, rng)
            made.append(Alteration("result", other, cut, forced={at: value}))
    made += [Alteration("words", other) for other in _reworded(question, rng)]
    same: tuple[tuple[Kind, str | None], ...] = (
        ("order", _reordered(program, reasoning, steps)),
        ("restated", _restated(program, reasoning)),
    )
    made += [Alteration(kind, question, text, True) for kind, text in same if text is not None]
    return made


def moved(program: Program, question: str, n: int, seed: int | str) -> list[Alteration]:
    """Questions with another value of one number, near or far: `n` drawn among all such, or as many
    as there are.

    Args:
        program: what the chain states of the question, or only the question's numbers
            (`inputs_alone`), whose options then stay as they are.
    """
    rng = random.Random(f"moved-{seed}")
    moves = list(_alone(program, _movable(program, question), rng))
    made: dict[str, Alteration] = {}
    for kind, move in rng.sample(moves, len(moves)):
        other = _asked(program, question, move, {}, rng)
        made.setdefault(other, Alteration(kind, other, inputs=move))
    return list(made.values())[:n]


def _alone(
    program: Program, movable: Sequence[int], rng: random.Random
) -> Iterator[tuple[Kind, dict[int, Fraction]]]:
    """Another value of one input, near its own and far from it, for each input that has one."""
    for i in movable:
        near = _near(program, i, rng)
        far = _far(program, [i], rng, away=near)
        if near:
            yield "near", near
        if far:
            yield "far", far


def _movable(program: Program, question: str) -> list[int]:
    """Inputs but for those that count the numbers which the question lists, as in "77, 89 and 81 in
    three tests": with another one it would contradict itself."""
    given = program.inputs
    lists = [1]
    for a, b in pairwise(given):
        if _LISTED.fullmatch(question, a.end, b.start):
            lists[-1] += 1
        else:
            lists.append(1)
    return [i for i, x in enumerate(given) if x.value not in lists or x.value <= 2]


def _asked(
    program: Program,
    question: str,
    move: Mapping[int, Fraction],
    forced: Mapping[int, Fraction] | None,
    rng: random.Random,
) -> str:
    """The question with other values of some inputs and, if it has options, others of these.

    Args:
        forced: the results that the chain is given; None if it is the old chain, whole.
    """
    options, old = program.options, program.answer
    if not options:
        return with_values(question, program.inputs, move)
    due: list[Fraction] = []
    for binding in program.bindings[:_WAYS]:
        results = program.run(binding, move, forced or {})
        ends = program.routes(binding) or (len(results) - 1,)
        due += [x for x in (results[end] for end in ends) if x is not None and _as_short(x, old)]
    values = [option.value for option in options]
    own = picked(options, old, program.nearest)
    at = values.index(own) if own is not None else 0
    first = [old, *due] if forced is None else [*due[:1], old, *due[1:]]
    place = at if forced is None else rng.randrange(len(options))
    new = offered(options, first, place)
    spans = [((o.start, o.end), value) for o, value in zip(options, new, strict=True)]
    return with_values(question, program.inputs, move, spans)


def with_values(
    text: str,
    inputs: Sequence[Input],
    values: Mapping[int, Fraction],
    more: Sequence[tuple[Span, Fraction]] = (),
) -> str:
    """A question with other values of some inputs, and of `more` places."""
    places = [
        (span, value)
        for i, value in values.items()
        for span in ((inputs[i].start, inputs[i].end), *inputs[i].also)
    ] + [*more]
    for (start, end), value in sorted(places, reverse=True):
        text = text[:start] + written(value, text[start:end]) + text[end:]
    return text


def written(value: Fraction, like: str) -> str:
    """A number in words if another is, else with as many decimal places, and with commas between
    thousands, as that has."""
    if like[0].isalpha():
        whole = value.denominator == 1 and 0 <= value < 1_000_000
        word = worded(int(value)) if whole else str(value)
        return word.capitalize() if like[0].isupper() else word
    places = len(like.partition(".")[2])
    comma = "," if "," in like else ""
    return f"{float(value):{comma}.{places}f}"


def _near(program: Program, at: int, rng: random.Random) -> dict[int, Fraction]:
    given, up = program.inputs[at], rng.choice((1, -1))
    unit = _unit(given.value)
    for distance in range(1, _FURTHEST + 1):
        for sign in (up, -up):
            move = {at: given.value + sign * distance * unit}
            if _fits(program, move):
                return move
    return {}


def _far(
    program: Program,
    at: Sequence[int],
    rng: random.Random,
    away: Mapping[int, Fraction] | None = None,
) -> dict[int, Fraction]:
    """Other values of some inputs, drawn among those of as many digits; of one input the furthest
    of three that fit."""
    fitting = []
    for _ in range(_DRAWS):
        move = {i: _drawn(x.value, rng, in_words=x.word) for i in at for x in (program.inputs[i],)}
        if move != away and _fits(program, move):
            fitting.append(move)
        if len(fitting) == (3 if len(at) == 1 else 1):
            break
    return max(fitting, key=lambda m: _distance(program, m), default={})


def _distance(program: Program, move: Mapping[int, Fraction]) -> Fraction:
    return sum((abs(v - program.inputs[i].value) for i, v in move.items()), Fraction(0))


def _unit(value: Fraction) -> Fraction:
    """The value of a number's last digit."""
    return Fraction(1, 10 ** len(_digits(value).partition(".")[2]))


def _digits(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"


def _drawn(
    value: Fraction, rng: random.Random, below: bool = False, in_words: bool = False
) -> Fraction:
    """Another number, a lesser one if there is one, with as many digits before and behind the
    point; in words one that is a single word."""
    unit = _unit(value)
    whole = len(_digits(value).partition(".")[0])
    least = 0 if whole == 1 else 10 ** (whole - 1)
    most = 10**whole - unit
    if in_words:
        least, most = max(least, 2), min(most, len(WORDS) - 1)
    if below and value > least:
        most = value - unit
    steps = int((most - least) / unit)
    while (new := least + rng.randint(0, steps) * unit) == value:
        pass
    return Fraction(new)


def _fits(program: Program, move: Mapping[int, Fraction]) -> bool:
    """Whether numbers are other ones of as many digits with which all results are possible and
    stay whole and not negative where they were."""
    for i, value in move.items():
        given = program.inputs[i]
        if value < 0 or value == given.value or (given.percent and value > 100 > given.value):
            return False
        if len(_digits(value)) != len(_digits(given.value)):
            return False
        if given.word and not 2 <= value < len(WORDS):
            return False
    return _sound(program, program.run(program.binding, move))


def _sound(program: Program, results: Sequence[Fraction | None]) -> bool:
    usual = program.run(program.binding)
    return all(
        new is not None and (new >= 0 or old < 0) and _as_short(new, old)
        for old, new in zip(usual, results, strict=True)
        if old is not None
    )


def _as_short(new: Fraction, old: Fraction) -> bool:
    """Whether a result has no more than two decimal places, or none, if another one has so."""
    return all((new * unit).denominator == 1 for unit in (1, 100) if (old * unit).denominator == 1)


def _other_results(program: Program, at: int, rng: random.Random) -> Iterator[Fraction]:
    """Two other results of a statement on which what follows can be executed: one that is near, and
    one that is far, of as many digits; of the answer, one below what leads to it if there is one.
    None of a factor that the text alone gives, nor of what is left open."""
    stated = program.operations[at]
    if stated.open or all(source.kind == "constant" for source in program.binding[at]):
        return
    size, sign = abs(stated.result), (-1 if stated.result < 0 else 1)
    unit = _unit(size)
    up = rng.choice((1, -1))
    steps = (s * k * unit for k in range(1, _FURTHEST + 1) for s in (up, -up))
    close = (size + step for step in steps if len(_digits(size + step)) == len(_digits(size)))
    near = next((x for x in close if _goes_on(program, at, x * sign)), None)
    if near is not None:
        yield near * sign
    last = at == len(program.operations) - 1
    drawn = [_drawn(size, rng, below=last) for _ in range(_DRAWS)]
    fitting = [x for x in drawn if x != near and _goes_on(program, at, x * sign)][:_TRIED]
    if fitting:
        yield sign * max(fitting, key=lambda x: abs(x - size))


def _goes_on(program: Program, at: int, value: Fraction) -> bool:
    return _sound(program, program.run(program.binding, {}, {at: value}))


def _reworded(question: str, rng: random.Random) -> Iterator[str]:
    """The question with other first names, and other everyday things that are counted."""
    words = set(re.findall(r"\w+", question.lower()))
    for _ in range(WORDINGS):
        other: dict[str, str] = {}
        for people in _PEOPLE:
            names = people.split()
            free = [n for n in names if n.lower() not in words]
            there = [n for n in names if re.search(rf"\b{n}\b", question)]
            other |= dict(zip(there, rng.sample(free, len(there)), strict=False))
        for things in _THINGS:
            nouns = things.split()
            there = [n for n in nouns if words & {n, _plural(n)}]
            free = [n for n in nouns if n not in there and n[0] not in "aeiou"]
            if len(there) > len(free):
                continue
            for old, new in zip(there, rng.sample(free, len(there)), strict=True):
                other |= {_plural(old): _plural(new)}
                if old[0] not in "aeiou":
                    other[old] = new
        if not other:
            return
        pattern = "|".join(map(re.escape, sorted(other, key=len, reverse=True)))
        yield re.sub(rf"\b(?:{pattern})\b", lambda m, other=other: other[m[0]], question)


def _plural(noun: str) -> str:
    return f"{noun}es" if noun.endswith(("ch", "sh", "s")) else f"{noun}s"


def _reordered(program: Program, reasoning: str, steps: Sequence[Span]) -> str | None:
    """The chain with two neighbouring steps exchanged of which neither needs the other; None
    without such steps."""
    operations = program.operations
    for (a, b), (c, d) in pairwise(steps):
        one = {i for i, o in enumerate(operations) if a <= o.start < b}
        two = {i for i, o in enumerate(operations) if c <= o.start < d}
        places = [source for i in two for of in program.candidates[i] for source in of]
        needed = {source.at for source in places if source.kind == "result"}
        if one and two and not needed & one and max(two) < len(operations) - 1:
            first, gap, second = reasoning[a:b], reasoning[b:c], reasoning[c:d]
            (one_text, one_end), (two_text, two_end) = _blank_apart(first), _blank_apart(second)
            return f"{reasoning[:a]}{two_text}{one_end}{gap}{one_text}{two_end}{reasoning[d:]}"
    return None


def _blank_apart(text: str) -> tuple[str, str]:
    bare = text.rstrip()
    return bare, text[len(bare) :]


def _restated(program: Program, reasoning: str) -> str | None:
    """The chain with the numbers of every sum and product of two exchanged; None without one."""
    text = reasoning
    for stated in reversed(program.operations):
        if len(stated.numbers) == 2 and stated.signs in ({"+"}, {"*"}):
            side = re.compile(rf"({NUMBER})([^\w=]*(?:\\(?:times|cdot)\s*)?)({NUMBER})(?![\d%])")
            left = side.match(text, stated.start)
            if left is not None and left[1] != left[3]:
                text = f"{text[: left.start()]}{left[3]}{left[2]}{left[1]}{text[left.end() :]}"
    return None if text == reasoning else text
