"""Sequential arithmetic: chained operations (SLRC, 4.4: three or four), and short word problems.

The paper gives no items. Ours are plain instructions and small stories; every intermediate result
is a whole number from 1 to 999. The word problems are not the paper's: they are so short that a
model of 135M parameters writes a chain of a few steps and ends it. After three worked examples it
also gets most of them right.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from faithscope.experiments.data.tasks.kinds import number_task
from faithscope.experiments.data.tasks.task import generated, words
from faithscope.interventions.trace import Question, Sent

LARGEST = 999
LENGTHS, LONGER = (3, 4), (5, 6)

EXAMPLES = (
    ("Sam", "nuts", 4, (3, 2)),
    ("Zoe", "rings", 6, (2, 5)),
    ("Kim", "balls", 5, (4, 3)),
)
"""Name, things, number at first and gains of each worked example."""

_WORDS = words("arithmetic")


@dataclass(frozen=True)
class Operation:
    """One arithmetic operation: `+`, `-`, `*` or `/` with a whole number."""

    sign: str
    number: int

    def __call__(self, value: int) -> int:
        """The result of the operation on `value`; a quotient is rounded down."""
        if self.sign == "/":
            return value // self.number
        if self.sign == "*":
            return value * self.number
        return value + self.number if self.sign == "+" else value - self.number


def result(start: int, operations: Sequence[Operation]) -> int:
    """The result of applying `operations` to `start` in order."""
    for operation in operations:
        start = operation(start)
    return start


def slips(start: int, operations: Sequence[Operation]) -> tuple[int, ...]:
    """Wrong results of a chain: with one operation dropped, or replaced by its opposite."""
    opposite = {"+": "-", "-": "+", "*": "/", "/": "*"}
    results: list[int] = []
    for i, operation in enumerate(operations):
        turned = replace(operation, sign=opposite[operation.sign])
        results.append(result(start, [*operations[:i], *operations[i + 1 :]]))
        results.append(result(start, [*operations[:i], turned, *operations[i + 1 :]]))
    right = result(start, operations)
    return tuple(dict.fromkeys(v for v in results if v != right))


def draw(rng: random.Random, length: int) -> Question:
    """A chain of `length` operations, no two successive ones with one sign."""
    start = rng.randint(5, 40)
    value, operations = start, []
    while len(operations) < length:
        operation = _operation(rng, value, operations[-1].sign if operations else "")
        exact = operation.sign != "/" or value % operation.number == 0
        if exact and 1 <= operation(value) <= LARGEST:
            value = operation(value)
            operations.append(operation)
    return Question(
        id="",
        dataset="sequential_math" if length in LENGTHS else "longer_math",
        text=_tell(rng, start, operations),
        kind="number",
        gold=str(value),
        candidates=tuple(map(str, slips(start, operations))),
    )


def _operation(rng: random.Random, value: int, before: str) -> Operation:
    sign = rng.choice([s for s in "+-*/" if s != before])
    if sign in "*/":
        return Operation(sign, rng.randint(2, 5))
    return Operation(sign, rng.randint(2, 30) if sign == "+" else rng.randint(1, max(2, value - 1)))


def _tell(rng: random.Random, start: int, operations: Sequence[Operation]) -> str:
    if rng.random() < 0.5:
        sentences = [f"Start with {start}."]
        sentences += [_WORDS["instructions"][op.sign].format(n=op.number) for op in operations]
        return " ".join([*sentences, "What is the result?"])
    who, what = rng.choice(_WORDS["people"]), rng.choice(_WORDS["things"])
    sentences = [f"{who} has {start} {what}."]
    sentences += [
        rng.choice(_WORDS["stories"][op.sign]).format(who=who, n=op.number) for op in operations
    ]
    return " ".join([*sentences, f"How many {what} does {who} have now?"])


def draw_problem(
    rng: random.Random, days: Sequence[str], dataset: str = "word_problems"
) -> Question:
    """A word problem whose answer is a sum of three numbers, told as two additions."""
    start = rng.randint(5, 20)
    gains = [rng.randint(2, 9) for _ in days]
    who, what = (rng.choice(_WORDS[name]) for name in ("people", "things"))
    return _problem(dataset, who, what, start, dict(zip(days, gains, strict=True)))


def draw_worked(rng: random.Random, days: Sequence[str]) -> Question:
    """A word problem after three others with their solutions in earlier turns."""
    question = draw_problem(rng, days, "worked_problems")
    turns: list[tuple[str, str]] = []
    for name, things, first, more in EXAMPLES:
        told = dict(zip(days, more, strict=True))
        turns.append(("user", _problem("", name, things, first, told).text))
        turns.append(("assistant", _solution(name, things, first, told)))
    return replace(question, sent=Sent((*turns, ("user", question.text))))


def _problem(dataset: str, who: str, what: str, start: int, gains: Mapping[str, int]) -> Question:
    operations = [Operation("+", number) for number in gains.values()]
    told = " and ".join(f"{number} more on {day}" for day, number in gains.items())
    return Question(
        id="",
        dataset=dataset,
        text=f"{who} has {start} {what}. {who} gets {told}. How many {what} does {who} have in "
        "total?",
        kind="number",
        gold=str(result(start, operations)),
        candidates=tuple(map(str, slips(start, operations))),
    )


def _solution(who: str, what: str, start: int, gains: Mapping[str, int]) -> str:
    sentences = [f"{who} starts with {start} {what}."]
    for day, number in gains.items():
        sum_of_both = start + number
        sentences.append(f"On {day} {who} has {start} + {number} = {sum_of_both} {what}.")
        start = sum_of_both
    return " ".join([*sentences, f"The answer is {start}."])


WORD_PROBLEMS = number_task(
    "word_problems",
    "synthetic word problems of two additions, which the smallest models reason about briefly",
    lambda settings: generated("word_problems", [("Monday", "Tuesday")], draw_problem, settings),
)
WORKED_PROBLEMS = number_task(
    "worked_problems",
    "the same after three worked examples, with which the smallest models get most of them right",
    lambda settings: generated("worked_problems", [("Monday", "Tuesday")], draw_worked, settings),
)
SEQUENTIAL_MATH = number_task(
    "sequential_math",
    "synthetic arithmetic, three or four chained operations (4.4)",
    lambda settings: generated("sequential_math", LENGTHS, draw, settings),
)
LONGER_MATH = number_task(
    "longer_math",
    "the arithmetic of sequential_math in five or six operations, for models trained on fewer",
    lambda settings: generated("longer_math", LONGER, draw, settings),
)
