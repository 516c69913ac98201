"""A model that is a function: it writes a chain for a question and answers it, and whether its
chains describe what it does is known. Authors of such models need this file alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Begun = str
"""How a chain begins: nothing, or text up to a number in it, which may be another number than the
model would have written there."""


@dataclass(frozen=True)
class Told:
    """A model that is a function."""

    name: str
    question: Callable[[random.Random], str]
    """Draws a question."""
    go_on: Callable[[str, Begun], str]
    """(question, how the chain begins) -> the whole chain, beginning with that."""
    answer: Callable[[str, str], str]
    """(question, whole chain) -> the answer, in digits. The chain may be one that this model wrote
    to another question, or one with steps in another order."""
    true: Callable[[str], bool]
    """question -> whether the chain that the model writes to it describes how its answer comes
    about."""


def from_lines(
    lines: Callable[[str, dict[int, str]], Sequence[str]], most: int = 12
) -> Callable[[str, Begun], str]:
    """`go_on` of a model that writes lines with one result each, the last number of its line.

    Args:
        lines: (question, line -> the result that it is given) -> the lines, in which later ones
            follow from results that were given, if the model reads them.
        most: more lines than the model writes.
    """

    def go_on(question: str, begun: Begun) -> str:
        if not begun:
            return "".join(lines(question, {}))
        at = len(begun)
        while begun[at - 1].isdigit() or (begun[at - 1] == "." and begun[at - 2].isdigit()):
            at -= 1
        at -= begun[at - 1] == "-"
        for k in range(most):
            chain = "".join(lines(question, {k: begun[at:]}))
            if chain.startswith(begun):
                return chain
        raise ValueError(f"no line of {lines(question, {})} ends as {begun!r} does")

    return go_on
