"""Which keys a query sees: masks over paths and over a packed trie, and what is cut from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from faithscope.interp.edits import Knockout


@dataclass(frozen=True)
class Reach:
    """Which positions up to its own a query of a layer sees: all of them by default."""

    window: int | None = None
    """Only the last so many, its own among them."""
    chunk: int | None = None
    """Only those of its own chunk, where positions are cut into chunks of so many."""

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        """Bool of the broadcast shape of `query` and `key` positions."""
        seen = key <= query
        if self.window is not None:
            seen = seen & (key > query - self.window)
        if self.chunk is not None:
            seen = seen & (key // self.chunk == query // self.chunk)
        return seen

    @property
    def whole(self) -> float:
        """The longest path of which every query sees all that lies before it."""
        return min(x for x in (self.window, self.chunk, float("inf")) if x is not None)

    def __str__(self) -> str:
        if self.window is not None:
            return f"the last {self.window} tokens"
        return "all before" if self.chunk is None else f"its chunk of {self.chunk} tokens"


EVERYTHING = Reach()


def reach_of(
    rule: Callable[..., Tensor], size: int | None, device: torch.device | str = "cpu"
) -> Reach | None:
    """The reach that a mask function of transformers has; None if it is of another kind.

    Args:
        rule: (batch, head, query, key) indices to bool, as transformers' mask functions are.
        size: the `local_size` that transformers names with it: up to so many keys it is causal.
        device: where the rule's own tensors are (chunks know how far a text is padded).
    """
    step = size or 64
    at = torch.tensor(sorted({m * step + d for m in range(4) for d in range(-3, 4)} - {-3, -2, -1}))
    query, key = at[:, None], at[None]
    zero = torch.zeros((), dtype=torch.long, device=device)
    try:
        seen = rule(zero, zero, query.to(device), key.to(device)).broadcast_to(len(at), len(at))
    except IndexError:
        # it looks positions up in a table of the text at hand
        return None
    kinds = (EVERYTHING, Reach(window=size), Reach(chunk=size)) if size else (EVERYTHING,)
    return next((r for r in kinds if torch.equal(seen.cpu(), r.sees(query, key))), None)


def causal_mask(queries: int, keys: int, reach: Reach, device: torch.device) -> Tensor:
    """(queries, keys) bool: the last `queries` positions of a path of `keys` tokens."""
    q = torch.arange(keys - queries, keys, device=device)[:, None]
    return reach.sees(q, torch.arange(keys, device=device)[None])


def ancestor_mask(end: Tensor, depth: Tensor, start: int, stop: int, reach: Reach) -> Tensor:
    """(stop - start, stop) bool: which nodes lie on the path to nodes `start`..`stop`."""
    q = torch.arange(start, stop, device=end.device)[:, None]
    k = torch.arange(stop, device=end.device)[None]
    seen = (k <= q) & (q < end[None, :stop])
    return seen & reach.sees(depth[start:stop, None], depth[None, :stop])


def as_additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Zero where seen, the most negative number of `dtype` elsewhere."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)


@dataclass(frozen=True)
class Cut:
    """An edit, and which of the queries at hand it is done to."""

    edit: Knockout
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
    if any(c.edit.heads is not None for c in cuts):
        left = left.repeat(heads, 1, 1)
    for cut in cuts:
        first, last = cut.edit.keys
        edges = cut.queries[:, None] & (position >= first) & (position < last)
        edges[torch.arange(len(own)), own] = False
        if cut.edit.heads is None:
            left = left & ~edges
        else:
            left[list(cut.edit.heads)] &= ~edges
    return left[None]
