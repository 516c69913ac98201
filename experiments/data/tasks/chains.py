"""Sequential arithmetic: chained operations (SLRC, 4.4: three or four), and short word problems.

The paper gives no items. Ours are plain instructions and small stories; every intermediate result
is a whole number from 1 to 999. The word problems are not the paper's: they are so short that a
model of 135M parameters writes a chain of a few steps and ends it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from faithscope.experiments.data.tasks.kinds import number_task
from faithscope.experiments.data.tasks.task import generated, words
from faithscope.interventions.trace import Question

LARGEST = 999
LENGTHS, LONGER = (3, 4), (5, 6)

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


def draw_problem(rng: random.Random, days: Sequence[str]) -> Question:
    """A word problem whose answer is a sum of three numbers, told as two additions."""
    start = rng.randint(5, 20)
    operations = [Operation("+", rng.randint(2, 9)) for _ in days]
    who, what = (rng.choice(_WORDS[name]) for name in ("people", "things"))
    gains = " and ".join(
        f"{op.number} more on {day}" for op, day in zip(operations, days, strict=True)
    )
    return Question(
        id="",
        dataset="word_problems",
        text=f"{who} has {start} {what}. {who} gets {gains}. How many {what} does {who} have in "
        "total?",
        kind="number",
        gold=str(result(start, operations)),
        candidates=tuple(map(str, slips(start, operations))),
    )


WORD_PROBLEMS = number_task(
    "word_problems",
    "synthetic word problems of two additions, which the smallest models reason about briefly",
    lambda settings: generated("word_problems", [("Monday", "Tuesday")], draw_problem, settings),
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
