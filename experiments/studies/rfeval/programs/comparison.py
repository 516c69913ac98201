"""Whether what a program gave is what a test wants, by the rules of the benchmarks themselves."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any


def same_output(given: str, wanted: str) -> bool:
    """Whether two outputs are the same, as LiveCodeBench has it (`testing_util.grade_stdio`): as
    many lines, each the same but for white space at its ends, or all numbers and these equal."""
    one, other = ([line.strip() for line in t.strip().split("\n")] for t in (given, wanted))
    return len(one) == len(other) and all(
        a == b or ((numbers := _numbers(a)) is not None and numbers == _numbers(b))
        for a, b in zip(one, other, strict=True)
    )


def _numbers(line: str) -> list[Decimal] | None:
    try:
        return [Decimal(word) for word in line.split()]
    except InvalidOperation:
        return None


def same_value(given: Any, wanted: Any) -> bool:
    """Whether two JSON values are the same, as LiveCodeBench has it: exactly
    (`testing_util.grade_call_based`)."""
    try:
        return bool(given == wanted)
    except RecursionError:
        return False
