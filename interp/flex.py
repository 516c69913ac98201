"""FlexAttention over a packed trie: only blocks of keys that some query of a block sees.

In depth-first order a node sees itself and every earlier node whose subtree it lies in, so a block
of queries sees no key of a block whose nodes end before it. PyTorch's kernel skips such blocks,
where one masked call computes all of them.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from einops import rearrange
from numpy.typing import NDArray
from torch import Tensor
from torch._inductor.runtime.cache_dir_utils import default_cache_dir
from torch.nn.attention.flex_attention import AuxRequest, BlockMask, flex_attention
from transformers import PreTrainedModel

from faithscope.interp.forest import Forest
from faithscope.interp.masks import EVERYTHING, Cut, Reach
from faithscope.interp.placement import sent_together
from faithscope.interp.sources import cache_dir

SIZE = 128
"""Queries and keys of a block; the kernel's own default."""
_FAR = 1 << 30
"""A window or chunk that holds every position."""
_GRAPHS = 128
"""Most graphs that are compiled in a process; one more is an error."""
Mod = Callable[..., Tensor]


def reason_against(hf: PreTrainedModel, device: torch.device) -> str | None:
    """Why FlexAttention is not used for a model; None if it is."""
    if device.type != "cuda":
        return f"not compiled for {device.type}"
    if not getattr(hf, "_supports_flex_attn", False):
        return f"transformers runs no {type(hf).__name__} under it"
    try:
        import triton  # noqa: F401  # pyright: ignore
    except ImportError:
        return "the package triton, which compiles it, is not installed"
    return None


def block_mask(
    forest: Forest,
    start: int,
    stop: int,
    reach: Reach,
    device: torch.device,
    cuts: Sequence[Cut] = (),
    heads: int = 1,
) -> BlockMask:
    """Which of nodes 0..`stop` are seen by nodes `start`..`stop` of a forest.

    Blocks of keys that no query sees are left out, and in blocks that every query sees whole no
    single key is looked at.

    Args:
        cuts: knockouts of edges between these nodes, of `heads` query heads.
    """
    end, depth = (x[:stop] for x in (forest.end, forest.depth))
    first_q, last_q = _bounds(np.arange(start, stop))
    first_k, last_k = _bounds(np.arange(stop))
    first_end, last_end = _bounds(end)
    some = (first_k <= last_q[:, None]) & (last_end > first_q[:, None])
    whole = (last_k <= first_q[:, None]) & (first_end > last_q[:, None])
    if reach != EVERYTHING:
        low_q, high_q = _bounds(depth[start:])
        low_k, high_k = _bounds(depth)
        window, chunk = reach.window or _FAR, reach.chunk or _FAR
        some &= high_k > low_q[:, None] - window
        whole &= low_k > high_q[:, None] - window
        some &= high_k // chunk >= low_q[:, None] // chunk
        whole &= low_k // chunk == high_q[:, None] // chunk
    hidden = _Hidden.of(cuts, int(depth.max()) + 1, heads) if cuts else None
    if hidden is not None:
        whole &= ~hidden.blocks(depth)
    listed = [x for blocks in (some & ~whole, some & whole) for x in _listed(blocks)]
    # the last block of queries is looked at as a whole
    padded = [np.pad(x, (0, 2 * SIZE - stop % SIZE)) for x in (end, depth)]
    limits = () if reach == EVERYTHING else (window, chunk)
    numbers = (*padded, start, *limits, *(x[None, None] for x in listed))
    there = _alone(map(torch.from_numpy, (np.asarray(x, np.int32) for x in numbers)), device)
    own, blocks = there[: -len(listed)], there[-len(listed) :]
    rule = _sees_path(own[0], own[2]) if reach == EVERYTHING else _sees_reach(*own)
    if hidden is not None:
        rule = hidden.less(rule, start, own[1])
    return BlockMask.from_kv_blocks(
        *blocks,
        BLOCK_SIZE=SIZE,
        mask_mod=rule,
        seq_lengths=(stop - start, stop),
    )


