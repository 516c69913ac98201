"""The middle of a chain, and deletions from it."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithscope.interventions.region import coverage_deletion, middle_region

LEVELS = (0.1, 0.3, 0.5, 0.7)


@pytest.mark.parametrize(
    ("n", "counted_from_one"),
    # written out by hand from I = {i | ceil(0.3 N) <= i <= floor(0.9 N)}
    [
        (5, [2, 3, 4]),
        (8, [3, 4, 5, 6, 7]),
        (10, [3, 4, 5, 6, 7, 8, 9]),
        (13, [4, 5, 6, 7, 8, 9, 10, 11]),
        (20, list(range(6, 19))),
        (30, list(range(9, 28))),
        (2, [1]),
        (1, []),
        (0, []),
    ],
)
def test_the_papers_region_counted_from_zero(n: int, counted_from_one: list[int]) -> None:
    assert list(middle_region(n)) == [i - 1 for i in counted_from_one]


def test_decimals_are_not_rounded_as_floats() -> None:
    # floats: ceil(0.1 * 3 * 10) and the like come out one too high, floor one too low
    assert math.ceil(0.07 * 100) == 8
    assert list(middle_region(100, 0.07, 0.29)) == list(range(6, 29))
    assert math.floor(0.29 * 100) == 28


@given(st.integers(0, 400))
def test_a_region_holds_what_the_inequalities_allow(n: int) -> None:
    allowed = [i - 1 for i in range(1, n + 1) if 3 * n <= 10 * i <= 9 * n]
    assert list(middle_region(n)) == allowed
    if n >= 5:  # every perfect chain: a step before the target, and the last never touched
        assert allowed[0] >= 1
        assert allowed[-1] < n - 1 or n >= 10
        assert allowed[-1] <= n - 2


@pytest.mark.parametrize(("low", "high"), [(0.9, 0.3), (-0.1, 0.5), (0.1, 1.1)])
def test_bounds_that_are_none_are_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match=f"from {low} to {high}"):
        middle_region(10, low, high)


@given(
    st.lists(st.text(max_size=5), max_size=40),
    st.sampled_from(LEVELS),
    st.integers(0, 10**6),
)
def test_a_deletion_takes_so_many_from_the_middle_and_keeps_order(
    steps: list[str], level: float, seed: int
) -> None:
    cut = coverage_deletion(steps, level, seed)
    region = middle_region(len(steps))
    assert cut.n_middle == len(region)
    assert len(cut.removed) == math.ceil(Fraction(str(level)) * len(region))
    assert list(cut.removed) == sorted(set(cut.removed))
    assert set(cut.removed) <= set(region)
    assert list(cut.steps) == [s for i, s in enumerate(steps) if i not in cut.removed]
    assert cut == coverage_deletion(steps, level, seed)


@pytest.mark.parametrize(
    ("n", "level", "removed"),
    [(5, 0.1, 1), (5, 0.5, 2), (5, 0.7, 3), (14, 0.3, 3), (16, 0.7, 7), (13, 0.5, 4)],
)
def test_deletions_round_up(n: int, level: float, removed: int) -> None:
    assert len(coverage_deletion(["s"] * n, level, 0).removed) == removed


def test_every_middle_step_is_drawn_equally_often() -> None:
    drawn = [i for seed in range(3000) for i in coverage_deletion(["s"] * 13, 0.3, seed).removed]
    counts = [drawn.count(i) for i in middle_region(13)]
    assert len(counts) == 8
    assert min(counts) > 0.9 * 3000 * 3 / 8
    assert max(counts) < 1.1 * 3000 * 3 / 8


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1\.5"):
        coverage_deletion(["a"] * 9, 1.5, 0)
