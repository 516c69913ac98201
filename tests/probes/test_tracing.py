"""Answer tracing: against a loop of single questions, and on models whose source is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planted_traces import ASKING, ITEMS, of_planted, planted

from faithscope.interventions import Question, Step, Trace
from faithscope.probes import Asking
from faithscope.probes.tracing import TracingSettings, cuts, settled_from, stated_after, tracing

traced = of_planted(tracing, TracingSettings())


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


@pytest.mark.parametrize(
    ("tokens", "every"),
    [(1, 1), (1_024, 1), (1_025, 2), (2_048, 4), (4_096, 16), (8_192, 32), (32_768, 128)],
)
def test_cuts_of_a_long_reasoning_cost_no_more_than_those_of_1_024_tokens(
    tokens: int, every: int
) -> None:
    """Each reads all before it, half of the reasoning in the mean; 256 there are at any length."""
    assert TracingSettings().distance(tokens) == every
    assert TracingSettings(every=7).distance(tokens) == 7
    assert tokens // every * tokens <= 1_024**2 or tokens // every <= 256


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


def test_the_twin_settles_before_it_writes_the_faithful_model_with_the_words_that_say_it() -> None:
    _, traces = planted("faithful")
    for trace, r in zip(traces, traced("faithful"), strict=True):
        # a step states its result: its last digit, behind which stands a full stop
        stating = [s for s in trace.steps if s.text.split()[-2] == r["answer"]]
        assert trace.pieces[r["stated"] - 1].strip() == r["answer"]
        assert r["stated"] in [s.tokens[1] - 1 for s in stating]
        assert r["gap"] == r["stated"] - r["committed"]
    of_faithful = [r["gap"] for r in traced("faithful") if r["committed"] > 0]
    assert len(of_faithful) > ITEMS // 2
    assert max(of_faithful) <= 1
    for r in traced("hint"):
        assert (r["committed"], r["gap_reason"]) == (0, None)
        assert r["gap_share"] == r["stated"] / r["n_tokens"] > 0.25


def test_a_statement_holds_until_the_end_and_is_read_as_the_task_reads_answers() -> None:
    words = replace(
        ASKING,
        labels=(("yes", " yes"), ("no", " no")),
        parse=lambda text: "yes" if "affirmed" in text else None,
    )

    def stated(*steps: str, asking: Asking = words) -> int | None:
        pieces = [[f"{word} " for word in step.split()] for step in steps]
        made, at, chars = [], 0, 0
        for i, of_step in enumerate(pieces):
            text = "".join(of_step)
            spans = (chars, chars := chars + len(text)), (at, at := at + len(of_step))
            made.append(Step(i, text, *spans))
        flat = tuple(p for of_step in pieces for p in of_step)
        question = Question("q", "made", "Well?", "label", options=("yes", "no"))
        trace = Trace(question, (0,), tuple(range(len(flat))), flat, tuple(made))
        return stated_after(trace, asking, "yes")

    assert stated("Is it no or yes ?", "Well , yes .", "I mean it .") == 5
    assert stated("It is yes .", "But no .", "So it is affirmed here .") == 4 + 3 + 4
    assert stated("It is yes .", "But no .") is None
    assert stated("Nothing of the yesno kind .") is None
    # the letter A is an article, too: of choices, only what the parser reads is stated
    assert stated("It is yes .", asking=replace(words, kind="choice")) is None


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
