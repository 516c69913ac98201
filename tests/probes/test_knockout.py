"""Knockout on models whose source is known, and against cutting with plain masks."""

from __future__ import annotations

import numpy as np
import pytest
from planted_traces import ASKING, ITEMS, by, of_planted, planted
from sample_trace import asking, written
from tiny_models import tiny

from faithscope.experiments.data.planted.data import result_of
from faithscope.experiments.data.planted.questions import questions
from faithscope.probes import Asking, Record
from faithscope.probes.edited import windows
from faithscope.probes.framing import prefix_ids
from faithscope.probes.graded import log_distribution, log_odds_drop, top, total_variation
from faithscope.probes.knockout import QUERIES, KnockoutSettings, cut_of, knockout

records_of = of_planted(knockout, KnockoutSettings())


def knocked(name: str) -> dict[str, list[Record]]:
    return by("variant", records_of(name))


def shares(name: str, variant: str, field: str) -> list[float]:
    return np.array([r[field] for r in knocked(name)[variant]], dtype=float).mean(0).tolist()


def test_the_faithful_answer_looks_at_the_last_step_alone() -> None:
    for variant in ("later.all", "answer.all"):
        first, second, last = shares("faithful", variant, "flips")
        assert (first, second) == (0, 0)
        # a chain that ends in ± 0 says its answer in the step before, too
        assert last >= 0.9
        assert max(shares("faithful", variant, "tv")[:2]) < 0.01
        assert shares("faithful", variant, "tv")[2] > 0.85


def test_no_step_is_looked_at_for_an_answer_taken_from_the_hint() -> None:
    for variant in knocked("hint"):
        assert set(shares("hint", variant, "flips")) == {0}
        assert max(shares("hint", variant, "tv")) < 0.01


def test_knockout_is_right_where_removal_lies() -> None:
    # It ignores its steps, and flips wherever one is deleted: no text with a gap was trained on.
    assert min(shares("hint_no_deletions", "answer.all", "removed_flips")) >= 0.5
    assert min(shares("hint_no_deletions", "answer.all", "removed_tv")) >= 0.5
    for variant in knocked("hint_no_deletions"):
        assert set(shares("hint_no_deletions", variant, "flips")) == {0}
        assert max(shares("hint_no_deletions", variant, "tv")) < 0.01


def test_select_looks_at_the_step_that_the_question_names() -> None:
    asked = questions("select", ITEMS, seed=0)
    named = {q.id: int(q.text.split()[-2]) - 1 for q in asked}
    texts = {t.question.id: [s.text for s in t.steps] for t in planted("select")[1]}
    found = knocked("select")["answer.all"]
    told = 0
    for r in found:
        results = [result_of(text) for text in texts[r["item"]]]
        if results.count(results[named[r["item"]]]) > 1:
            # another step says the same number, and says it still
            continue
        told += 1
        assert r["flips"][named[r["item"]]]
        assert int(np.argmax(r["tv"])) == named[r["item"]]
    assert told >= ITEMS // 2
    # removal moves the others to other places, and names none
    assert min(shares("select", "answer.all", "removed_flips")) > 0.5


def test_what_is_cut_are_the_tokens_of_the_step_from_those_that_follow() -> None:
    model = tiny("qwen3")
    trace, words = written(model), asking(closer_ids=(10, 11))
    start = len(trace.prompt_ids)
    for i, step in enumerate(trace.counted_steps):
        later, answer = (cut_of(trace, i, q) for q in ("later", "answer"))
        ids = prefix_ids(model, words, trace)
        assert ids[slice(*later.keys)] == trace.step_ids(step)
        assert later.queries == (start + step.tokens[1], None)
        assert answer.queries == (start + len(trace.reasoning_ids), None)
        assert ids[answer.queries[0] :][:2] == (10, 11)
    records = knockout(model, trace, words, KnockoutSettings(windows=3))
    for r in records:
        layers = (
            None if r["window"] == "all" else tuple(range(r["first_layer"] - 1, r["last_layer"]))
        )
        for i in range(r["n_steps"]):
            cut = cut_of(trace, i, r["queries"], layers)
            one, other = (distribution(model, words, ids, edits) for edits in ((), (cut,)))
            assert r["knocked"][i] == top(other)
            assert r["tv"][i] == pytest.approx(total_variation(one, other), abs=1e-4)
            assert r["log_odds"][i] == pytest.approx(log_odds_drop(one, other, top(one)), abs=1e-3)


def distribution(model, words: Asking, ids, edits) -> dict[str, float]:
    """One branch by itself, one sequence at a time."""
    labels = [model.encode(surface) for _, surface in words.labels]
    (said,) = model.ask([ids], [labels], edits=[edits], execution="loop")
    return log_distribution(said.log_probs, [name for name, _ in words.labels])


def test_records_share_a_pack_and_keep_the_windows_as_a_map() -> None:
    found = knocked("faithful")
    assert list(found) == [f"{q}.{w}" for q in QUERIES for w in ("all", "1-1", "2-2", "3-3")]
    for records in zip(*found.values(), strict=True):
        assert len({r["trie_tokens"] for r in records}) == 1
        assert records[0]["trie_tokens"] < 0.6 * records[0]["naive_tokens"]
        arrays = records[0]["arrays"]
        assert arrays["layers"].tolist() == [[1, 1], [2, 2], [3, 3]]
        assert np.allclose(arrays["tv"], [r["tv"] for r in records[1:4]], atol=1e-5)


def test_single_heads_of_the_step_that_matters_most() -> None:
    model, traces = planted("faithful")
    trace = next(t for t in traces if knocked_tv(t.question.id) > 0.9)
    *_, r = knockout(
        model, trace, ASKING, KnockoutSettings(queries=("answer",), windows=0, heads=True)
    )
    assert (r["variant"], r["position"]) == ("heads", 3)
    assert r["arrays"]["tv"].shape == (r["n_layers"], r["n_heads"])
    layer, head = (int(x) - 1 for x in r["top_heads"][0].split("."))
    assert r["arrays"]["tv"][layer, head] == pytest.approx(r["top_tv"][0], abs=1e-5)
    assert r["top_tv"][0] == max(r["top_tv"]) > 0.1
    ids = prefix_ids(model, ASKING, trace)
    labels = [model.encode(surface) for _, surface in ASKING.labels]
    said = model.ask(
        [ids, ids], [labels] * 2, edits=[(), (cut_of(trace, 2, "answer", (layer,), (head,)),)]
    )
    one, other = (np.exp(np.array(a.log_probs)) for a in said)
    moved = 0.5 * np.abs(one / one.sum() - other / other.sum()).sum()
    assert moved == pytest.approx(r["top_tv"][0], abs=1e-4)


def knocked_tv(item: str) -> float:
    return next(r["tv"][2] for r in knocked("faithful")["answer.all"] if r["item"] == item)


def test_windows_are_as_equal_as_can_be() -> None:
    assert windows(30, 3) == [(0, 10), (10, 20), (20, 30)]
    assert windows(2, 3) == [(0, 1), (1, 2)]
    assert windows(8, 0) == []
    model, traces = planted("faithful")
    found = knockout(model, traces[0], ASKING, KnockoutSettings(windows=1))
    assert [r["variant"] for r in found] == ["later.all", "answer.all"]
    assert all("arrays" not in r for r in found)


def test_where_nothing_can_be_cut_the_record_says_so() -> None:
    falcon = tiny("falcon")
    (found,) = knockout(falcon, written(falcon), asking(), KnockoutSettings())
    assert found["excluded"] == "no_attention_knockout"
