"""Masked attention of one sequence by the module's kernel, laid out as each device likes it best.

A mask is made once for a forward (`mask_for`) and used in all layers (`masked`). On a CPU the query
heads that share a head of keys become queries of that head: keys are read once and never copied for
every query head, and a call has more rows to compute at once. Leading keys that every query
sees, as the trunk of a forest is, are attended to without a mask, and joined to the others by the
sums of their exponentials.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from einops import rearrange, repeat
from torch import Tensor, nn
from torch.nn import functional

from faithscope.interp.attention import is_eager, kernel
from faithscope.interp.masks import as_additive
from faithscope.interp.placement import sent

_FREE, _FOLDED = 256, 1_024
"""On a CPU: leading keys that all queries see, from which they are attended to without a mask; and
most keys left under one that is made for every head of keys, in numbers. A larger mask stays one of
booleans, which takes a byte for what those take 4 H / K for."""


def mask_for(
    module: nn.Module,
    seen: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    free: int | None = None,
) -> Tensor:
    """The mask that `masked` takes for the queries of `seen`, on their device.

    Args:
        seen: (1, 1 or H, n, P - free) bool, the keys that each query sees.
        query: (1, H, T, D), of which only heads, device and dtype are read.
        key: (1, K, T, D), of which only heads are read; `value` likewise.
        free: number of leading keys that every query sees and that `seen` leaves out; None if it
            leaves out none, and those are to be looked for in it.

    Returns:
        An additive mask, (1, 1 or H, n, P); for sdpa on a CPU `seen` itself, or, where few keys are
        left, an additive mask (1, 1 or K, H / K x n, P') of the queries of each head of keys,
        without the leading P - P' keys if every query sees them.
    """
    if query.device.type != "cpu" or is_eager(module):
        return as_additive(sent(_whole(seen, free or 0), query.device), query.dtype)
    # the joint has no gradient
    joins = query.shape[-1] == value.shape[-1] and not torch.is_grad_enabled() and _joins()
    if free is None and joins:
        free = int(seen.all(dim=2).all(dim=(0, 1)).long().cumprod(0)[:-1].sum())
        seen = seen[..., free:]
    if free and (free < _FREE or not joins or seen.shape[-1] > _FOLDED):
        seen = _whole(seen, free)
    if seen.shape[-1] > _FOLDED:
        return seen
    heads = key.shape[1]
    if seen.shape[1] > 1:
        seen = rearrange(seen, "1 (k g) n p -> 1 k (g n) p", k=heads)
    else:
        seen = repeat(seen, "1 1 n p -> 1 1 (g n) p", g=query.shape[1] // heads)
    return as_additive(seen, query.dtype)


def _whole(seen: Tensor, free: int) -> Tensor:
    """A mask of booleans with `free` keys before the others that all queries see."""
    return functional.pad(seen, (free, 0), value=True) if free else seen


def masked(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    *,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention of (1, H, n, D) queries to (1, K, P, D) keys under a mask of `mask_for`, as (1, n,
    H, D) outputs.

    CUDA's masked kernels know no shared heads: the H / K query heads that share a head of keys take
    the dimension of heads, and the heads of keys that of sequences.
    """
    odd = kwargs.get("dropout") or kwargs.get("position_bias") is not None
    if odd and query.device.type == "cpu" and not is_eager(module):
        mask = _unfolded(mask, query, key)
    if odd or is_eager(module):
        return kernel(module)(module, query, key, value, mask, scaling=scaling, **kwargs)
    if query.device.type == "cpu":
        out = _on_cpu(query, key, value, mask, scaling)
        return rearrange(out, "1 h n d -> 1 n h d").contiguous(), None
    q = rearrange(query, "1 (k g) n d -> k g n d", k=key.shape[1])
    k, v = (repeat(x, "1 k p d -> k g p d", g=q.shape[1]) for x in (key, value))
    if mask.shape[1] > 1:
        mask = rearrange(mask, "1 (k g) n p -> k g n p", k=key.shape[1])
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling)
    return rearrange(out, "k g n d -> 1 n (k g) d"), None


def _unfolded(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """A mask that `mask_for` made for sdpa on a CPU as one of (1, 1 or H, n, P)."""
    if mask.dtype == torch.bool:
        return mask
    whole = functional.pad(mask, (key.shape[2] - mask.shape[-1], 0))
    rows = whole.reshape(1, -1, query.shape[2], key.shape[2])
    return rows if rows.shape[1] == query.shape[1] else rows[:, :1]


def _on_cpu(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None
) -> Tensor:
    """(1, H, n, D) outputs."""
    attention = functional.scaled_dot_product_attention
    if mask.dtype == torch.bool:
        shared = query.shape[1] != key.shape[1]
        return attention(query, key, value, attn_mask=mask, scale=scaling, enable_gqa=shared)
    q = rearrange(query, "1 (k g) n d -> 1 k (g n) d", k=key.shape[1])
    free = key.shape[2] - mask.shape[-1]
    if free:
        out = _joint(q, key, value, mask, free, scaling)
    else:
        out = attention(q, key, value, attn_mask=mask, scale=scaling)
    return rearrange(out, "1 k (g n) d -> 1 (k g) n d", n=query.shape[2])


def _joint(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, free: int, scaling: float | None
) -> Tensor:
    """Attention to `free` keys without a mask and to the others under one, (1, K, n, D)."""
    # the kernel that sdpa takes on a CPU, which also tells the logarithm of each query's sum of
    # exponentials; sdpa makes sure of the strides before it calls it
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    query, key, value = (x if x.stride(-1) == 1 else x.contiguous() for x in (query, key, value))
    one, of_one = flash(query, key[:, :, :free], value[:, :, :free], scale=scaling)
    other, of_other = flash(
        query, key[:, :, free:], value[:, :, free:], attn_mask=mask, scale=scaling
    )
    weight = torch.sigmoid(of_other - of_one)[..., None]
    return torch.lerp(one.to(weight.dtype), other.to(weight.dtype), weight).to(value.dtype)


@functools.cache
def _joins() -> bool:
    """Whether `_joint` is what sdpa computes: its kernel is none that torch promises to keep."""
    draw = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2, n, 16, generator=draw) for n in (4, 12, 12))
    mask = torch.randn(1, 1, 4, 5, generator=draw)
    whole = functional.pad(mask, (7, 0))
    try:
        found = _joint(q, k, v, mask, 7, 0.7)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return False
    usual = functional.scaled_dot_product_attention(q, k, v, attn_mask=whole, scale=0.7)
    return torch.allclose(found, usual, atol=1e-5)


def one_query(
    module: nn.Module,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Masked attention as transformers' sdpa computes it, for (B, H, 1, D) queries: one per
    sequence.

    The H / K query heads that share a head of keys take the dimension of queries, so that the (B,
    K, P, D) keys are read once and never copied; a copy for each query head costs ten times the
    attention itself.
    """
    if kwargs.get("dropout") or kwargs.get("position_bias") is not None:
        return kernel(module)(module, query, keys, values, mask, scaling=scaling, **kwargs)  # pyright: ignore
    heads = keys.shape[1]
    q = rearrange(query, "b (k g) 1 d -> b k g d", k=heads)
    if mask.shape[1] > 1:
        mask = rearrange(mask, "b (k g) 1 p -> b k g p", k=heads)
    out = functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask, scale=scaling)
    return rearrange(out, "b k g d -> b 1 (k g) d"), None