@dataclass(frozen=True)
class _Hidden:
    """Positions that knockouts hide from queries: few sets of knockouts hold for many queries."""

    sets: NDArray[np.int64]
    """(n,) index of the set of knockouts that each query runs under."""
    positions: NDArray[np.bool_]
    """(S, H, L) whether each set hides a position from a head; (S, 1, L) where all heads are
    alike."""

    @classmethod
    def of(cls, cuts: Sequence[Cut], length: int, heads: int) -> _Hidden:
        """The hidden ones among the first `length` positions."""
        under = np.stack([cut.queries.numpy() for cut in cuts], axis=1)
        kinds, sets = np.unique(under, axis=0, return_inverse=True)
        alike = all(cut.edit.heads is None for cut in cuts)
        hidden = np.zeros((len(kinds), 1 if alike else heads, length), dtype=bool)
        for i, cut in enumerate(cuts):
            of_cut = slice(None) if cut.edit.heads is None else list(cut.edit.heads)
            hides = np.zeros(hidden.shape[1:], dtype=bool)
            first, last = cut.edit.keys
            hides[of_cut, first:last] = True
            hidden[kinds[:, i]] |= hides
        return cls(sets.reshape(-1), hidden)

    def blocks(self, depth: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(Q, K) whether a key of a block, at its depth, may be hidden from a query of a block."""
        at_q, at_k = (np.arange(0, n, SIZE) for n in (len(self.sets), len(depth)))
        kinds = np.eye(len(self.positions), dtype=bool)[self.sets]
        here = np.logical_or.reduceat(kinds, at_q, axis=0)
        of_keys = np.take(self.positions.any(axis=1), depth, axis=1)
        hit = np.logical_or.reduceat(of_keys, at_k, axis=1)
        return here @ hit

    def less(self, rule: Mod, start: int, depth: Tensor) -> Mod:
        """`rule` without the hidden keys; a query always sees itself.

        Args:
            start: the node of the first query.
            depth: of each node, as `rule` captures it: with room for the last block.
        """
        n_heads, length = self.positions.shape[1:]
        sets = np.pad(self.sets, (start, len(depth) - start - len(self.sets)))
        # in one row: sizes that happen to be equal to others would be compiled as the same
        row = torch.from_numpy(self.positions.reshape(-1))
        dtype = torch.int32 if row.numel() < 1 << 31 else torch.int64
        numbers = (sets, start, n_heads * length, length if n_heads > 1 else 0)
        captured = (row, *(torch.as_tensor(x, dtype=dtype) for x in numbers))
        hides, of_node, first, of_set, of_head = _alone(captured, depth.device)

        def left(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            node = query + first
            hidden = hides[of_node[node] * of_set + head * of_head + depth[key]]
            return rule(batch, head, query, key) & (~hidden | (key == node))

        return left


def _alone(tensors: Iterable[Tensor], device: torch.device) -> list[Tensor]:
    """Tensors sent in one transfer, each in memory of its own: a graph is compiled for where its
    inputs begin."""
    return [x.clone() for x in sent_together(list(tensors), device)]


def _bounds(x: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The smallest and the greatest value in each block."""
    at = np.arange(0, len(x), SIZE)
    return np.minimum.reduceat(x, at), np.maximum.reduceat(x, at)


def _listed(blocks: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(Q, K) bool as the number of true columns of each row, and their indices before the rest."""
    return blocks.sum(1).astype(np.int32), np.argsort(~blocks, 1, kind="stable").astype(np.int32)


def _sees_path(end: Tensor, start: Tensor) -> Mod:
    """Whether a query sees a key that lies on its path, of tensors: another pack compiles nothing
    anew."""

    def rule(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        node = query + start
        return (key <= node) & (node < end[key])

    return rule


def _sees_reach(end: Tensor, depth: Tensor, start: Tensor, window: Tensor, chunk: Tensor) -> Mod:
    """Whether a query sees a key that lies on its path and within a window and a chunk."""

    def rule(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        node = query + start
        path = (key <= node) & (node < end[key])
        own, other = depth[node], depth[key]
        return path & (other > own - window) & (other // chunk == own // chunk)

    return rule


@functools.cache
def _capped(softcap: float, device: torch.device) -> Mod:
    # a number of Python's would be compiled as an unknown one, which CUDA's kernel refuses
    cap = torch.tensor(softcap, device=device)

    def score(value: Tensor, *_: Tensor) -> Tensor:
        return cap * torch.tanh(value / cap)

    return score


def kernel_cache() -> str:
    """The folder of compiled kernels: `TORCHINDUCTOR_CACHE_DIR` where the user set it, else one in
    the package's cache folder, which the nodes of a cluster share; PyTorch's own default is in a
    temporary folder of each machine, and serves only if the cache folder cannot be written."""
    usual = default_cache_dir()
    # importing PyTorch's compiler sets the variable to its default
    stated = os.environ.get("TORCHINDUCTOR_CACHE_DIR", usual)
    if stated != usual:
        return stated
    kernels = cache_dir() / "kernels"
    try:
        kernels.mkdir(parents=True, exist_ok=True)
    except OSError:
        return usual
    return str(kernels) if os.access(kernels, os.W_OK) else usual


@functools.cache
def compiled() -> Callable[..., Any]:
    """FlexAttention compiled for inputs of any length; it takes seconds at the first call.

    Kernels are kept in `kernel_cache()`, from which later processes load them. Each model of a
    process has graphs of its own, for full reach and windows, with and without knockouts. Past
    PyTorch's usual limit of eight it would run uncompiled and hold every score.
    """
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = kernel_cache()
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, _GRAPHS)
    return torch.compile(flex_attention, dynamic=True, fullgraph=True)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    blocks: BlockMask,
    *,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    **_: Any,
) -> Tensor:
    """Attention of (1, H, T, D) queries over blocks as (1, T, H, D), by transformers' arguments.

    On a CPU it runs uncompiled, and holds the scores of all queries and keys: for tests.

    Raises:
        ValueError: the family adds a bias of its own to the scores.
    """
    if position_bias is not None:
        raise ValueError("FlexAttention is given no position bias")
    shared = query.shape[1] // key.shape[1]
    run: Callable[..., Any] = flex_attention if query.device.type == "cpu" else compiled()
    found = run(
        query,
        # part of a longer cache would be compiled apart from all of a cache
        key.contiguous(),
        value.contiguous(),
        block_mask=blocks,
        score_mod=None if softcap is None else _capped(softcap, query.device),
        scale=scaling,
        enable_gqa=shared > 1,
        return_aux=None if s_aux is None else AuxRequest(lse=True),
        # the kernel for few queries takes no block mask of a trie
        kernel_options={"FORCE_USE_FLEX_ATTENTION": True},
    )
    if s_aux is None:
        out = found
    else:
        out, aux = found
        # a sink takes its share of the softmax, and gives nothing
        sink = rearrange(s_aux, "h -> 1 h 1").float()
        out = (out * torch.sigmoid(aux.lse - sink)[..., None]).to(out.dtype)
    return rearrange(out, "1 h t d -> 1 t h d")
