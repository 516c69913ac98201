"""What judging costs, by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import Budget, Call, Price, add

PRICES = {"m": Price(input=2.0, cached=0.5, output=8.0), "plain": Price(1.0, 1.0)}

counts = st.integers(0, 10**9)
usages = st.builds(Usage, counts, counts, counts, counts, counts)


def call(usage: Usage, outcome: str = "parsed", model: str = "m") -> Call:
    return Call(model, "f/1", outcome, usage)


def test_a_price_by_hand():
    usage = Usage(1, input_tokens=1_000_000, output_tokens=500_000, cached_tokens=400_000)
    assert PRICES["m"].of(usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.5 * 8)
    assert PRICES["plain"].of(usage) == pytest.approx(1.5)


@given(usages, usages)
def test_usage_adds_up(a, b):
    assert add(a, b) == add(b, a)
    assert add(a, Usage()) == a
    both = PRICES["plain"].of(a) + PRICES["plain"].of(b)
    assert PRICES["plain"].of(add(a, b)) == pytest.approx(both)


def test_calls_in_flight_count():
    budget = Budget(max_calls=2)
    assert [budget.admit(), budget.admit(), budget.admit()] == [True, True, False]
    budget.settle(call(Usage()))
    assert budget.admit(), "a call that came from the cache is none"
    budget.settle(call(Usage(calls=1)))
    budget.settle(call(Usage(calls=1)))
    assert (budget.admit(), budget.calls, budget.in_flight) == (False, 2, 0)


def test_cost_ends_calls_once_it_is_spent():
    budget = Budget(max_cost=4.0, prices=PRICES)
    budget.count(call(Usage(1, 1_000_000), model="provider/m"))
    assert budget.admit()
    budget.settle(call(Usage(1, 1_000_000), model="provider/m"))
    assert (budget.cost, budget.admit()) == (4.0, False)
    assert str(budget) == "2 calls, $4 of max_cost=4"


def test_an_attempt_beside_the_call_counts_and_ends_none():
    budget = Budget(max_calls=3)
    assert budget.admit()
    budget.write_down(call(Usage(calls=1), "timed_out"))
    assert (budget.calls, budget.in_flight) == (1, 1)
    assert [budget.admit(), budget.admit()] == [True, False]


def test_no_limit_is_no_limit_and_nothing_is_nothing():
    budget = Budget()
    budget.count(call(Usage(10**6, 10**12), model="unpriced"))
    assert (budget.admit(), budget.cost) == (True, 0.0)
    assert not Budget(max_calls=0).admit()
    assert not Budget(max_cost=0, prices=PRICES).admit()


@pytest.mark.parametrize("limit", [-1, math.nan])
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(UserError, match="max_cost"):
        Budget(max_cost=limit)


def test_a_limited_cost_needs_a_price():
    with pytest.raises(UserError, match=r"'openai/plane' has no price.*add it to the prices"):
        Budget(max_cost=1, prices=PRICES).check("openai/plane")
    with pytest.raises(UserError, match="did you mean 'plain'"):
        Budget(max_cost=1, prices=PRICES).check("plan")
    Budget(max_calls=1).check("unpriced")
