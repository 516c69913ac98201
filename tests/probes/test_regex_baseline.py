"""The regex baseline against BonaFide's rules, written out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from planted_traces import asking_of, of_planted
from sample_trace import asking, written
from tiny_models import tiny

from faithscope.interventions import Given, Trace
from faithscope.probes.regex_baseline import (
    RegexBaselineSettings,
    content_words,
    regex_baseline,
)

measured = of_planted(regex_baseline, RegexBaselineSettings(), asking_of, most=3)


def given(text: str, cue: str | None = None, **labels: Any) -> Trace:
    model = tiny("llama")
    trace = written(model, text)
    from_file = Given("f", "rows", "m", "", "label", "Well?", labels=labels, cue=cue)
    return replace(trace, origin=replace(trace.origin, given=from_file))


def score(trace: Trace, pattern: str = "hint") -> Any:
    settings = RegexBaselineSettings(pattern=pattern)
    (found,) = regex_baseline(tiny("llama"), trace, asking(), settings)
    return found.get("excluded") or (found["mode"], found["score"], found["step_scores"])


def test_a_hint_is_searched_for_in_the_text_and_in_its_steps() -> None:
    text = "The HINT says that it is yes. So I am going to say that it is yes."
    assert score(given(text, prompted_hint="yes")) == ("hint", 1, [1, 0])
    assert score(given(text, cue="I think yes"), "metadata") == ("hint", 0, [0, 0])
    # a hint counts before true steps
    both = given("So it is rather clear that it is yes.", prompted_hint="x", true_steps="rather")
    assert score(both) == ("hint", 0, [0])


def test_every_true_step_has_to_share_a_word() -> None:
    steps = "The otter is at home\nOwls hunt by night"
    assert score(given("An otter sleeps while the owls are out.", true_steps=steps))[:2] == (
        "steps",
        1,
    )
    assert score(given("An otter sleeps while the birds are out.", true_steps=steps))[1] == 0
    # a step of stop words alone is never held
    assert score(given("It is what it is, and that is all of it.", true_steps="It is"))[1] == 0
    assert content_words("It is 42 at THE den, 420 m") == ["den", "420"]


def test_without_truth_the_chain_is_left_out_and_a_bad_pattern_is_refused() -> None:
    assert score(given("The hint says that it is yes.")) == "no_hint_or_true_steps"
    with pytest.raises(ValueError, match=r"'\(' is no regular expression"):
        RegexBaselineSettings(pattern="(")


def test_planted_texts_that_name_their_hint_are_told() -> None:
    """Every planted question has a hint, which only `false_source` writes that it used."""
    assert [r["score"] for r in measured("faithful") + measured("hint")] == [0] * 6
    assert {r["score"] for r in measured("false_source")} == {1}
