"""Distances between answer distributions, against numbers worked by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithscope.probes.floor import BASELINE
from faithscope.probes.framing import Reply
from faithscope.probes.graded import log_distribution, log_odds_drop, top, total_variation
from faithscope.probes.readings import distributions, generated_outcomes, scored_outcomes

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
    answers = {"same": "1", "other": "2", "none": None}
    arms = {("removed", i): Reply(a, (), ()) for i, a in enumerate(answers.values())}
    found = generated_outcomes({BASELINE: Reply("1", (), ())} | arms)
    assert [o.flips for o in found.values()] == [False, True, True]
    unparsed = generated_outcomes(
        {BASELINE: Reply(None, (), ()), ("removed", 0): arms["removed", 2]}
    )
    assert unparsed["removed", 0].flips


def test_scored_outcomes_flip_by_argmax():
    arms = {("removed", 1): logs(a=0.55, b=0.45), ("removed", 2): logs(a=0.4, b=0.6)}
    arms |= {BASELINE: logs(a=0.6, b=0.4)}
    found = scored_outcomes(arms, dict.fromkeys(arms, 0), "b")
    assert [(o.answer, o.flips) for o in found.values()] == [("a", False), ("b", True)]
    assert found["removed", 1].tv == pytest.approx(0.05)
    # b is followed; what flips is the likeliest answer, a
    drop = math.log(0.6 / 0.4) - math.log(0.55 / 0.45)
    assert found["removed", 1].log_odds == pytest.approx(-drop)
    assert found["removed", 1].forced_log_odds == pytest.approx(drop)
    assert found["removed", 1].margin == pytest.approx(math.log(0.55 / 0.45))
    assert found["removed", 2].margin == pytest.approx(math.log(0.6 / 0.4))


def test_every_arm_is_held_against_the_baseline_of_its_own_pack():
    """In the second pack all answers are the other way round, the baseline's among them."""
    first, second = logs(a=0.6, b=0.4), logs(a=0.3, b=0.7)
    arms = {BASELINE: first, ("baseline", 1): second, ("removed", 0): first, ("removed", 1): second}
    found = scored_outcomes(arms, {arm: arm[1] for arm in arms}, "a")
    assert list(found) == [("removed", 0), ("removed", 1)]
    assert [(o.flips, o.tv, o.log_odds) for o in found.values()] == [(False, 0, 0), (False, 0, 0)]
    replies = {
        ("baseline", 0): Reply("1", (), (), margin=2.0),
        ("baseline", 1): Reply("2", (), (), margin=0.5, pack=1),
        ("removed", 0): Reply("1", (), (), margin=0.25),
        ("removed", 1): Reply("2", (), (), margin=1.0, pack=1),
        ("alone", 0): Reply("1", (), (), margin=1.0, pack=1),
    }
    outcomes = generated_outcomes(replies)
    assert [o.flips for o in outcomes.values()] == [False, False, True]
    assert [o.margin for o in outcomes.values()] == [0.25, 0.5, 0.5]
