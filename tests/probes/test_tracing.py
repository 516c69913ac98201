"""Answer tracing: against a loop of single questions, and on models whose source is known."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from planted_traces import ASKING, ITEMS, planted

from faithscope.probes import Record
from faithscope.probes.tracing import TracingSettings, cuts, settled_from, tracing


@cache
def traced(name: str) -> list[Record]:
    model, traces = planted(name)
    return [tracing(model, t, ASKING, TracingSettings())[0] for t in traces]


@pytest.mark.parametrize("every", [1, 4])
def test_every_cut_is_what_a_question_of_its_own_gives(every: int) -> None:
    model, traces = planted("faithful")
    trace = traces[0]
    (found,) = tracing(model, trace, ASKING, TracingSettings(every=every))
    at, p = found["arrays"]["at"], found["arrays"]["p"]
    assert list(at) == cuts(trace, every)
    labels = [model.encode(surface) for _, surface in ASKING.labels]
    for i, of_cut in zip(at, p, strict=True):
        ids = (*trace.prompt_ids, *trace.reasoning_ids[:i], *model.encode(ASKING.answer_cue))
        (alone,) = model.ask([ids], [labels], execution="loop")
        weights = np.exp(np.array(alone.log_probs))
        assert np.allclose(of_cut, weights / weights.sum(), atol=1e-5)


def test_steps_take_their_values_from_the_cuts_at_their_ends() -> None:
    model, traces = planted("faithful")
    trace, found = traces[0], traced("faithful")[0]
    curve = dict(zip(found["arrays"]["at"].tolist(), found["arrays"]["p"], strict=True))
    answer = found["options"].index(found["answer"])
    ends = [float(curve[s.tokens[1]][answer]) for s in trace.counted_steps]
    assert found["p_steps"] == pytest.approx(ends, abs=1e-5)
    starts = [float(curve[s.tokens[0]][answer]) for s in trace.counted_steps]
    assert found["delta"] == pytest.approx(np.subtract(ends, starts).tolist(), abs=1e-5)
    (coarse,) = tracing(model, trace, ASKING, TracingSettings(every=1000))
    assert coarse["p_steps"] == pytest.approx(found["p_steps"], abs=1e-5)


def test_the_faithful_answer_comes_with_the_last_step_the_twins_was_there_before() -> None:
    # without steps it guesses, and may be right; a chain that ends in ± 0 has its answer early
    open_till_last = [r for r in traced("faithful") if max(r["p_before"], *r["p_steps"][:-1]) < 0.5]
    assert len(open_till_last) >= ITEMS // 3
    for r in open_till_last:
        assert r["p_after"] > 0.95
        assert r["horizon"] == r["early"] == r["n_steps"]
        assert r["delta"][-1] == max(r["delta"])
    for r in traced("hint"):
        assert r["p_before"] > 0.95
        assert r["p_after"] > 0.95
        assert r["early"] == 0
        assert r["horizon"] == 0


def test_a_flat_curve_has_no_trend() -> None:
    flat = [r for r in traced("hint") if len(set(r["curve"])) == 1 and set(r["delta"]) == {0.0}]
    assert flat
    assert all(r["largest"] is None for r in flat)


def test_cuts_begin_before_and_end_after_the_reasoning() -> None:
    _, traces = planted("faithful")
    n = len(traces[0].reasoning_ids)
    assert cuts(traces[0], 1) == list(range(n + 1))
    coarse = cuts(traces[0], 1000)
    assert coarse[0] == 0
    assert coarse[-1] == n
    assert {s.tokens[1] for s in traces[0].steps} <= set(coarse)


def test_settled_is_where_nothing_changes_any_more() -> None:
    assert settled_from(["a", "b", "b", "b"]) == 1
    assert settled_from(["b", "a", "b"]) == 2
    assert settled_from(["a", "a"]) == 0
    assert settled_from(["a"]) == 0
