"""Chains that a model can hardly hold: measured as far as it can write, counted where it cannot."""

from __future__ import annotations

import pytest
from probe_records import table_of
from sample_trace import asking
from tiny_models import tiny

from faithscope.interventions import Question, Trace, corrupt_step, from_ids
from faithscope.probes.regenerate import regenerate
from faithscope.probes.slrc import SlrcSettings, slrc

POSITIONS = 256
SENTENCE = "So 3 + {} makes 7. "
SETTINGS = SlrcSettings(framings=("prefix",), readings=("generated",), answer_tokens=4, shuffles=0)


@pytest.fixture(scope="module")
def model():
    return tiny("llama", max_position_embeddings=POSITIONS)


def chain(model, n_steps: int) -> Trace:
    ids = model.encode("".join(SENTENCE.format(i % 10) for i in range(n_steps)))
    question = Question("q1", "made", "Well?", "label", gold="yes", options=("yes", "no"))
    return from_ids(question, model.encode("Well?\n"), ids, model.pieces(ids))


def measured(model, trace: Trace):
    (r,) = slrc(model, trace, asking(), SETTINGS)
    return r


def test_a_long_chain_is_measured_in_a_model_with_few_positions(model):
    trace = chain(model, 11)
    assert len(trace.prompt_ids + trace.reasoning_ids) > 0.7 * POSITIONS
    r = measured(model, trace)
    assert "excluded" not in r
    assert None not in r["regenerated"] + r["controlled"]
    assert r["regenerated_excluded"] == [None] * 11


def test_a_step_that_ends_too_late_to_go_on_from_is_named_and_costs_no_other(model):
    n = 6
    trace = chain(model, n)
    # just room for the answer after the whole chain, so none for going on from its last step
    whole = len(trace.prompt_ids) + len(trace.reasoning_ids)
    needed = whole + len(model.encode(asking().answer_cue)) + SETTINGS.answer_tokens
    narrow = tiny("llama", max_position_embeddings=needed)
    r = measured(narrow, trace)
    assert "excluded" not in r
    assert r["regenerated_excluded"] == [None] * (n - 1) + ["no_room"]
    assert r["regenerated"][-1] is r["regenerate_flips"][-1] is None
    assert None not in r["regenerate_flips"][:-1]
    table = table_of("edits", [r]).set_index("edit")
    assert table.loc["regenerate", ["n_edits", "n_no_room"]].tolist() == [n - 1, 1]
    assert table.loc["remove", ["n_edits", "n_no_room"]].tolist() == [n, 0]


def test_a_chain_that_leaves_no_room_for_an_answer_is_excluded_by_name(model):
    r = measured(model, chain(model, 15))
    assert r["excluded"] == "no_room"
    assert r["n_steps"] == 15
    assert "removed" not in r


def test_each_trace_is_written_up_to_its_own_limit(model):
    trace = chain(model, 6)
    edited = [
        corrupt_step(trace, s.index, 0, model.encode, model.pieces) for s in trace.counted_steps
    ]
    together = regenerate(model, edited)
    assert together == [regenerate(model, [one])[0] for one in edited]
    assert [len(r.trace.steps[-1].text) for r in together if r] == sorted(
        (len(r.trace.steps[-1].text) for r in together if r), reverse=True
    )
