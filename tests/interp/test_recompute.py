"""A text with a span left out, of which chosen later tokens are computed anew."""

from __future__ import annotations

import random
from typing import Any

import emulated_devices
import launches
import pytest
import torch
from tiny_models import WINDOWED, tiny
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from faithscope.interp import attention_sums
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


@pytest.mark.in_time(3)
@pytest.mark.parametrize("keys", [256, 8])
@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt_oss"])
def test_attention_to_spans_is_that_of_the_rows(
    family: str, keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_sums, "_KEYS", keys)
    monkeypatch.setattr(attention_sums, "WEIGHTS", 1_000)
    model = tiny(family)
    model.chunk = 25
    # one that others lie in, and one of a single token
    cuts = (*CUTS[1:], (3, 40), (58, 59))
    text = CachedText.of(model, TEXT, cuts, since=55)
    rows = model.run([Branch(TEXT, ask=tuple(range(len(TEXT))))], rows=True).branches[0]
    mean = rows.pattern.mean(dim=(0, 1))
    spans = torch.stack([mean[:, a:b].sum(1) for a, b in cuts], dim=1)
    assert text.seen == pytest.approx(spans.numpy(), abs=1e-6)
    assert text.read == pytest.approx(mean[55:].mean(0).numpy(), abs=1e-6)


class ToHost(TorchDispatchMode):
    """Notes the numbers of values that are copied from a device to the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = [x for x in tree_leaves([args, kwargs]) if isinstance(x, torch.Tensor)]
        if isinstance(out, torch.Tensor) and out.device.type == "cpu":
            self.sizes += [out.numel()] * any(x.device.type != "cpu" for x in given)
        return out


@pytest.mark.takes("an emulated device computes slowly")
def test_attention_to_spans_is_summed_on_the_device() -> None:
    emulated_devices.require()
    model, here = (launches.narrow(at, 3) for at in ("emulated:0", "cpu"))
    model.chunk, text = 40, [i % 200 for i in TEXT]
    with ToHost() as noted:
        read = CachedText.of(model, text, CUTS[1:], since=55)
    of_here = CachedText.of(here, text, CUTS[1:], since=55)
    assert read.seen == pytest.approx(of_here.seen, abs=1e-5)
    assert read.read == pytest.approx(of_here.read, abs=1e-5)
    # once a forward, not once a layer: each token's to the spans, and the last tokens' to each
    once = [3 * 40, 40, 3 * 20, 60]
    assert [n for n in noted.sizes if n > len(CUTS) ** 2] == once


def test_fresh_tokens_lie_after_the_span_and_end_the_text() -> None:
    text = CachedText.of(tiny("llama"), TEXT)
    for fresh in ((), (3, 59), (40, 58)):
        with pytest.raises(ValueError, match="must lie after the span"):
            text.ask([Omission((4, 9), fresh)], LABELS)


@pytest.mark.parametrize("family", ["gpt2", "llama4_chunks", "gptj"])
def test_models_without_known_rotary_positions_are_refused(family: str) -> None:
    with pytest.raises(UserError, match=r"steps\.screen"):
        CachedText.of(tiny(family), TEXT)
