"""What judging costs, by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithscope.interp.errors import UserError
from faithscope.probes.judge.charges import CHARACTERS_PER_TOKEN, MESSAGE_TOKENS, Charge
from faithscope.probes.judge.form import Ask, Field, Form, Usage
from faithscope.probes.judge.parse import request
from faithscope.probes.judge.spend import Budget, Price, add, estimate

PRICES = {"m": Price(input=2.0, cached=0.5, output=8.0), "plain": Price(1.0, 1.0)}
FORM = Form("f", "Rate {x}.", (Field("score", "integer", 0, 4),), "score", system="Be strict.")

counts = st.integers(0, 10**9)
usages = st.builds(Usage, counts, counts, counts, counts, counts)


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
    budget.settle("m", Charge(Usage(), "parsed"))
    assert budget.admit(), "a call that came from the cache is none"
    budget.settle("m", Charge(Usage(calls=1), "parsed"))
    budget.settle("m", Charge(Usage(calls=1), "parsed"))
    assert (budget.admit(), budget.calls, budget.in_flight) == (False, 2, 0)


def test_cost_ends_calls_once_it_is_spent():
    budget = Budget(max_cost=4.0, prices=PRICES)
    budget.charge("provider/m", Usage(1, 1_000_000))
    assert budget.admit()
    budget.settle("provider/m", Charge(Usage(1, 1_000_000), "parsed"))
    assert (budget.cost, budget.admit()) == (4.0, False)
    assert str(budget) == "2 calls, $4 of max_cost=4"


def test_an_attempt_beside_the_call_counts_and_ends_none():
    budget = Budget(max_calls=3)
    assert budget.admit()
    budget.write_down("m", Charge(Usage(calls=1), "timed_out", estimated=True))
    assert (budget.calls, budget.in_flight) == (1, 1)
    assert [budget.admit(), budget.admit()] == [True, False]


def test_no_limit_is_no_limit_and_nothing_is_nothing():
    budget = Budget()
    budget.charge("unpriced", Usage(10**6, 10**12))
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


def test_an_estimate_by_hand():
    asks = [Ask(str(i), FORM, {"x": "y" * 100 * i}) for i in range(3)]
    schema = len(request(asks[0]))
    lengths = [len("Be strict.") + len("Rate .") + 100 * i + schema for i in range(3)]
    tokens = sum(math.ceil(n / CHARACTERS_PER_TOKEN) + MESSAGE_TOKENS for n in lengths)
    found = estimate(asks, "provider/m", max_output=200, prices=PRICES)
    assert (found.calls, found.input_tokens, found.output_tokens) == (3, tokens, 600)
    assert found.cost == pytest.approx((tokens * 2 + 600 * 8) / 1e6)
    assert "without a tokenizer" in found.method
    held = estimate(asks, "other", max_output=200, prices=PRICES, prompted=False)
    assert held.cost is None
    assert held.input_tokens < tokens
