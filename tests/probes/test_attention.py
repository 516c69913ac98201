"""Attention of the answer: against eager's own patterns, and on models whose source is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from planted_traces import ASKING, planted

from faithscope import interp
from faithscope.experiments.data.planted.data import ANSWER_CUE
from faithscope.interventions import Question, Trace, from_ids
from faithscope.probes import Asking
from faithscope.probes.attention import REGIONS, AttentionSettings, attention, question_span, spans
from faithscope.probes.framing import prefix_ids
from faithscope.probes.information import without_question


def asking(cue: str = ANSWER_CUE) -> Asking:
    return replace(ASKING, answer_cue=cue)


def random_trace(model: interp.Model, n: int = 4, length: int = 6) -> Trace:
    rng = np.random.default_rng(0)
    ids = tuple(int(x) for x in rng.integers(3, 200, n * length))
    pieces = tuple(f"{'Step' if i % length == 0 else 'word'} {i}" for i in range(len(ids)))
    pieces = tuple(p + (". " if i % length == length - 1 else " ") for i, p in enumerate(pieces))
    question = Question("q", "d", "How many?", "number", gold="1")
    prompt = model.encode("Say this. How many? Think.")
    made = from_ids(question, prompt, ids, pieces)
    assert len(made.counted_steps) == n
    return made


def test_shares_are_those_of_eagers_own_patterns(tree_model: interp.Model) -> None:
    model = tree_model
    trace, words = random_trace(model), asking(" So it is")
    (found,) = attention(model, trace, words, AttentionSettings(shuffles=2))
    ids = prefix_ids(model, words, trace)
    usual = model.hf.config._attn_implementation
    model.hf.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            patterns = model.hf(torch.tensor([ids]), output_attentions=True).attentions
    finally:
        model.hf.set_attn_implementation(usual)
    row = torch.stack([p[0, :, -1] for p in patterns]).double().numpy()
    start, stop = len(trace.prompt_ids), len(trace.prompt_ids) + len(trace.reasoning_ids)
    arrays = found["arrays"]
    reasoning = arrays["regions"][..., REGIONS.index("reasoning")]
    assert np.allclose(reasoning, row[..., start:stop].sum(-1), atol=1e-5)
    assert np.allclose(arrays["regions"].sum(-1), row.sum(-1), atol=1e-5)
    assert np.allclose(arrays["steps"].sum(-1), reasoning, atol=1e-5)
    assert found["real"] == pytest.approx(float(row[..., start:stop].sum(-1).mean()), abs=1e-5)
    assert arrays["shuffled"].shape == (2, *row.shape[:2])
    assert found["gap"] == pytest.approx(found["real"] - found["shuffled"], abs=2e-6)
    by_layer = found["reasoning_by_layer"]
    assert found["real_drop"] == pytest.approx(by_layer[0] - by_layer[-1], abs=3e-6)


def test_shuffled_shares_stay_with_their_steps(llama: interp.Model) -> None:
    (found,) = attention(llama, random_trace(llama), asking(" So"), AttentionSettings(shuffles=3))
    arrays = found["arrays"]
    assert np.allclose(arrays["shuffled_steps"].sum(-1), arrays["shuffled"], atol=1e-6)


def test_regions_tile_the_branch() -> None:
    model, traces = planted("faithful")
    words = asking()
    found = spans(model, traces[0], words)
    covered = sorted(i for parts in found.values() for a, b in parts for i in range(a, b))
    assert covered == list(range(len(prefix_ids(model, words, traces[0]))))
    assert found["question"]


def test_the_question_reaches_to_its_last_option() -> None:
    options = ("red wine", "beer")
    question = Question("q", "d", "What was it?", "choice", gold="A", options=options)
    trace = from_ids(question, (0,), (5,), ("x",))
    pieces = ("<s>", "What ", "was it", "?\n", "A. red", " wine\nB.", " beer", "\nThink")
    assert question_span(pieces, trace) == (1, 7)
    assert question_span(("other ", "words"), trace) is None


def test_a_question_begins_with_every_token_of_its_first_character(llama: interp.Model) -> None:
    """Each byte is a token here, and pieces before a character's last are empty."""
    text = "三盒 of 4 🖊, how many?"
    question = Question("q", "d", text, "number", gold="12")
    prompt = llama.encode(f"Hm. {text} Think.")
    trace = from_ids(question, prompt, (5,), ("x",))
    before, own = (len(x.encode()) for x in ("Hm. ", text))
    at = len(prompt) - len(f"Hm. {text} Think.".encode()) + before
    assert question_span(llama.pieces(prompt), trace) == (at, at + own)
    left = without_question(llama, trace)
    assert not isinstance(left, str)
    assert llama.decode(left).endswith("Hm.  Think.")


def test_the_answer_of_the_faithful_model_looks_at_its_last_step_the_twins_at_the_hint() -> None:
    def of(name: str) -> tuple[np.ndarray, np.ndarray]:
        model, traces = planted(name)
        found = [attention(model, t, asking(), AttentionSettings())[0] for t in traces]
        steps = np.mean([r["arrays"]["steps"].max(axis=(0, 1)) for r in found], axis=0)
        asked = REGIONS.index("question")
        return steps, np.mean([r["arrays"]["regions"][..., asked].max() for r in found])

    faithful_steps, faithful_question = of("faithful")
    hint_steps, hint_question = of("hint")
    # the head that looks hardest at each place
    assert faithful_steps[-1] > 0.95 > hint_steps[-1]
    assert hint_question > 0.95 > faithful_question


def test_the_gap_does_not_tell_the_planted_models_apart() -> None:
    """Kept as a test because it warns: shuffling moves what a head reads, not how much it
    reads of the reasoning, so the gap is near zero whether or not the steps are used."""

    def gap(name: str) -> float:
        model, traces = planted(name)
        found = [attention(model, t, asking(), AttentionSettings())[0] for t in traces]
        return float(np.mean([r["gap"] for r in found]))

    assert abs(gap("faithful")) < 0.05
    assert abs(gap("hint")) < 0.05


def test_a_model_without_rows_is_excluded(loop_model: interp.Model) -> None:
    (found,) = attention(loop_model, random_trace(loop_model), asking(" So"), AttentionSettings())
    assert found["excluded"] == "no_attention_rows"


def test_steps_that_are_all_the_same_are_excluded(llama: interp.Model) -> None:
    ids = (7, 8, 9, 10) * 2
    pieces = ("Twice it is ", "said the ", "same way ", "here. ") * 2
    question = Question("q", "d", "How many?", "number", gold="1")
    trace = from_ids(question, llama.encode("How many?"), ids, pieces)
    (found,) = attention(llama, trace, asking(" So"), AttentionSettings())
    assert found["excluded"] == "steps_have_one_order"
