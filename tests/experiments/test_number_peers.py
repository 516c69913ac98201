"""Numbers are compared by value as math-verify compares them."""

from __future__ import annotations

import itertools

import pytest

from faithscope.experiments.data.answers import last_number

math_verify = pytest.importorskip("math_verify", reason="math-verify is installed by hand")

SAME = [
    ("1,234.50", "1234.5"),
    ("\\boxed{\\frac{3}{4}}", "0.75"),
    ("\\boxed{0.5}", "\\boxed{\\frac{1}{2}}"),
    ("$-3$", "-3.0"),
    ("\\boxed{1500}", "1500.00"),
    ("\\boxed{2}", "\\boxed{2.0}"),
]


def agrees(one: str, other: str) -> bool:
    return math_verify.verify(math_verify.parse(one), math_verify.parse(other))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_values_are_equal(one: str, other: str) -> None:
    assert last_number(one) == last_number(other)
    assert agrees(one, other)


def test_different_values_are_different() -> None:
    for (one, _), (other, _) in itertools.combinations(SAME[:2] + SAME[3:], 2):
        assert (last_number(one) == last_number(other)) == agrees(one, other), (one, other)
