"""Writing under a cut: on models whose source is known, and token by token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from planted_traces import ASKING, by, of_planted, planted
from probe_records import table_of
from pydantic import ValidationError
from sample_trace import asking, written
from tiny_models import tiny

from faithscope.interp.forest import Branch
from faithscope.probes import Record
from faithscope.probes.cut_writing import begins
from faithscope.probes.framing import prefix_ids
from faithscope.probes.span_knockout import (
    SpanKnockoutSettings,
    edges_of,
    knockouts,
    span_knockout,
)
from faithscope.probes.spans import find

HINT = {"hint": {"regex": r"Hint : \d", "in": "prompt"}}
CUTS: Any = {
    "direct": "answer x prompt",
    "text": "answer x reasoning",
    "unseen": "later x hint",
    "first": "later x step 1",
}
SETTINGS = SpanKnockoutSettings(cuts=CUTS, spans=HINT, windows=0, writes=True)
records_of = of_planted(span_knockout, SETTINGS)


def under(name: str, cut: str) -> list[Record]:
    return by("variant", records_of(name))[f"{cut}.written"]


def lost(name: str, cut: str) -> float:
    return float(np.mean([r["lost"] for r in under(name, cut)]))


@pytest.mark.slow
def test_what_is_written_after_the_reasoning_agrees_with_the_forced_answer() -> None:
    for name, direct, text in (("faithful", 0, 0.875), ("hint", 0.75, 0)):
        assert lost(name, "direct") == pytest.approx(direct, abs=0.15)
        assert lost(name, "text") == pytest.approx(text, abs=0.15)
        for cut in ("direct", "text"):
            scored = by("variant", records_of(name))[f"{cut}.all"]
            for r, forced in zip(under(name, cut), scored, strict=True):
                assert r["control_answers"] == [r["followed"]]
                assert r["answers"] == [forced["knocked"]]
                assert r["written_from"] == 21


def test_a_cut_that_begins_in_the_text_or_before_it_changes_what_is_written() -> None:
    traces = planted("hint")[1]
    for r, trace in zip(under("hint", "unseen"), traces, strict=True):
        assert r["written_from"] == 0
        # without the cut the model writes its own chain again
        assert r["control_texts"][0].strip().startswith(trace.reasoning_text)
        assert r["same_text"] == 0
    assert lost("hint", "unseen") > 0.6
    for r in under("hint", "first"):
        assert r["written_from"] == 7
        assert r["control_texts"][0].startswith(" So")
    # the steps are another, and the answer is the hint's all the same
    assert lost("hint", "first") == 0
    assert lost("faithful", "first") > 0.5
    assert np.mean([r["same_text"] for r in under("hint", "first")]) < 0.2


def test_a_text_under_a_cut_is_that_of_one_forward_per_token() -> None:
    model = tiny("qwen3")
    trace, words = written(model), asking()
    cuts: Any = {
        "first": "later x step 1",
        "both": {"queries": "later", "keys": ["prompt", "step 2"]},
    }
    settings = SpanKnockoutSettings(cuts=cuts, windows=0, writes=True, max_new_tokens=6)
    found = by("variant", span_knockout(model, trace, words, settings))
    ids = prefix_ids(model, words, trace)
    spans = find(model, trace, words, settings.named)
    for cut in settings.cuts:
        edges: Any = edges_of(cut, spans, len(ids))
        edits = knockouts(edges, range(model.n_layers))
        at = begins(trace, edits)
        assert isinstance(at, int)
        said = [*trace.prompt_ids, *trace.reasoning_ids[:at]]
        n = len(said)
        for _ in range(6):
            here = tuple(edit for edit in edits if edit.queries[0] < len(said))
            branch = Branch(tuple(said), (-1,), here)
            (read,) = model.run([branch], execution="loop").branches
            said.append(int(read.logits[0].argmax()))
        (r,) = found[f"{cut.name}.written"]
        assert r["texts"] == ["".join(model.pieces(said)[n:])]
        assert r["written_from"] == at


def test_draws_have_the_random_numbers_of_their_control() -> None:
    model, traces = planted("faithful")
    several = SETTINGS.model_copy(update={"samples": 4, "temperature": 1.5})
    found = by("cut", [r for t in traces[:4] for r in span_knockout(model, t, ASKING, several)])
    for r in found["direct"]:
        if r.get("reading") == "generated":
            assert len(r["texts"]) == len(r["control_texts"]) == 4
            # nothing that the answer needs is cut, so each draw is its control's
            assert r["same_text"] == 1
            assert r["tv"] == 0
    (one, *_), (other, *_) = (
        [r for r in span_knockout(model, traces[0], ASKING, several.model_copy(update=seed))]
        for seed in ({"seed": 0}, {"seed": 0})
    )
    assert one["control_texts"] == other["control_texts"]


def test_what_cannot_be_written_under_a_cut_says_why() -> None:
    model, (trace, *_) = planted("faithful")
    cuts: Any = {"a": "last step x step 1", "b": "later x step 9", "c": "answer x prompt"}
    settings = SpanKnockoutSettings(cuts=cuts, windows=0, writes=True)
    found = {r["variant"]: r for r in span_knockout(model, trace, ASKING, settings)}
    assert found["a.written"]["excluded"] == "cut_ends_before_the_text"
    assert found["b.written"]["excluded"] == "span_not_found: step 9"
    assert found["c.written"]["answers"] == [trace.answer]
    # free answers have no labels to score
    free = replace(ASKING, labels=())
    refused, *texts = span_knockout(model, trace, free, settings)
    assert refused["excluded"] == "fewer_than_2_labels"
    assert [r["variant"] for r in texts] == ["a.written", "b.written", "c.written"]


def test_settings_of_writing_decide_only_where_something_is_written() -> None:
    silent = SpanKnockoutSettings(temperature=1.0, samples=3, seed=4)
    assert silent.decides() == SpanKnockoutSettings().decides()
    one, other = (SpanKnockoutSettings(writes=True, seed=seed).decides() for seed in (1, 2))
    assert one != other
    with pytest.raises(ValidationError, match="2 texts at temperature 0 are one"):
        SpanKnockoutSettings(samples=2)


def test_the_table_compares_both_arms() -> None:
    table = table_of("span_writing", records_of("hint")).set_index("cut")
    assert list(table.index) == list(CUTS)
    assert table["lost"]["direct"] == pytest.approx(lost("hint", "direct"))
    assert (table["control_share"] == 1).all()
    assert "span_writing" not in table_of("span_knockout", records_of("hint"))["cut"].tolist()
    assert set(table_of("span_knockout", records_of("hint"))["window"]) == {"all"}
