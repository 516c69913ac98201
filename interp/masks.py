"""Which keys a query sees: masks over paths and over a packed trie."""

from __future__ import annotations

import torch
from torch import Tensor


def causal_mask(queries: int, keys: int, window: int | None, device: torch.device) -> Tensor:
    """(queries, keys) bool: the last `queries` positions of a path of `keys` tokens."""
    q = torch.arange(keys - queries, keys, device=device)[:, None]
    k = torch.arange(keys, device=device)[None]
    seen = k <= q
    return seen if window is None else seen & (k > q - window)


def ancestor_mask(end: Tensor, depth: Tensor, start: int, stop: int, window: int | None) -> Tensor:
    """(stop - start, stop) bool: which nodes lie on the path to nodes `start`..`stop`."""
    q = torch.arange(start, stop, device=end.device)[:, None]
    k = torch.arange(stop, device=end.device)[None]
    seen = (k <= q) & (q < end[None, :stop])
    if window is not None:
        seen &= depth[None, :stop] > depth[start:stop, None] - window
    return seen


def as_additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Zero where seen, the most negative number of `dtype` elsewhere."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)
