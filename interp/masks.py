"""Which keys a query sees: masks over paths and over a packed trie, and what is cut from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from interp.edits import Knockout


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


@dataclass(frozen=True)
class Cut:
    """A knockout, and which of the queries at hand it is done to."""

    knockout: Knockout
    queries: Tensor
    """(n,) bool."""


def without(seen: Tensor, cuts: Sequence[Cut], position: Tensor, own: Tensor, heads: int) -> Tensor:
    """A mask less the edges that are cut.

    Args:
        seen: (n, P) bool, the mask without any edit.
        position: (P,) or (n, P) positions of the keys.
        own: (n,) the column of each query itself, which stays.
        heads: query heads, H.

    Returns:
        (1, 1, n, P) bool, or (1, H, n, P) where single heads are cut.
    """
    left = seen[None]
    if any(c.knockout.heads is not None for c in cuts):
        left = left.repeat(heads, 1, 1)
    for cut in cuts:
        first, last = cut.knockout.keys
        edges = cut.queries[:, None] & (position >= first) & (position < last)
        edges[torch.arange(len(own)), own] = False
        if cut.knockout.heads is None:
            left = left & ~edges
        else:
            left[list(cut.knockout.heads)] &= ~edges
    return left[None]
