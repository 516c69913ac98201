"""Masks of the keys that a query sees, over paths and over a packed trie, less knockouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from faithscope.interp.edits import Knockout
from faithscope.interp.placement import sent_together


@dataclass(frozen=True)
class Reach:
    """The positions, up to its own, that a query of a layer sees; all of them by default."""

    window: int | None = None
    """Size of a sliding window: the last positions that a query sees, its own included."""
    chunk: int | None = None
    """Size of chunks of positions: a query sees only its own chunk."""

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        """Whether queries see keys: bool of the broadcast shape of `query` and `key` positions."""
        seen = key <= query
        if self.window is not None:
            seen = seen & (key > query - self.window)
        if self.chunk is not None:
            seen = seen & (key // self.chunk == query // self.chunk)
        return seen

    @property
    def whole(self) -> float:
        """Length of the longest path on which every query sees all earlier positions."""
        return min(x for x in (self.window, self.chunk, float("inf")) if x is not None)

    def __str__(self) -> str:
        if self.window is not None:
            return f"the last {self.window} tokens"
        return "all before" if self.chunk is None else f"its chunk of {self.chunk} tokens"


EVERYTHING = Reach()


def reach_of(
    rule: Callable[..., Tensor], size: int | None, device: torch.device | str = "cpu"
) -> Reach | None:
    """The reach of a mask function of transformers; None if the function is no such mask.

    Args:
        rule: a function of (batch, head, query, key) indices to bool, as transformers' mask
            functions are.
        size: the `local_size` that transformers gives with the rule: up to this many keys it is
            causal.
        device: device of the rule's own tensors (a rule of chunks holds a text's padding).
    """
    step = size or 64
    at = torch.tensor(sorted({m * step + d for m in range(4) for d in range(-3, 4)} - {-3, -2, -1}))
    query, key = at[:, None], at[None]
    zero = torch.zeros((), dtype=torch.long, device=device)
    try:
        seen = rule(zero, zero, query.to(device), key.to(device)).broadcast_to(len(at), len(at))
    except IndexError:
        # the rule looks positions up in a table of one text
        return None
    kinds = (EVERYTHING, Reach(window=size), Reach(chunk=size)) if size else (EVERYTHING,)
    return next((r for r in kinds if torch.equal(seen.cpu(), r.sees(query, key))), None)


def causal_mask(queries: int, keys: int, reach: Reach, device: torch.device) -> Tensor:
    """(queries, keys) bool mask of the last `queries` positions of a path of `keys` tokens."""
    q = torch.arange(keys - queries, keys, device=device)[:, None]
    return reach.sees(q, torch.arange(keys, device=device)[None])


def ancestor_mask(end: Tensor, depth: Tensor, start: int, stop: int, reach: Reach) -> Tensor:
    """(stop - start, stop) bool mask: the nodes on the path to each of nodes `start`..`stop`."""
    q = torch.arange(start, stop, device=end.device)[:, None]
    k = torch.arange(stop, device=end.device)[None]
    seen = (k <= q) & (q < end[None, :stop])
    return seen & reach.sees(depth[start:stop, None], depth[None, :stop])


def as_additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """An additive mask: zero where a key is seen, the most negative number of `dtype` elsewhere.

    Its rows begin at multiples of eight numbers: CUDA's kernels copy other masks at every call.
    """
    keys = mask.shape[-1]
    rows = mask.new_zeros(*mask.shape[:-1], keys + -keys % 8, dtype=dtype)[..., :keys]
    return rows.masked_fill_(~mask, torch.finfo(dtype).min)


@dataclass(frozen=True)
class Cut:
    """One edit that cuts attention, and the queries of the current call that it applies to."""

    edit: Knockout
    queries: Tensor
    """(n,) bool, true for the queries of the call that the edit applies to."""


def without(seen: Tensor, cuts: Sequence[Cut], position: Tensor, own: Tensor, heads: int) -> Tensor:
    """A mask without the attention edges that knockouts cut.

    Args:
        seen: (n, P) bool, the mask before any cut.
        position: (P,) or (n, P) positions of the keys.
        own: (n,) the column of each query itself, which is never cut; all on one device.
        heads: query heads, H.

    Returns:
        (1, 1, n, P) bool, or (1, H, n, P) where single heads are cut.
    """
    if not cuts:
        return seen[None, None]
    left, under = seen[None], sent_together([cut.queries for cut in cuts], seen.device)
    others = torch.arange(seen.shape[-1], device=seen.device) != own[:, None]
    for cut, queries in zip(cuts, under, strict=True):
        first, last = cut.edit.keys
        edges = queries[:, None] & (position >= first) & (position < last)
        edges = (edges & others)[None]
        if cut.edit.heads is not None:
            # made on the device: a recorded step copies nothing from the host
            of_heads = torch.zeros(heads, dtype=torch.bool, device=seen.device)
            for head in cut.edit.heads:
                of_heads[head].fill_(True)
            edges = edges & of_heads[:, None, None]
        left = left & ~edges
    return left[None]
