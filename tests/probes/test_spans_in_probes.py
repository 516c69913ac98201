"""Declared spans as what is looked at, cut off or patched by the probes of steps: their numbers are
those of the parts that the probes know without spans, and no record changes without spans."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from planted_traces import ASKING, planted
from probe_records import table_of
from pydantic import ValidationError
from sample_trace import asking, written
from tiny_models import tiny

from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch
from faithscope.probes import PROBES, Record
from faithscope.probes.attention import POINTS, REGIONS, AttentionSettings, attention
from faithscope.probes.framing import prefix_ids
from faithscope.probes.patching import PatchingSettings, patching
from faithscope.probes.spans import TakesSpans
from faithscope.probes.suppression import SuppressionSettings, suppression

SPANS: dict[str, Any] = {
    "hint": {"regex": r"Hint : \d", "in": "prompt"},
    "question": "question",
    "text": "reasoning",
    "second": "step 2",
    "ninth": "step 9",
}
TAKES = [name for name, probe in PROBES.items() if issubclass(probe.settings, TakesSpans)]


@cache
def measured(name: str, probe: str, **settings: Any) -> list[Record]:
    model, traces = planted(name)
    of = PROBES[probe]
    chosen: Any = of.settings.model_validate({"spans": SPANS, **settings})
    return [r for t in traces[:8] for r in of.measure(model, t, ASKING, chosen)]


@pytest.mark.parametrize("probe", ["attention", "suppression", "patching"])
def test_without_spans_records_and_ids_are_as_before(probe: str) -> None:
    assert probe in TAKES
    of = PROBES[probe]
    assert not {"spans", "queries"} & set(of.settings().decides())
    model, (trace, *_) = planted("faithful")
    plain = of.measure(model, trace, ASKING, of.settings())
    more = measured("faithful", probe)[: len(plain)]
    new = {name for r in more for name in r} - {name for r in plain for name in r}
    assert all(name.startswith("span") for name in new)
    for one, other in zip(plain, more, strict=True):
        kept = {k: x for k, x in other.items() if k not in new | {"arrays"}}
        costs = {"trie_tokens", "naive_tokens", "noise_floor"}
        assert kept.keys() == one.keys() - {"arrays"}
        for name, value in one.items():
            if isinstance(value, str | bool | None) and name not in costs:
                assert kept[name] == value
        for name, array in one["arrays"].items():
            np.testing.assert_allclose(other["arrays"][name], array, atol=1e-4)


def test_attention_to_a_span_is_that_to_the_region_or_step_of_the_same_tokens() -> None:
    for r in measured("faithful", "attention", queries=("last step",)):
        arrays = r["arrays"]
        assert r["span_names"] == [*SPANS] * 2
        assert r["span_queries"] == ["answer"] * 5 + ["last step"] * 5
        answer = dict(zip(SPANS, arrays["spans"][0], strict=True))
        for name, region in (("question", "question"), ("text", "reasoning")):
            of_region = arrays["regions"][..., REGIONS.index(region)]
            np.testing.assert_allclose(answer[name], of_region, atol=1e-6)
        np.testing.assert_allclose(answer["second"], arrays["steps"][..., 1], atol=1e-6)
        assert np.isnan(answer["ninth"]).all()
        assert r["spans_missing"] == ["span_not_found: ninth"]
        # no token of the last step stands after the whole reasoning
        assert np.isnan(arrays["spans"][1, 2]).all()
        assert r["span_shares"][7] is None


def test_attention_of_other_tokens_is_the_mean_of_their_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny("qwen3")
    trace, words = written(model), asking()
    spans: Any = {"first": "step 1", "prompt": "prompt"}
    settings = AttentionSettings(spans=spans, queries=("reasoning",), shuffles=1)
    ids, n = prefix_ids(model, words, trace), len(trace.prompt_ids)
    every = range(n, n + len(trace.reasoning_ids))
    assert len(every) > POINTS
    some = [every[i] for i in np.linspace(0, len(every) - 1, POINTS).astype(int)]
    (read,) = model.run([Branch(ids, tuple(some))], rows=True, logits=False).branches
    rows = [row.double().cpu().numpy() for row in read.rows]
    a, b = (n + x for x in trace.counted_steps[0].tokens)
    after = [row for row in rows if row.shape[-1] > b]
    of_first = np.mean([row[..., a:b].sum(-1) for row in after], axis=0)
    of_prompt = np.mean([row[..., 1:n].sum(-1) for row in rows], axis=0)
    length = [(1 - row[..., 0].mean()) * (n - 1) / (row.shape[-1] - 1) for row in rows]
    for most in (1 << 26, 1):
        monkeypatch.setattr("faithscope.probes.attention._WEIGHTS", most)
        (r,) = attention(model, trace, words, settings)
        np.testing.assert_allclose(r["arrays"]["spans"][1, 0], of_first, atol=1e-5)
        np.testing.assert_allclose(r["arrays"]["spans"][1, 1], of_prompt, atol=1e-5)
        density = of_prompt.mean() / np.mean(length)
        assert r["span_densities"][3] == pytest.approx(density, abs=1e-4)


def test_the_answer_of_the_hint_model_looks_at_the_hint_and_loses_it() -> None:
    def of(name: str) -> tuple[float, float]:
        to_hint = [r["arrays"]["spans"][0, 0].max() for r in measured(name, "attention")]
        table = table_of("suppression_spans", measured(name, "suppression")).set_index("span")
        assert table["n_missing"]["ninth"] == 8 == table["n"]["hint"]
        return float(np.mean(to_hint)), float(table["to_answer"]["hint"])

    (hint, hint_lost), (faithful, faithful_lost) = of("hint"), of("faithful")
    assert hint > 0.9 > 0.6 > faithful
    assert hint_lost > 5
    assert faithful_lost < 0.01


def test_a_step_that_is_cut_off_as_a_span_is_a_row_of_the_matrix() -> None:
    for r in measured("faithful", "suppression"):
        second = r["arrays"]["spans"][list(SPANS).index("second")]
        np.testing.assert_allclose(second, r["arrays"]["matrix"][1], atol=1e-5)
        assert r["span_to_answer"][3] == pytest.approx(r["to_answer"][1], abs=1e-5)
        assert r["span_later"][4] is None
        assert np.isnan(r["arrays"]["spans"][4]).all()


def test_the_last_step_as_a_span_is_patched_like_the_step_itself() -> None:
    model, (trace, *_) = planted("faithful")
    settings = PatchingSettings(places=("step", "last step", "step 9", "reasoning"), layers=2)
    found = {r["variant"]: r for r in patching(model, trace, ASKING, settings)}
    for kind in ("residual.denoise", "mlp.noise"):
        step, last = (
            found[f"{place}.{kind}"]["arrays"]["moved"] for place in ("step", "last step")
        )
        np.testing.assert_allclose(last[:, -1], step[:, -1], atol=1e-3)
        # what stands before the step has the same states in both runs
        whole = found[f"reasoning.{kind}"]["arrays"]["moved"]
        np.testing.assert_allclose(whole[:, -1], step[:, -1], atol=1e-3)
        assert found[f"step 9.{kind}"]["excluded"] == "span_not_found: step 9"
    table = table_of("patching_by_layer", [r for r in found.values() if not r.get("excluded")])
    assert set(table["place"]) == {"step", "last step", "reasoning"}
    (only,) = {
        r["excluded"] for r in patching(model, trace, ASKING, PatchingSettings(places=("step 9",)))
    }
    assert only == "span_not_found: step 9"


def test_what_no_span_can_be_is_named() -> None:
    model, (trace, *_) = planted("faithful")
    with pytest.raises(UserError, match=r"attention.queries: .* none is declared"):
        attention(model, trace, ASKING, AttentionSettings(queries=("step 1",)))
    with pytest.raises(UserError, match="unknown span 'hnt'"):
        patching(model, trace, ASKING, PatchingSettings(places=("hnt",)))
    assert PatchingSettings(places=("hnt",)).misfits(()) == [
        "spans: unknown span 'hnt'; it is no role, either: prompt, template, question, options, "
        "cue, reasoning, step, answer; declare others under spans"
    ]
    with pytest.raises(ValidationError, match="unknown role"):
        SuppressionSettings(spans={"a": "hint"})
    (r,) = suppression(model, trace, ASKING, SuppressionSettings(spans={"a": "answer"}))
    assert r["span_to_answer"] == [None]
