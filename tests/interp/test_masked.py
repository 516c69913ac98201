"""Attention under a prepared mask is attention under the mask itself."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional

from faithscope.interp import masked as of_mask
from faithscope.interp.masked import mask_for, masked

QUERIES, TRUNK, OWN = 40, 600, 50


def _module(implementation: str = "faithscope_sdpa") -> Any:
    return SimpleNamespace(
        config=SimpleNamespace(_attn_implementation=implementation), training=False
    )


def _seen(trunk: int, heads: int = 1) -> torch.Tensor:
    """Queries that all see a trunk, and each some of the other keys and one of its own."""
    draw = torch.Generator().manual_seed(0)
    own = torch.rand(1, heads, QUERIES, OWN, generator=draw) > 0.5
    own[..., torch.arange(QUERIES), torch.arange(QUERIES)] = True
    own[..., 0, 1:] = False
    return torch.cat([torch.ones(1, heads, QUERIES, trunk, dtype=torch.bool), own], dim=-1)


@pytest.mark.parametrize("trunk", [0, 20, TRUNK])
@pytest.mark.parametrize("heads", [1, 6], ids=["all_heads", "heads_apart"])
@pytest.mark.parametrize("of_keys", [1, 2, 6])
@pytest.mark.parametrize("values", [16, 8])
def test_a_prepared_mask_hides_what_the_mask_hides(
    trunk: int, heads: int, of_keys: int, values: int
):
    draw = torch.Generator().manual_seed(1)
    seen = _seen(trunk, heads)
    q = torch.randn(1, 6, QUERIES, 16, generator=draw)
    k = torch.randn(1, of_keys, seen.shape[-1], 16, generator=draw)
    v = torch.randn(1, of_keys, seen.shape[-1], values, generator=draw)
    with torch.inference_mode():
        mask = mask_for(_module(), seen, q, k, v)
        found, _ = masked(_module(), q, k, v, mask, scaling=0.3)
    whole = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=seen, scale=0.3, enable_gqa=of_keys != 6
    )
    assert (mask.shape[-1] < seen.shape[-1]) == (trunk == TRUNK and values == 16)
    torch.testing.assert_close(found, whole.transpose(1, 2), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("trunk", [20, TRUNK])
@pytest.mark.parametrize("implementation", ["faithscope_sdpa", "faithscope_eager"])
def test_a_trunk_that_is_stated_is_as_one_that_is_found(trunk: int, implementation: str):
    seen, module = _seen(trunk), _module(implementation)
    q, k = torch.zeros(1, 2, QUERIES, 8), torch.zeros(1, 1, QUERIES, 8)
    with torch.inference_mode():
        found = mask_for(module, seen, q, k, k)
        stated = mask_for(module, seen[..., trunk:], q, k, k, trunk)
    assert torch.equal(found, stated)


def test_keys_that_one_query_does_not_see_are_not_left_out_of_the_mask():
    seen = _seen(TRUNK)
    seen[0, 0, 3, 300] = False
    q, k = torch.zeros(1, 2, QUERIES, 8), torch.zeros(1, 1, QUERIES, 8)
    with torch.inference_mode():
        mask = mask_for(_module(), seen, q, k, k)
    assert mask.shape[-1] == seen.shape[-1] - 300
    assert bool((mask[0, 0, 3, 0] < -1e30) & (mask[0, 0, QUERIES + 3, 0] < -1e30))


def test_where_gradients_are_kept_every_key_stays_under_the_mask():
    seen, q, k = _seen(TRUNK), torch.zeros(1, 2, QUERIES, 8), torch.zeros(1, 1, QUERIES, 8)
    assert mask_for(_module(), seen, q, k, k).shape[-1] == seen.shape[-1]


def test_a_large_mask_stays_a_mask_of_booleans():
    """Numbers for every head of keys would take hundreds of MiB at 16,000 keys."""
    seen = _seen(2_000)
    seen[..., :10] = False
    draw = torch.Generator().manual_seed(1)
    q = torch.randn(1, 4, QUERIES, 16, generator=draw)
    k, v = (torch.randn(1, 2, seen.shape[-1], 16, generator=draw) for _ in range(2))
    with torch.inference_mode():
        mask = mask_for(_module(), seen, q, k, v)
        found, _ = masked(_module(), q, k, v, mask)
    assert mask.nbytes == seen.nbytes
    whole = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
    torch.testing.assert_close(found, whole.transpose(1, 2), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("kernel", ["missing", "other_sums", "refusing"])
def test_a_kernel_that_tells_other_sums_is_not_taken(monkeypatch: pytest.MonkeyPatch, kernel: str):
    usual = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu

    def other(*args: Any, **options: Any) -> Any:
        if kernel == "refusing":
            raise RuntimeError("no kernel")
        out, sums = usual(*args, **options)
        return out, sums.exp2()

    aten = SimpleNamespace()
    if kernel != "missing":
        aten._scaled_dot_product_flash_attention_for_cpu = other
    of_mask._joins.cache_clear()
    monkeypatch.setattr(of_mask.torch, "ops", SimpleNamespace(aten=aten))
    seen, q, k = _seen(TRUNK), torch.zeros(1, 2, QUERIES, 8), torch.zeros(1, 1, QUERIES, 8)
    try:
        with torch.inference_mode():
            assert not of_mask._joins()
            assert mask_for(_module(), seen, q, k, k).shape[-1] == seen.shape[-1]
    finally:
        of_mask._joins.cache_clear()


@pytest.mark.parametrize("heads", [1, 6], ids=["all_heads", "heads_apart"])
@pytest.mark.parametrize("of_keys", [1, 2, 6])
def test_a_kernel_that_adds_a_bias_gets_the_mask_whole(heads: int, of_keys: int):
    """Families with a bias by position hand it to transformers' own kernel."""
    draw = torch.Generator().manual_seed(3)
    seen = _seen(TRUNK, heads)
    q = torch.randn(1, 6, QUERIES, 16, generator=draw)
    k, v = (torch.randn(1, of_keys, seen.shape[-1], 16, generator=draw) for _ in range(2))
    bias = torch.randn(1, 6, QUERIES, seen.shape[-1], generator=draw)
    module = _module()
    module.num_key_value_groups = 6 // of_keys
    with torch.inference_mode():
        mask = mask_for(module, seen, q, k, v)
        found, _ = masked(module, q, k, v, mask, position_bias=bias)
    hidden = bias.masked_fill(~seen, -torch.inf)
    whole = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=hidden, enable_gqa=of_keys != 6
    )
    torch.testing.assert_close(found, whole.transpose(1, 2), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions(dtype: torch.dtype):
    draw = torch.Generator().manual_seed(2)
    seen = _seen(TRUNK)
    q = torch.randn(1, 4, QUERIES, 16, generator=draw).to(dtype)
    k, v = (torch.randn(1, 2, seen.shape[-1], 16, generator=draw).to(dtype) for _ in range(2))
    with torch.inference_mode():
        found, _ = masked(_module(), q, k, v, mask_for(_module(), seen, q, k, v))
    exact = functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), attn_mask=seen, enable_gqa=True
    )
    assert found.dtype == dtype
    near = 1e-2 if dtype == torch.bfloat16 else 1e-12
    torch.testing.assert_close(found.double(), exact.transpose(1, 2), atol=near, rtol=near)
