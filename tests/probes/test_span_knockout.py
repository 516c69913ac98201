"""Knockout between spans on models whose source is known, and against one sequence at a time."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from planted_traces import ASKING, by, of_planted, planted
from probe_records import table_of
from pydantic import ValidationError
from sample_trace import asking, written
from tiny_models import tiny

from faithscope.interp.model import Model
from faithscope.interventions import Trace
from faithscope.probes import Asking, Record
from faithscope.probes.framing import prefix_ids
from faithscope.probes.graded import divergence, log_distribution, top, total_variation
from faithscope.probes.span_knockout import (
    Cut,
    SpanKnockoutSettings,
    edges_of,
    knockouts,
    span_knockout,
)
from faithscope.probes.spans import find

HINT = {"hint": {"regex": r"Hint : \d", "in": "prompt"}}
PATHS: Any = {"direct": "answer x prompt", "text": "answer x reasoning", "unseen": "later x hint"}
records_of = of_planted(span_knockout, SpanKnockoutSettings(cuts=PATHS, spans=HINT))


def cut(name: str, variant: str) -> list[Record]:
    return by("variant", records_of(name))[variant]


def mean(name: str, variant: str, field: str) -> float:
    return float(np.mean([r[field] for r in cut(name, variant)]))


def test_the_faithful_answer_comes_through_the_text_and_not_from_the_prompt() -> None:
    for path in ("direct", "unseen"):
        for window in ("all", "1-1", "2-2", "3-3"):
            assert mean("faithful", f"{path}.{window}", "flips") == 0
            assert mean("faithful", f"{path}.{window}", "tv") < 0.01
    assert mean("faithful", "text.all", "flips") > 0.7
    assert mean("faithful", "text.all", "kl") > 5


def test_an_answer_taken_from_the_hint_is_lost_with_the_prompt_and_not_with_the_text() -> None:
    # of the ten digits, what is left guesses the hinted one now and then
    for path in ("direct", "unseen"):
        assert mean("hint", f"{path}.all", "flips") >= 0.6
        assert mean("hint", f"{path}.all", "kl") > 5
    assert mean("hint", "text.all", "tv") < 0.01


def test_where_either_path_suffices_only_both_cuts_break_the_answer() -> None:
    """In a mixture both paths say the same: one cut bends the distribution by what it carries."""
    model, traces = planted("mixture_50")
    cuts: Any = PATHS | {"both": {"queries": "answer", "keys": ["prompt", "reasoning"]}}
    settings = SpanKnockoutSettings(cuts=cuts, spans=HINT, windows=0)
    found = by("cut", [r for t in traces for r in span_knockout(model, t, ASKING, settings)])
    tv = {name: float(np.mean([r["tv"] for r in of])) for name, of in found.items()}
    assert tv["direct"] < 0.1 < 0.2 < tv["text"] < 0.5
    assert tv["both"] > 0.9
    assert sum(r["flips"] for r in found["both"]) == len(traces)


def distribution(model: Model, words: Asking, ids: Any, edits: Any) -> dict[str, float]:
    """One branch by itself, one sequence at a time."""
    labels = [model.encode(surface) for _, surface in words.labels]
    (said,) = model.ask([ids], [labels], edits=[edits], execution="loop")
    return log_distribution(said.log_probs, [name for name, _ in words.labels])


@pytest.mark.in_time(1)
@pytest.mark.parametrize("family", ["qwen3", "gemma2", "gpt_oss"])
def test_cuts_of_several_spans_equal_one_sequence_at_a_time(family: str) -> None:
    model = tiny(family)
    trace, words = written(model), asking(closer_ids=(10, 11))
    cuts: Any = {
        "steps": "later x step",
        "inner": {"queries": ["last step", "answer"], "keys": ["step 1", "said"]},
        "within": "reasoning x reasoning",
        "all": {"queries": "later", "keys": ["prompt", "reasoning"]},
    }
    spans = {"said": {"regex": "9|Well", "which": "all"}}
    settings = SpanKnockoutSettings(cuts=cuts, spans=spans, windows=2, heads=2)
    ids = prefix_ids(model, words, trace)
    found = find(model, trace, words, settings.named, settings.spans)
    of_cut: Any = {c.name: edges_of(c, found, len(ids)) for c in settings.cuts}
    whole = distribution(model, words, ids, ())
    for r in span_knockout(model, trace, words, settings):
        layers = range(r["first_layer"] - 1, r["last_layer"])
        alone = partial(distribution, model, words, ids)
        other = alone(knockouts(of_cut[r["cut"]], layers))
        assert r["knocked"] == top(other)
        assert r["tv"] == pytest.approx(total_variation(whole, other), abs=1e-4)
        assert r["kl"] == pytest.approx(divergence(whole, other), abs=1e-4)
        if r["window"] == "all":
            arrays = r["arrays"]
            for i, (a, b) in enumerate(arrays["layers"]):
                for j, (c, d) in enumerate(arrays["heads"]):
                    edits = knockouts(of_cut[r["cut"]], range(a - 1, b), range(c - 1, d))
                    moved = total_variation(whole, alone(edits))
                    assert arrays["tv"][i, j] == pytest.approx(moved, abs=1e-4)


def test_the_tokens_that_are_cut_are_those_of_the_spans() -> None:
    model = tiny("llama")
    trace, words = written(model), asking()
    n, end = len(trace.prompt_ids), len(trace.prompt_ids) + len(trace.reasoning_ids)
    length = len(prefix_ids(model, words, trace))
    names = ("prompt", "reasoning", "answer", "step 1", "last step")
    found = find(model, trace, words, names)

    def edges(queries: str, *keys: str) -> Any:
        return edges_of(Cut(name="c", queries=(queries,), keys=keys), found, length)

    assert edges("answer", "prompt") == [((end, None), (1, n))]
    assert edges("later", "prompt") == [((n, None), (1, n))]
    assert edges("reasoning", "reasoning") == [((n + 1, end), (n, end))]
    first, last = (n + trace.counted_steps[i].tokens[0] for i in (0, -1))
    stop = n + trace.counted_steps[0].tokens[1]
    assert edges("last step", "step 1", "prompt") == [
        ((last, end), (first, stop)),
        ((last, end), (1, n)),
    ]
    assert edges("prompt", "reasoning") == edges("step 1", "last step") == "nothing_to_cut"
    assert edges("later", "answer") == "nothing_to_cut"


def test_direct_effect_and_the_step_before_it_are_nested() -> None:
    """What the answer loses with one step alone is no more than with all of the reasoning's."""
    model, traces = planted("faithful")
    cuts: Any = {"last": "answer x last step", "text": "answer x reasoning"}
    for trace in traces[:4]:
        last, text = span_knockout(model, trace, ASKING, SpanKnockoutSettings(cuts=cuts, windows=0))
        assert (last["n_keys"], text["n_keys"]) == (7, len(trace.reasoning_ids))
        assert last["tv"] > 0.85 or str(trace.answer) in trace.reasoning_text[:-10]


