"""Families against transformers without us: its own attention, masks and `generate`."""

import pytest
import torch
from families import bushy, plain_logits, service
from tiny_models import NO_TREE, WINDOWED, tiny
from transformers import GenerationConfig
from transformers.masking_utils import (
    bidirectional_mask_function,
    causal_mask_function,
    chunked_causal_mask_function,
    sliding_window_causal_mask_function,
)

from faithscope.interp import attention
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch
from faithscope.interp.masks import Reach, reach_of
from faithscope.interp.model import Model


@torch.inference_mode()
def plain_generate(model: Model, prompt, n: int) -> list[int]:
    ids = torch.tensor([list(prompt)])
    options = GenerationConfig(max_new_tokens=n, do_sample=False)
    with attention.plain(model.hf):
        out = model.hf.generate(ids, attention_mask=torch.ones_like(ids), generation_config=options)
    return out[0, ids.shape[1] :].tolist()


@torch.inference_mode()
def plain_rows(model: Model, ids) -> torch.Tensor:
    """(L, H, P) attention of the last token, by the family's own eager attention."""
    name = model.hf.config._attn_implementation
    model.hf.set_attn_implementation("eager")
    try:
        out = model.hf(torch.tensor([list(ids)]), output_attentions=True, use_cache=False)
    finally:
        model.hf.set_attn_implementation(name)
    return torch.stack([a[0, :, -1] for a in out.attentions])


@pytest.mark.in_time(4)
@pytest.mark.parametrize("family", WINDOWED)
def test_windows_and_chunks_are_those_of_the_masks(family: str):
    row = service(family)
    assert row.how == "packed"
    assert row.gap is not None
    assert row.gap < 1e-4


@pytest.mark.in_time(1)
@pytest.mark.parametrize("family", ["phimoe", "qwen2_moe", "llama4_chunks"])
def test_dense_runs_rows_and_decoding_see_no_further(family: str):
    model = tiny(family)
    prompts = [s[:n] for s, n in zip(bushy(5, n=4), (3, 9, 20, 1), strict=True)]
    for prompt, written in zip(prompts, model.generate(prompts, 24), strict=True):
        assert list(written.ids) == plain_generate(model, prompt, 24)
    branches = [Branch(s) for s in bushy(2)]
    dense = model.run(branches, execution="dense").branches
    rows = model.run(branches, rows=True).branches
    for branch, read, row in zip(branches, dense, rows, strict=True):
        assert float((plain_logits(model.hf, branch.ids)[-1] - read.logits[0]).abs().max()) < 1e-4
        assert float((plain_rows(model, branch.ids) - row.rows[0]).abs().max()) < 1e-5


@pytest.mark.in_time(1)
@pytest.mark.parametrize("family", NO_TREE)
def test_loop_continuations_are_those_of_generate(family: str):
    model = tiny(family)
    for prompt in [s[:n] for s, n in zip(bushy(5, n=3), (3, 20, 1), strict=True)]:
        (written,) = model.generate([prompt], 16)
        assert list(written.ids) == plain_generate(model, prompt, 16)


def test_what_the_checkpoint_adds_to_generation_is_left_out():
    model = tiny("bamba")
    (free,) = model.generate([[5, 6, 7]], 8)
    model.hf.generation_config = GenerationConfig(
        repetition_penalty=5.0, eos_token_id=free.ids[0], max_length=4
    )
    assert model.generate([[5, 6, 7]], 8)[0].ids == free.ids


@pytest.mark.parametrize(
    ("reach", "seen"),
    [
        (Reach(), [0, 1, 2, 3, 4, 5, 6]),
        (Reach(window=3), [4, 5, 6]),
        (Reach(chunk=4), [4, 5, 6]),
    ],
)
def test_reaches_are_read_from_the_mask_functions_of_transformers(reach: Reach, seen):
    rule = {
        Reach(): causal_mask_function,
        Reach(window=3): sliding_window_causal_mask_function(3),
        Reach(chunk=4): chunked_causal_mask_function(4, torch.zeros(1, dtype=torch.long)),
    }[reach]
    assert reach_of(rule, reach.window or reach.chunk) == reach
    keys = torch.arange(10)
    assert keys[reach.sees(torch.tensor(6), keys)].tolist() == seen


def test_a_mask_that_sees_later_tokens_has_no_reach():
    assert reach_of(bidirectional_mask_function, None) is None
    with pytest.raises(UserError, match="looks ahead"):
        tiny("gemma3", use_bidirectional_attention=True)
