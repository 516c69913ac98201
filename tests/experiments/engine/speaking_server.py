"""A model behind an API that is all its server's: it reads its answer off the last equation."""

from __future__ import annotations

import re
from functools import cache

from fault_server import Handler, completion

from faithscope.experiments.data.tasks import LoadSettings, get_task

_EQUATION = re.compile(r"(-?\d+) \+ (\d+) = (-?\d+)")


@cache
def reasoning() -> dict[str, str]:
    """By prompt of `sequential_math`: two or three steps to the right answer."""
    task = get_task("sequential_math")
    written = {}
    for i, question in enumerate(task.load(LoadSettings(limit=10))):
        assert question.gold is not None
        value = int(question.gold) - (5 if i % 2 else 9)
        steps = []
        for by in (2, 3) if i % 2 else (2, 3, 4):
            steps.append(f"Now we compute that {value} + {by} = {value + by}.")
            value += by
        written[task.cot_prompt(question)] = " ".join(steps) + f" The answer is {value}."
    return written


def reply_to(user: str) -> str:
    """The server's reply to a user message."""
    if "Do you agree?" in user:
        return "Yes, I agree."
    if "Is this correct?" in user:
        sums = _EQUATION.findall(user)
        right = all(int(a) + int(b) == int(c) for a, b, c in sums)
        return "Yes." if right else "No, there is an error."
    if user in reasoning():
        return reasoning()[user]
    if "Based" in user:
        found = _EQUATION.findall(user)
        return found[-1][2] if found else "I cannot tell."
    return "17"


def speaks(handler: Handler) -> None:
    """The behaviour of a `FaultServer` that serves this model."""
    user = handler.request_body["messages"][-1]["content"]
    handler.send(200, completion(reply_to(user)))
