"""Reading what a model wrote takes time in proportion to its length, whatever it is.

By counts of steps (`linear_steps.py`), not by a clock: a text four times as long takes at most
six times the steps, where a quadratic reader takes up to sixteen.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from regex_steps import Steps

PROGRAM = Path(__file__).with_name("linear_steps.py")


def counted(*arguments: str) -> list[tuple[str, str, int, int]]:
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, check=True
    )
    return [tuple(json.loads(line)) for line in ran.stdout.splitlines() if line.startswith("[")]


def growing(rows: list[tuple[str, str, int, int]]) -> list[str]:
    return [f"{of} of {text!r}: {a} → {b}" for of, text, a, b in rows if b > 6 * a]


def test_reading_takes_linear_time() -> None:
    rows = counted()
    assert len({of for of, *_ in rows}) > 30
    assert growing(rows) == []


@pytest.mark.slow
def test_reading_takes_linear_time_of_whatever_is_repeated() -> None:
    assert growing(counted("--all")) == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"a*a*b",
        r"(?:a|ab)+?c",
        r"(?<!a)b\w*+ ",
        r"(a+)b\1",
        r"^\s*a$",
        r"(?i)[A-B]{2,3}?\b(?=c|\Z)",
    ],
)
def test_steps_are_those_of_a_matcher_that_finds_what_re_finds(pattern: str) -> None:
    steps, real = Steps(pattern, re.M), re.compile(pattern, re.M)
    draw = random.Random(pattern)
    for _ in range(300):
        text = "".join(draw.choice("abc \n") for _ in range(draw.randint(0, 12)))
        assert list(steps.finditer(text)) == [m.span() for m in real.finditer(text)]


def test_what_is_quadratic_counts_as_such() -> None:
    def cost(pattern: str, n: int) -> int:
        steps = Steps(pattern)
        assert list(steps.finditer("a" * n)) == []
        return steps.n

    assert cost("a*b", 400) > 12 * cost("a*b", 100)
    assert cost("(?<!a)a*+b", 400) < 5 * cost("(?<!a)a*+b", 100)
