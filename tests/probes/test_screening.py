"""Estimates of removal against exact removal, on planted models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planted_traces import ASKING, planted

from faithscope.probes.edited import removals, scored
from faithscope.probes.knockout import KnockoutSettings
from faithscope.probes.screening import Anew, Screen, estimates


def exact(name: str, at: int) -> list[float | None]:
    model, traces = planted(name)
    trace = traces[at]
    pack = scored(model, trace, ASKING, removals(trace), KnockoutSettings())
    return [pack.outcomes["removed", i].log_odds for i in range(len(trace.counted_steps))]


@pytest.mark.parametrize("at", [0, 1])
def test_with_all_later_steps_anew_the_estimate_is_exact(at: int) -> None:
    model, traces = planted("faithful_5")
    whole = estimates(model, traces[at], ASKING, Anew(steps=99, mediators=0.0))
    assert whole.log_odds == pytest.approx(exact("faithful_5", at), abs=2e-3)
    assert whole.tokens == whole.later


def test_an_estimate_computes_few_tokens_and_is_near_exact_removal() -> None:
    model, traces = planted("faithful_5")
    few = estimates(model, traces[0], ASKING)
    assert all(a <= b for a, b in zip(few.tokens, few.later, strict=True))
    assert sum(few.tokens) < 0.7 * sum(few.later)
    assert few.log_odds == pytest.approx(exact("faithful_5", 0), abs=0.15)
    size = [abs(x or 0) for x in few.log_odds]
    screen = Screen(model, traces[0], ASKING, 1)
    assert screen.steps() == [traces[0].counted_steps[int(np.argmax(size))].index]
    assert screen.fields["estimated_log_odds"] == pytest.approx(few.log_odds, abs=1e-5)


def test_without_scored_answers_nothing_is_screened_and_the_record_says_so() -> None:
    model, traces = planted("faithful_5")
    screen = Screen(model, traces[0], replace(ASKING, labels=()), 1)
    assert screen.steps() == ()
    assert screen.fields == {"not_screened": "fewer_than_2_labels"}
