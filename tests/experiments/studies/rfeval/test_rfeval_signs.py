"""What a trace shows: of traces made by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from faithscope.experiments.studies.rfeval.inside.trace_signals import (
    LENS_SIGNALS,
    POSITIONS,
    TRACE_SIGNALS,
    Traced,
    led_to,
    lens_signals,
    signals,
    trace_signals,
    turn,
)


def trace(
    tops: str,
    cuts: list[int],
    *,
    r_prime: int = 4,
    reasoned: int = 8,
    resumed: int = 10,
    **more: Any,
) -> Traced:
    """The named option has .6, the two others .3 and .1 of A, B, C in order."""
    p = []
    for top in tops:
        rest = iter((0.3, 0.1))
        p.append([0.6 if option == top else next(rest) for option in "ABC"])
    coarse = more.get("coarse", [True] * len(cuts))
    return Traced(
        np.array(cuts), np.array(p), np.array(coarse), ("A", "B", "C"), r_prime, reasoned, resumed
    )


CUTS = [0, 2, 4, 6, 8, 12, 14]


def test_a_silent_correction_seen_as_it_happens() -> None:
    # r′ leads to A; the model leaves it in its own reasoning, between tokens 4 and 6
    found = trace_signals(trace("BAABBBB", CUTS), "A", "B")
    assert found["p_before"] == 0.3
    assert found["p_after_r_prime"] == found["p_peak"] == 0.6
    assert found["r_prime_effect"] == pytest.approx(0.3)
    assert found["peak_at"] == 2 / 14
    assert found["final_lead"] == pytest.approx(0.3 - 0.6)
    assert (found["followed"], found["ever_led"], found["flips"]) == (1, 1, 2)
    assert found["last_led"] == 4 / 14
    assert (found["turn"], found["turn_part"], found["turn_within"]) == (6, "r", 2)
    assert found["turn_at"] == 6 / 14
    assert found["turn_own"] == 2 / 10
    # of the ten tokens after r′ it leads along the first two
    assert found["led_share"] == 0.2
    assert found["steepest_fall"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("tops", "answer", "part", "at"),
    [
        ("BABBBBB", "B", "r_prime", 4),
        ("BAABBBB", "B", "r", 6),
        ("BAAAABB", "B", "e", 12),
        ("BAABAAB", "B", "e", 14),  # what turned back once more counts where it turns for good
        ("BAAAAAA", "B", "a", None),
        ("BAAAAAA", "A", "never_turned", None),
        ("BAAAAAA", None, "never_turned", None),
        ("BAAAAAA", "I don't know", "never_turned", None),
        ("ABBBBBB", "B", "never_led", None),
        ("BBBBBBB", "B", "never_led", None),
    ],
)
def test_where_it_turns(tops: str, answer: str | None, part: str, at: int | None) -> None:
    found = turn(trace(tops, CUTS), "A", answer)
    assert (found["turn_part"], found["turn"]) == (part, at)


def test_a_turn_right_after_the_closer_is_known_to_the_token() -> None:
    found = turn(trace("BAAABB", [0, 2, 4, 8, 11, 14]), "A", "B")
    # tokens 9 and 10 are the closer, where nothing is asked
    assert (found["turn"], found["turn_within"], found["turn_part"]) == (11, 1, "e")


def test_flips_and_falls_are_of_the_equally_spaced_cuts() -> None:
    cuts, tops = [0, 2, 4, 5, 6, 8, 12, 14], "BAABABBB"
    coarse = [True, True, True, False, False, True, True, True]
    found = trace_signals(trace(tops, cuts, coarse=coarse), "A")
    assert found["flips"] == 2
    assert found["turn"] == 8
    assert found["led_share"] == (1 + 2) / 10


def test_without_r_prime_or_without_text_of_its_own() -> None:
    bare = trace_signals(trace("BBB", [0, 4, 8], r_prime=0), "A")
    assert bare["p_after_r_prime"] is bare["r_prime_effect"] is bare["followed"] is None
    silent = trace_signals(trace("BA", [0, 4], reasoned=4, resumed=4), "A")
    assert silent["led_share"] is silent["steepest_fall"] is None
    assert silent["turn_part"] == "never_turned"
    assert set(TRACE_SIGNALS) <= set(bare)


def test_curves_go_through_the_cuts_of_their_part() -> None:
    found = trace("BAABBBA", CUTS)
    assert found.curve("r_prime", "A") == pytest.approx(
        np.interp(np.linspace(0, 4, POSITIONS), [0, 2, 4], [0.3, 0.6, 0.6])
    )
    # the explanation begins past the closer with what stood at the end of the reasoning
    assert found.curve("e", "A") == pytest.approx(
        np.interp(np.linspace(10, 14, POSITIONS), [10, 12, 14], [0.3, 0.3, 0.6])
    )
    short = trace("BAA", [0, 2, 4], reasoned=4, resumed=4)
    assert np.isnan(short.curve("r", "A")).all()
    assert list(short.spans()) == ["r_prime"]


def test_where_r_prime_leads_by_the_model_is_the_likeliest_wrong_option_after_it() -> None:
    found = trace("BBCBBBB", CUTS)  # after r′: C .6, A .3, B .1
    assert led_to(found, gold="A") == "C"
    assert led_to(found, gold="C") == "A"


def test_layers_that_lead_to_r_prime_and_are_overruled() -> None:
    p = np.array([[1, 0], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4], [0.1, 0.9]])
    assert lens_signals(p, ("A", "B"), "A") == {
        "lens_peak": 0.7,
        "lens_peak_depth": 0.5,
        "lens_led": 2 / 3,
        "lens_suppressed": 1,
    }
    assert lens_signals(p, ("A", "B"), "B")["lens_suppressed"] == 0
    assert lens_signals(p[:2], ("A", "B"), "A") == dict.fromkeys(LENS_SIGNALS)


def test_a_record_gives_its_signals_for_any_option() -> None:
    whole = trace("BAABBBB", CUTS)
    record = {
        **{"trace": "options", "options": ["A", "B", "C"], "cuts": CUTS, "coarse": [True] * 7},
        **{"p": whole.p.ravel().tolist(), "n_r_prime": 4, "reasoned": 8, "resumed": 10},
    }
    again = Traced.of(record)
    assert again is not None
    assert np.array_equal(again.p, whole.p)
    assert signals(record, "A", "B")["turn"] == 6
    assert signals(record, "C", "B")["turn_part"] == "never_led"
    assert "lens_led" not in signals(record, "A", "B")
    lens = record | {"asked_lens_p": [0.1, 0.2, 0.7] * 4}
    assert signals(lens, "C", None)["lens_led"] == 1
    assert Traced.of(record | {"trace": "free"}) is None
    assert not math.isnan(signals(record, "A", None)["p_final"])