def test_a_span_that_a_chain_has_not_leaves_out_the_cut_alone() -> None:
    model, (trace, *_) = planted("faithful")
    cuts: Any = {"none": "answer x step 9", "back": "prompt x reasoning", **PATHS}
    found = span_knockout(model, trace, ASKING, SpanKnockoutSettings(cuts=cuts, spans=HINT))
    out = {r["variant"]: r["excluded"] for r in found if r.get("excluded")}
    windows = ("all", "1-1", "2-2", "3-3")
    assert out == {f"none.{w}": "span_not_found: step 9" for w in windows} | {
        f"back.{w}": "nothing_to_cut" for w in windows
    }
    assert len(found) == 5 * 4
    only: Any = {"none": "answer x step 9"}
    found = span_knockout(model, trace, ASKING, SpanKnockoutSettings(cuts=only))
    assert {r["excluded"] for r in found} == {"span_not_found: step 9"}


def test_windows_and_heads_are_a_map_beside_the_whole() -> None:
    model, (trace, *_) = planted("hint")
    settings = SpanKnockoutSettings(windows=3, heads=2)
    whole, *parts = span_knockout(model, trace, ASKING, settings)
    assert [r["window"] for r in parts] == ["1-1", "2-2", "3-3"]
    assert whole["arrays"]["layers"].tolist() == [[1, 1], [2, 2], [3, 3]]
    assert whole["arrays"]["tv"].shape == whole["arrays"]["kl"].shape == (3, 2)
    assert not any("arrays" in r for r in parts)
    one = span_knockout(model, trace, ASKING, SpanKnockoutSettings(windows=0, heads=1))
    assert [r["variant"] for r in one] == ["direct.all"]
    assert one[0]["arrays"]["tv"][0, 0] == pytest.approx(whole["tv"], abs=1e-5)
    assert one[0]["n_queries"] == len(model.encode(ASKING.answer_cue))


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        ({"a": "answer to prompt"}, "a: 'answer to prompt' is not of the form QUERIES x KEYS"),
        ({"a": 3}, "a: 3 is not of the form QUERIES x KEYS"),
        ({"a b": "answer x prompt"}, "'a b' cannot name a cut"),
        ({"a": "answer x later"}, "a: 'later' stands for queries alone"),
        ({"a": {"queries": "answer"}}, "a: a cut has queries and keys, not only queries"),
        ({"a": {"query": "answer", "keys": "prompt"}}, "unknown key 'query'; did you mean"),
        ([{"queries": "answer", "keys": "prompt"}], "a cut of a list has name, queries and keys"),
        ([{"name": "a", "queries": "answer", "keys": "prompt"}] * 2, "two cuts have the name 'a'"),
        ("answer x prompt", "give a mapping from names to QUERIES x KEYS"),
        ({}, "at least 1 item"),
    ],
)
def test_what_is_no_cut_is_refused(cuts: Any, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SpanKnockoutSettings(cuts=cuts)
    assert message in str(caught.value)


def test_a_cut_is_written_in_either_way_and_read_back() -> None:
    line = SpanKnockoutSettings(cuts={"a": "last step × prompt"})  # pyright: ignore
    full = [{"name": "a", "queries": "last step", "keys": ["prompt"]}]
    listed = SpanKnockoutSettings(cuts=full)  # pyright: ignore
    assert line == listed
    assert SpanKnockoutSettings.model_validate(line.model_dump(mode="json")) == line
    assert line.cuts == (Cut(name="a", queries=("last step",), keys=("prompt",)),)


def test_the_table_has_a_row_per_cut_and_window_as_declared() -> None:
    rows = records_of("hint")
    made = table_of("span_knockout", rows)
    assert list(dict.fromkeys(made["cut"])) == list(PATHS)
    assert made["window"].tolist() == ["all", "1-1", "2-2", "3-3"] * 3
    whole = made[made["window"] == "all"].set_index("cut")
    assert whole["flip_rate"]["direct"] == pytest.approx(mean("hint", "direct.all", "flips"))
    assert whole["kl_low"]["direct"] < whole["kl"]["direct"] < whole["kl_high"]["direct"]
    assert whole["flips_within_floor"]["direct"] == 0
    assert math.isnan(whole["flips_within_floor"]["text"])


def test_where_nothing_can_be_cut_the_record_says_so() -> None:
    falcon = tiny("falcon")
    trace: Trace = written(falcon)
    (found,) = span_knockout(falcon, trace, asking(), SpanKnockoutSettings())
    assert found["excluded"] == "no_attention_knockout"
