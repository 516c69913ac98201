"""Distances between answer distributions, against numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.framing import Reply
from probes.graded import log_distribution, log_odds_drop, top, total_variation
from probes.readings import distributions, generated_outcomes, scored_outcomes

scores = st.lists(st.floats(-50, 0), min_size=2, max_size=6)


def logs(**p: float) -> dict[str, float]:
    return {k: math.log(v) if v else -math.inf for k, v in p.items()}


def test_total_variation_and_log_odds_by_hand():
    before, after = logs(a=0.7, b=0.2, c=0.1), logs(a=0.2, b=0.2, c=0.6)
    assert total_variation(before, after) == pytest.approx(0.5)
    drop = log_odds_drop(before, after, "a")
    assert drop == pytest.approx(math.log(0.7 / 0.3) - math.log(0.2 / 0.8))


@given(one=scores, data=st.data())
def test_total_variation_is_a_distance_within_one(one, data):
    names = [str(i) for i in range(len(one))]
    other = data.draw(st.lists(st.floats(-50, 0), min_size=len(one), max_size=len(one)))
    p, q = log_distribution(one, names), log_distribution(other, names)
    assert sum(map(math.exp, p.values())) == pytest.approx(1)
    assert 0 <= total_variation(p, q) <= 1 + 1e-12
    assert total_variation(p, q) == pytest.approx(total_variation(q, p))
    assert total_variation(p, p) == 0
    assert log_odds_drop(p, p, top(p)) == 0


def test_distribution_agrees_with_a_plain_softmax():
    found = log_distribution([-3.0, -1.0, -2.0], ["a", "b", "c"])
    weights = np.exp([-3.0, -1.0, -2.0])
    assert list(np.exp(list(found.values()))) == pytest.approx(list(weights / weights.sum()))


def test_labels_of_one_answer_add_up():
    found = log_distribution([math.log(0.2), math.log(0.3), math.log(0.5)], ["yes", "no", "yes"])
    assert list(found) == ["yes", "no"]
    assert math.exp(found["yes"]) == pytest.approx(0.7)


def test_length_normalisation_divides_before_the_softmax():
    found = log_distribution([-4.0, -3.0], ["a", "b"], lengths=[4, 1])
    assert found["a"] - found["b"] == pytest.approx(-1 + 3)
    assert top(found) == "a"


def test_ties_go_to_the_first_label():
    assert top(log_distribution([-1.0, -1.0], ["b", "a"])) == "b"


def test_nan_and_impossible_labels_are_errors_that_name_the_branch():
    reply = Reply("a", (math.nan, -1.0), (1, 1))
    with pytest.raises(FloatingPointError, match=r"item 'q7', branch \('removed', 2\).*NaN"):
        distributions({("removed", 2): reply}, ["a", "b"], length_normalise=False, item="q7")
    with pytest.raises(FloatingPointError, match="probability zero"):
        log_distribution([-math.inf, -math.inf], ["a", "b"])


def test_infinite_log_odds_are_no_number():
    assert log_odds_drop(logs(a=1.0, b=0.0), logs(a=0.5, b=0.5), "a") is None


def test_distributions_over_different_answers_do_not_compare():
    with pytest.raises(ValueError, match="do not compare"):
        total_variation(logs(a=0.5, b=0.5), logs(a=0.5, c=0.5))


def test_an_unparsed_answer_differs_from_every_answer():
    replies = {k: Reply(a, (), ()) for k, a in {"same": "1", "other": "2", "none": None}.items()}
    found = generated_outcomes(Reply("1", (), ()), replies)
    assert {k: o.flips for k, o in found.items()} == {"same": False, "other": True, "none": True}
    unparsed = generated_outcomes(Reply(None, (), ()), {"none": Reply(None, (), ())})
    assert unparsed["none"].flips


def test_scored_outcomes_flip_by_argmax():
    found = scored_outcomes(logs(a=0.6, b=0.4), {1: logs(a=0.55, b=0.45), 2: logs(a=0.4, b=0.6)})
    assert [(o.answer, o.flips) for o in found.values()] == [("a", False), ("b", True)]
    assert found[1].tv == pytest.approx(0.05)
