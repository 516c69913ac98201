"""Attention of one further token after each of many nodes of a cached forest.

`OneAfter` is the session (`interp.attention`) of a forward over new nodes, each the child of a
cached one. A new node sees its parent's path, whose keys and values are read where they lie, and
itself; nothing is added to the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from faithscope.interp.attention import is_eager
from faithscope.interp.edits import Edit, Knockout
from faithscope.interp.forest import Forest
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.masked import mask_for, masked
from faithscope.interp.masks import Cut, Reach, without
from faithscope.interp.placement import sent_together


@dataclass(frozen=True)
class _Block:
    """Consecutive new nodes, with all cached nodes that any of them sees."""

    start: int
    stop: int
    nodes: Tensor
    """(P,) cached nodes: the paths to the parents, together."""
    seen: Tensor
    """(stop - start, P) bool, whether a cached node is on the path to a new one."""
    depth: Tensor
    """(P,) depth of each of `nodes`."""

    @classmethod
    def of(cls, forest: Forest, parents: np.ndarray, start: int, stop: int) -> _Block:
        of_block = parents[start:stop]
        nodes = np.unique(np.concatenate([forest.path(p) for p in np.unique(of_block).tolist()]))
        seen = (nodes <= of_block[:, None]) & (of_block[:, None] < forest.end[nodes])
        return cls(start, stop, *map(torch.from_numpy, (nodes, seen, forest.depth[nodes])))


class OneAfter:
    """A forward over one new node after each of `parents`, nodes of a cached forest in order."""

    def __init__(
        self,
        forest: Forest,
        cache: KeyValues,
        parents: Sequence[int],
        reaches: Mapping[int, Reach | None],
        edits: Sequence[Sequence[Edit]],
        *,
        block: int,
    ) -> None:
        """
        Args:
            parents: the cached node before each new one; neighbours in the forest stand together.
            edits: per new node, the edits that it runs under.
            block: most new nodes of one masked call (`prefill.block_on`).
        """
        self._cache, self._reaches = cache, reaches
        of = np.asarray(parents)
        self.positions = torch.from_numpy(forest.depth[of] + 1)
        """(B,) positions of the new nodes."""
        self._edits = [tuple(e) for e in edits]
        starts = range(0, len(of), block)
        self._blocks = [_Block.of(forest, of, a, min(a + block, len(of))) for a in starts]
        self._masks: dict[tuple[Any, ...], tuple[Tensor, Tensor]] = {}

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        cached = self._cache.read(int(module.layer_idx))  # pyright: ignore
        outs = []
        for block in self._blocks:
            own = slice(block.start, block.stop)
            at, mask = self._made(module, block, (query, key, value))
            k, v = (
                torch.cat([x.index_select(2, at), new[:, :, own]], dim=2)
                for x, new in zip(cached, (key, value), strict=True)
            )
            outs.append(masked(module, query[:, :, own], k, v, mask, **kwargs)[0])
        return torch.cat(outs, dim=1)

    def _made(
        self, module: nn.Module, block: _Block, of: tuple[Tensor, Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The cached nodes of a block on the queries' device, and the mask that `masked` takes."""
        query, key, value = of
        layer = int(module.layer_idx)  # pyright: ignore
        reach, cuts = self._reaches[layer], self._cuts_in(layer, block)
        assert reach is not None, "models with masks of other kinds are run one by one"
        edits = tuple(c.edit for c in cuts)
        heads = query.shape[1], key.shape[1], value.shape[-1]
        name = (block.start, reach, query.device, is_eager(module), heads, *edits)
        if name not in self._masks:
            at = self.positions[block.start : block.stop]
            seen = block.seen & reach.sees(at[:, None], block.depth[None])
            seen = torch.cat([seen, torch.eye(len(at), dtype=torch.bool)], dim=1)
            own = torch.arange(len(block.nodes), seen.shape[1])
            mask = without(seen, cuts, torch.cat([block.depth, at]), own, query.shape[1])
            at, mask = sent_together([block.nodes, mask], query.device)
            self._masks[name] = at, mask_for(module, mask, *of)
        return self._masks[name]

    def _cuts_in(self, layer: int, block: _Block) -> list[Cut]:
        """The knockouts in this layer of the new nodes of `block`."""
        at = self.positions[block.start : block.stop]
        edits = self._edits[block.start : block.stop]
        cuts = []
        for edit in dict.fromkeys(e for own in edits for e in own if isinstance(e, Knockout)):
            first, last = edit.queries
            done = torch.tensor([edit in own for own in edits]) & (at >= first)
            if last is not None:
                done &= at < last
            if edit.cuts_in(layer) and bool(done.any()):
                cuts.append(Cut(edit, done))
        return cuts
