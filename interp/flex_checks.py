"""Check of FlexAttention's kernel over all sizes that a run gives it, on drawn queries and keys.

A whole model is compared on short texts alone (`interp.verify`). A kernel may be right on these and
wrong from some block on, or where there are fewer queries than keys, as in every chunk but the
first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from einops import rearrange, repeat
from torch import Tensor, nn

from faithscope.interp import attention, flex
from faithscope.interp.edits import Edit
from faithscope.interp.forest import Forest
from faithscope.interp.masks import EVERYTHING, Reach, ancestor_mask, without
from faithscope.interp.model import Model
from faithscope.interp.placement import sent
from faithscope.interp.prefill import cuts_of

SOUND = 4
"""Largest sound error of a query's output, in units in the last place of its size; rounded weights
and outputs cause about one."""
_LEAST = 1e-5
"""Largest sound relative error in float32, whose sums over thousands of keys are less exact."""
_ROWS = 256
"""Queries whose scores are held at once."""


@dataclass(frozen=True)
class _Call:
    """What one layer attends with: drawn queries, keys and values are of its shapes."""

    query: Tensor
    key: Tensor
    value: Tensor
    reach: Reach
    options: dict[str, Any]

    @property
    def kind(self) -> tuple[Any, ...]:
        """What the compiled kernel depends on."""
        shapes = [(x.shape[1], x.shape[3]) for x in (self.query, self.key, self.value)]
        names = ("scaling", "softcap")
        given = [self.options.get(name) for name in names]
        sink = self.options.get("s_aux") is not None
        return (*shapes, self.query.dtype, self.query.device, self.reach, sink, *given)

    def laid_out(self, query: Tensor) -> Tensor:
        """A query in the layout that the model gives its own, by token or by head: the kernel is
        compiled for each."""
        by_token = self.query.stride(2) > self.query.stride(1)
        if by_token:
            return query.transpose(1, 2).contiguous().transpose(1, 2)
        return query.contiguous()


class _Calls:
    """A session that keeps what every layer attends with, and attends to nothing."""

    def __init__(self, model: Model) -> None:
        self._reaches = model.structure.reaches
        self.kinds: dict[tuple[Any, ...], _Call] = {}

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **options: Any
    ) -> Tensor:
        reach = self._reaches[int(module.layer_idx)]  # pyright: ignore
        call = _Call(query, key, value, reach or EVERYTHING, options)
        self.kinds.setdefault(call.kind, call)
        return value.new_zeros(1, query.shape[2], query.shape[1], value.shape[3])


@torch.inference_mode()
def fault(model: Model, edits: Sequence[Edit] = (), *, longest: int | None = None) -> str | None:
    """The fault of the kernel in any kind of layer, on both sides of every boundary of blocks up to
    the model's chunk; None if there is none.

    Args:
        edits: knockouts under which the branches of the drawn trie run.
        longest: most nodes of the trie, if not the model's chunk.
    """
    longest = min(model.chunk, longest or model.chunk)
    forest = _trie(longest + 1, tuple(edits))
    calls = _Calls(model)
    with attention.session(calls):
        model.hf(torch.tensor([[0, 1, 2]], device=model.device), use_cache=False)
    faults = (_fault(call, forest, longest) for call in calls.kinds.values())
    return next(filter(None, faults), None)


def _trie(nodes: int, edits: tuple[Edit, ...]) -> Forest:
    """A trunk with two branches, a third of the nodes each."""
    a, b = nodes // 3, 2 * nodes // 3
    ids = list(range(nodes))
    return Forest.of([ids[:b], ids[:a] + ids[b:]], [edits, edits])


def _sizes(longest: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of the queries that are tried; the keys are 0..`stop`."""
    for boundary in range(flex.SIZE, longest + 1, flex.SIZE):
        for stop in (boundary, boundary + 1):
            yield 0, min(stop, longest)
            # kernels are compiled anew for queries of one block, so that these are tried once
            if (start := stop // 2 if stop % 2 and stop > 4 * flex.SIZE else 17) < stop - flex.SIZE:
                yield start, stop
    yield max(0, longest - 100), longest


def _fault(call: _Call, forest: Forest, longest: int) -> str | None:
    draw = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(1, x.shape[1], len(forest), x.shape[3], generator=draw).to(x)
        for x in (call.query, call.key, call.value)
    )
    right = _right(call, forest, query, key, value)
    size = right.pow(2).mean(-1).sqrt()
    sound = max(SOUND * torch.finfo(query.dtype).eps, _LEAST)
    for start, stop in _sizes(longest):
        nodes = np.arange(start, stop)
        whole = int(forest.depth[:stop].max()) + 1 <= call.reach.whole
        blocks = flex.block_mask(
            forest,
            start,
            stop,
            EVERYTHING if whole else call.reach,
            query.device,
            cuts_of(forest, nodes),
            query.shape[1],
        )
        keys = key[:, :, :stop], value[:, :, :stop]
        out = flex.attend(call.laid_out(query[:, :, start:stop]), *keys, blocks, **call.options)[0]
        gap = (out.float() - right[start:stop]).pow(2).mean(-1).sqrt() / size[start:stop]
        off = gap.amax(-1)
        if not bool((off <= sound).all()):
            first = int((~(off <= sound)).nonzero()[0])
            of_blocks = f"block {first // flex.SIZE + 1} of {-(-len(nodes) // flex.SIZE)}"
            return (
                f"its kernel for attention to {call.reach}, given {stop - start:,} queries and "
                f"{stop:,} keys, is wrong at query {first:,} ({of_blocks}): off by "
                f"{float(off[first]):.2g} of the output's size, where rounding explains {sound:.2g}"
            )
    return None


def _right(call: _Call, forest: Forest, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """(T, H, D) attention of all nodes in float32, by the definition."""
    heads, shared = query.shape[1], query.shape[1] // key.shape[1]
    end, depth = (sent(torch.from_numpy(x), query.device) for x in (forest.end, forest.depth))
    keys, values = (repeat(x[0].float(), "h t d -> (h s) t d", s=shared) for x in (key, value))
    scaling = call.options.get("scaling") or query.shape[-1] ** -0.5
    rows = []
    for start in range(0, len(forest), _ROWS):
        stop = min(start + _ROWS, len(forest))
        own = torch.arange(start, stop, device=query.device)
        free = ancestor_mask(end, depth, start, stop, call.reach)
        cuts = cuts_of(forest, np.arange(start, stop))
        seen = without(free, cuts, depth[:stop], own, heads)[0]
        scores = scaling * query[0, :, start:stop].float() @ keys[:, :stop].mT
        if (softcap := call.options.get("softcap")) is not None:
            scores = softcap * torch.tanh(scores / softcap)
        scores = scores.masked_fill(~seen, float("-inf"))
        if (sink := call.options.get("s_aux")) is not None:
            sink = repeat(sink.float(), "h -> h t 1", t=stop - start)
            weights = torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
        else:
            weights = scores.softmax(-1)
        rows.append(rearrange(weights @ values[:, :stop], "h t d -> t h d"))
    return torch.cat(rows)
