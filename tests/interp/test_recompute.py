"""A text with a span left out, of which chosen later tokens are computed anew."""

from __future__ import annotations

import random

import pytest
import torch
from tiny_models import WINDOWED, tiny

from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch
from faithscope.interp.recompute import CachedText, Omission

FAMILIES = ("llama", "phi3", "gemma3", "gpt_oss", "cohere", "smollm3", "deepseek_v3", *WINDOWED)
LABELS = [(7, 9), (7, 11, 3), (12,)]
OF_LABELS = 2
"""Tokens that are run for the labels: (7) and (7, 11)."""
TEXT = tuple(random.Random(3).choices(range(5, 250), k=60))
CUTS = ((0, 0), (4, 9), (20, 33), (50, 58))


@pytest.mark.in_time(4)
@pytest.mark.parametrize("family", sorted({*FAMILIES} - {"llama4_chunks"}))
def test_all_later_tokens_anew_are_the_text_without_the_span(family: str) -> None:
    model = tiny(family)
    model.chunk = 48
    text = CachedText.of(model, TEXT)
    omissions = [Omission(cut, tuple(range(cut[1], len(TEXT)))) for cut in CUTS]
    scores, run = text.ask(omissions, LABELS)
    prefixes = [TEXT[:a] + TEXT[b:] for a, b in CUTS]
    expected = model.ask(prefixes, [LABELS] * len(prefixes))
    for own, of_model in zip(scores, expected, strict=True):
        assert own == pytest.approx(of_model.log_probs, abs=2e-3)
    assert run == sum(len(TEXT) - b + OF_LABELS for _, b in CUTS)


@pytest.mark.parametrize("family", ["llama", "cohere", "phi3"])
def test_in_one_layer_no_later_token_depends_on_the_span(family: str) -> None:
    model = tiny(family, num_hidden_layers=1)
    text = CachedText.of(model, TEXT)
    last = len(TEXT) - 1
    scores, run = text.ask([Omission(cut, (last,)) for cut in CUTS], LABELS)
    prefixes = [TEXT[:a] + TEXT[b:] for a, b in CUTS]
    expected = model.ask(prefixes, [LABELS] * len(prefixes))
    for own, of_model in zip(scores, expected, strict=True):
        assert own == pytest.approx(of_model.log_probs, abs=2e-3)
    assert run == len(CUTS) * (1 + OF_LABELS)


def test_tokens_that_are_not_computed_anew_keep_what_they_were_computed_from() -> None:
    model = tiny("llama")
    text, last = CachedText.of(model, TEXT), len(TEXT) - 1
    cut = CUTS[1]
    few, some, every = (
        torch.tensor(text.ask([Omission(cut, (*fresh, last))], LABELS)[0][0])
        for fresh in ((), range(cut[1], 30), range(cut[1], last))
    )
    assert not torch.allclose(few, every, atol=1e-4)
    assert not torch.allclose(some, few, atol=1e-4)
    assert (some - every).abs().max() < (few - every).abs().max()


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt_oss"])
def test_attention_to_spans_is_that_of_the_rows(family: str) -> None:
    model = tiny(family)
    model.chunk = 25
    text = CachedText.of(model, TEXT, CUTS[1:], since=55)
    rows = model.run([Branch(TEXT, ask=tuple(range(len(TEXT))))], rows=True).branches[0]
    mean = rows.pattern.mean(dim=(0, 1))
    spans = torch.stack([mean[:, a:b].sum(1) for a, b in CUTS[1:]], dim=1)
    assert text.seen == pytest.approx(spans.numpy(), abs=1e-4)
    assert text.read == pytest.approx(mean[55:].mean(0).numpy(), abs=1e-4)


def test_fresh_tokens_lie_after_the_span_and_end_the_text() -> None:
    text = CachedText.of(tiny("llama"), TEXT)
    for fresh in ((), (3, 59), (40, 58)):
        with pytest.raises(ValueError, match="must lie after the span"):
            text.ask([Omission((4, 9), fresh)], LABELS)


@pytest.mark.parametrize("family", ["gpt2", "llama4_chunks", "gptj"])
def test_models_without_known_rotary_positions_are_refused(family: str) -> None:
    with pytest.raises(UserError, match=r"steps\.screen"):
        CachedText.of(tiny(family), TEXT)
