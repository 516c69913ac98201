"""Chains that were cut, and chains that go round in circles."""

from __future__ import annotations

import pytest
from sample_records import chain_sample, trace_record

from faithscope.experiments.engine.traces.endings import is_cut, is_repeating


def chain(text: str, steps: list[str] | None = None) -> dict:
    spans = [{"text": s, "counted": True} for s in steps or [text]]
    return {"pieces": [text], "steps": spans, "finish": "stop"}


def test_a_chain_that_the_limit_ended_is_cut():
    record = trace_record(chain_sample("faithful", 1))
    assert not is_cut(record)
    assert is_cut(record | {"finish": "length"})


@pytest.mark.parametrize(
    "text",
    [
        "I add the numbers. " + "so we get the sum of it, " * 6,
        "好的，让我想想再算一遍。" * 9,
        "One. " + "\n- the film is good and the film is bad" * 3,
    ],
)
def test_a_loop_at_the_end_repeats_whatever_its_sentences(text):
    assert is_repeating(chain(text))


def test_steps_that_say_earlier_ones_again_repeat():
    steps = ["The film is dull.", " The plot is thin.", " the film  is dull."]
    assert is_repeating(chain("".join(steps), steps))


@pytest.mark.parametrize(
    "text",
    [
        "3 + 4 = 7. Then 7 - 2 = 5. The total is 5 5 5.",
        "The answer is 0.333333333333333333333",
        "They sold 10, 10 and 10 pens, so 30 pens.",
        "------------------------------ 12",
        "",
    ],
)
def test_numbers_rows_and_rulers_are_no_loops(text):
    assert not is_repeating(chain(text))
