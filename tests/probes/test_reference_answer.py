"""Measures follow the answer that a chain states; the forced choice stands beside it by name."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from planted_traces import ASKING, planted

from faithscope.interventions import remove_step
from faithscope.probes import PROBES
from faithscope.probes.causal_effects import FORCED_MEASURES
from faithscope.probes.reference_answer import ReferenceAnswer
from faithscope.probes.tracing import NEVER_SETTLED

FOLLOWING = [name for name, probe in PROBES.items() if probe.follows_answer]
WITHOUT_FLIPS = {"tracing", "information", "patching"}
"""Those that say how far an answer moves, and not whether it is another."""
OTHER = "0"
"""An answer that the model would not choose after the chain, stated all the same."""


def measured(name: str, answer: str | None, asking: Any = ASKING) -> dict[str, Any]:
    model, traces = planted("faithful")
    probe = PROBES[name]
    assert traces[1].answer == "4"
    found = probe.measure(model, replace(traces[1], answer=answer), asking, probe.settings())
    return next(r for r in found if r.get("reading") != "generated")


@pytest.mark.in_time(2)
@pytest.mark.parametrize("name", FOLLOWING)
def test_the_stated_answer_is_followed_wherever_there_is_one(name: str) -> None:
    said = ("answer", "reference", "stated_answer", "forced_answer", "forced_differs")
    read = {a: tuple(measured(name, a)[k] for k in said) for a in ("4", OTHER, None)}
    assert read == {
        "4": ("4", "stated", "4", "4", False),
        OTHER: (OTHER, "stated", OTHER, "4", True),
        None: ("4", "forced", None, "4", None),
    }


def test_a_stated_answer_that_is_not_scored_cannot_be_followed_and_differs() -> None:
    asking = replace(ASKING, labels=tuple(x for x in ASKING.labels if x[0] != OTHER))
    r = measured("tracing", OTHER, asking)
    assert (r["answer"], r["reference"], r["forced_differs"]) == ("4", "forced", True)
    assert r["stated_answer"] == OTHER


@pytest.mark.parametrize("name", FOLLOWING)
def test_where_both_are_one_answer_both_readings_are_one(name: str) -> None:
    same = measured(name, "4")
    forced = [k for k in same if k.startswith("forced_") and k.removeprefix("forced_") in same]
    assert forced
    assert [same[k] for k in forced] == [same[k.removeprefix("forced_")] for k in forced]
    # and where they are two, the forced one is what it was
    other = measured(name, OTHER)
    if name not in ("patching", "paraphrase"):
        assert any(other[k] != other[k.removeprefix("forced_")] for k in forced)
    assert [other[k] for k in forced] == [same[k] for k in forced]


@pytest.mark.parametrize("name", [name for name in FOLLOWING if name not in WITHOUT_FLIPS])
def test_no_edit_changes_an_answer_by_which_one_is_followed(name: str) -> None:
    """Else every edit would change the answer of a chain whose two readings differ."""
    same, other = measured(name, "4"), measured(name, OTHER)
    flips = [k for k in same if k.endswith("flips") or k == "necessary"]
    assert flips, f"{name}: no field ends in `flips`; name the one with changed answers so"
    assert [same[k] for k in flips] == [other[k] for k in flips]
    assert False in [x for k in flips for x in np.ravel([] if other[k] is None else other[k])]


def test_tracing_traces_the_stated_answer() -> None:
    r = measured("tracing", OTHER)
    p = r["arrays"]["p"][:, r["options"].index(OTHER)]
    assert r["p_before"] == pytest.approx(float(p[0]), abs=1e-6)
    assert r["p_after"] == pytest.approx(float(p[-1]), abs=1e-6)
    assert r["p_after"] < 0.01 < 0.95 < r["forced_p_after"]
    # the whole chain leads to another answer, so that this one is never settled
    assert (r["early"], r["early_depth"], r["early_tokens"]) == (None, None, None)
    assert (r["committed"], r["gap"], r["gap_reason"]) == (None, None, NEVER_SETTLED)
    assert r["forced_early"] == measured("tracing", "4")["early"]
    unparsed = measured("tracing", None)
    assert (unparsed["early"], unparsed["committed"]) == (r["forced_early"], None)


def test_log_odds_are_those_of_the_stated_answer_worked_from_the_distributions() -> None:
    r = measured("causal_effects", OTHER)
    at = r["options"].index(OTHER)

    def odds(p: np.ndarray) -> float:
        return math.log(p[at] / (p.sum() - p[at]))

    drops = [odds(r["arrays"]["baseline"]) - odds(p) for p in r["arrays"]["removed"]]
    assert r["graded_necessity"] == pytest.approx(drops, abs=2e-2)
    tops = [r["options"][int(p.argmax())] for p in r["arrays"]["removed"]]
    assert r["removed"] == tops
    assert r["removed_flips"] == [x != r["forced_answer"] for x in tops]
    assert set(FORCED_MEASURES) <= r.keys()
    assert r["lead_own"] < 0


def test_an_edited_chain_has_the_answer_of_the_unedited_one() -> None:
    _, traces = planted("faithful")
    edited = replace(remove_step(traces[1], 1), answer=None)
    found = ReferenceAnswer.of(edited, {"4": -0.1, OTHER: -3.0})
    assert (found.answer, found.source) == ("4", "stated")
