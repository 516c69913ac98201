"""Attention of a packed forward over a trie: run by run over cached ancestors.

`Prefill` is the session (`interp.attention`) of one chunk of a forest. It also reads the
attention rows of asked nodes: softmax(q·K) for these queries alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask

from faithscope.interp import flex
from faithscope.interp.attention import eager, is_eager, kernel
from faithscope.interp.edits import Knockout
from faithscope.interp.forest import Forest, Run
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.masked import mask_for, masked
from faithscope.interp.masks import (
    EVERYTHING,
    Cut,
    Reach,
    ancestor_mask,
    as_additive,
    causal_mask,
    without,
)
from faithscope.interp.placement import sent

_BLOCK = 128
"""Most queries of one masked call on a CPU. Its masked kernel computes keys after a query all the
same, so a long run is cut at this length; short runs of this many queries share a call."""
_BLOCK_ELSEWHERE = 1_024
"""Most queries of one masked call on accelerators, where starting a call costs more than computing
it: on an H100 with a model of 7.4 billion parameters, 7,845 nodes took 1.70 s in calls of 128
queries and 0.25 s in calls of 1,024 (`benchmarks/results/`: `forest_h100.csv`, `gpu_h100.csv`)."""
_ENTRIES, _ENTRIES_EAGER = 1 << 23, 1 << 22
"""Most entries (queries x keys) of the mask of one call for all nodes of a forward on accelerators:
up to 2,900 nodes. It starts the fewest kernels, but computes what the mask takes away: on an H100
with a model of 7.4 billion parameters it took as long as blocks of 1,024 queries for 1,810 nodes,
1.2 times as long for 7,845, and 1.7 times for 14,820 (`benchmarks/results/gpu_h100.csv`). Plain
attention holds these entries for every head, so fewer of them are affordable."""
_FLEX_FROM, _FLEX_FROM_EAGER = _ENTRIES, 1 << 18
"""Entries from which FlexAttention is taken, where plain attention is what it replaces from 512
nodes on. Its calls cost the host some 0.6 ms each, which shorter packs do not hide: for 2,670 nodes
it took 0.94 of the time of one masked call with 8 billion parameters, and 1.4 times with 1.5."""
Way = Literal["runs", "mask", "flex"]
"""How a forward attends: run by run over cached ancestors, by one call under a mask, or by
FlexAttention over blocks."""


@dataclass(frozen=True)
class _Together:
    """Several consecutive short runs, with all nodes that any of them sees."""

    start: int
    stop: int
    nodes: Tensor
    """(P,) the ancestors of node `start`, then nodes `start`..`stop`. An ancestor of a later node
    that comes before `start` is an ancestor of `start`, too."""
    end: Tensor
    """(P,) one past the last descendant of each of `nodes`."""
    depth: Tensor
    """(P,) depth of each of `nodes`."""

    @classmethod
    def of(cls, forest: Forest, start: int, stop: int) -> _Together:
        path = forest.path(start)[:-1]
        nodes = torch.from_numpy(np.concatenate([path, np.arange(start, stop)]))
        of_nodes = (torch.from_numpy(x)[nodes] for x in (forest.end, forest.depth))
        return cls(start, stop, nodes, *of_nodes)

    @cached_property
    def trunk(self) -> int:
        """Number of leading nodes that are on the path to every query."""
        before = len(self.nodes) - (self.stop - self.start)
        return int((self.end[:before] >= self.stop).long().cumprod(0).sum())

    def mask(self, reach: Reach, free: int = 0) -> Tensor:
        """(stop - start, P - free) bool mask of the nodes that each query sees, but for the first
        `free` nodes."""
        q = torch.arange(self.start, self.stop)[:, None]
        seen = (self.nodes[None, free:] <= q) & (q < self.end[None, free:])
        own = self.depth[-(self.stop - self.start) :, None]
        return seen & reach.sees(own, self.depth[None, free:])


def best_way(
    device: torch.device, queries: int, keys: int, *, chain: bool, eager: bool, flexible: bool
) -> Way:
    """The way that serves these queries best on `device`.

    Args:
        chain: whether the queries are one run, which needs no mask but the causal one.
        eager: whether the model runs under its family's plain attention.
        flexible: whether FlexAttention may be taken.
    """
    entries = queries * keys
    if chain and not eager:
        return "runs"
    if flexible and entries >= (_FLEX_FROM_EAGER if eager else _FLEX_FROM):
        return "flex"
    one_call = device.type != "cpu" and entries <= (_ENTRIES_EAGER if eager else _ENTRIES)
    return "mask" if one_call else "runs"


def block_on(device: torch.device) -> int:
    """The most queries of several runs in one masked call on `device`."""
    return _BLOCK if device.type == "cpu" else _BLOCK_ELSEWHERE


class Prefill:
    """One forward over nodes `start`..`stop` of a forest whose earlier nodes are cached."""

    def __init__(
        self,
        forest: Forest,
        cache: KeyValues,
        start: int,
        stop: int,
        reaches: Mapping[int, Reach | None],
        *,
        row_nodes: Sequence[int] = (),
        way: Way = "runs",
        block: int,
    ) -> None:
        """
        Args:
            block: most queries of several runs in one call, where the way is `runs` (`block_on`).
        """
        self.forest, self.cache = forest, cache
        self.start, self.stop = start, stop
        self._reaches = reaches
        self.row_nodes = [n for n in row_nodes if start <= n < stop]
        self._row_paths = [torch.from_numpy(forest.path(n)) for n in self.row_nodes]
        self.rows: dict[int, dict[int, Tensor]] = {n: {} for n in self.row_nodes}
        """node -> layer -> (H, P) attention of that node over its path."""
        self._way, self._all = way, Run(start, stop, (), 0)
        blocks = forest.blocks(start, stop, block) if way == "runs" else []
        self._parts: list[Run | _Together] = [
            forest.run(a, b) if one else _Together.of(forest, a, b) for a, b, one in blocks
        ]
        self._masks: dict[tuple[Any, ...], Tensor] = {}
        self._blocks: dict[tuple[Any, ...], BlockMask] = {}
        self._sent: dict[tuple[str | int, torch.device], Tensor] = {}
        self._cuts = {
            (p.start, p.stop): cuts_of(forest, np.arange(p.start, p.stop))
            for p in self._parts or [self._all]
        }

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        layer = int(module.layer_idx)  # pyright: ignore
        keys, values = self.cache.write(layer, self.start, key, value)
        if self._parts:
            outs = [
                self._run(module, part, query, keys, values, kwargs)
                if isinstance(part, Run)
                else self._together(module, part, query, keys, values, kwargs)
                for part in self._parts
            ]
            out = outs[0] if len(outs) == 1 else torch.cat(outs, dim=1)
        elif self._way == "flex":
            out = self._flex(module, query, keys, values, kwargs)
        else:
            out = self._dense(module, query, keys, values, kwargs)
        if self.row_nodes and query.device.type != "cpu":
            self._rows(module, query, keys, values, kwargs)
            return out
        for node in self.row_nodes:
            self.rows[node][layer] = self._row(module, node, query, keys, values, kwargs)
        return out

    def _run(
        self,
        module: nn.Module,
        run: Run,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        kwargs: dict[str, Any],
    ) -> Tensor:
        q = query[:, :, run.start - self.start : run.stop - self.start]
        k, v = (_join(x, run) for x in (keys, values))
        n, p = q.shape[2], k.shape[2]
        reach = self._reach(module, p)
        cuts = self._cuts_in(module, run)
        # eager attention always gets a mask, since some families add it without a check for None
        if not cuts and reach == EVERYTHING and n in (1, p) and not is_eager(module):
            return kernel(module)(module, q, k, v, None, **kwargs)[0]
        name = (run.start, *(c.edit for c in cuts)) if cuts else ()
        whole = reach == EVERYTHING and not cuts

        @cache
        def seen() -> Tensor:
            free = causal_mask(n, p, reach, torch.device("cpu"))
            return without(free, cuts, torch.arange(p), torch.arange(p - n, p), q.shape[1])

        def of_block(at: int, upto: int) -> Tensor:
            if not whole:
                return seen()[:, :, at : at + step, :upto]
            m = min(step, n - at)
            return causal_mask(m, m, reach, torch.device("cpu"))[None, None]

        step = block_on(q.device)
        if is_eager(module):
            # plain attention holds its weights, of every head
            step = min(step, max(1, _ENTRIES_EAGER // p))
        outs = []
        for at in range(0, n, step):
            free, upto = p - n + at, min(p, p - n + at + step)
            block = q[:, :, at : at + step], k[:, :, :upto], v[:, :, :upto]
            mask = self._mask(
                module,
                (n, p, at, reach, *name),
                block,
                partial(of_block, at, upto),
                free if whole else _free_under(cuts),
            )
            outs.append(masked(module, *block, mask, **kwargs)[0])
        return outs[0] if len(outs) == 1 else torch.cat(outs, dim=1)

    def _together(
        self,
        module: nn.Module,
        part: _Together,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        kwargs: dict[str, Any],
    ) -> Tensor:
        q = query[:, :, part.start - self.start : part.stop - self.start]
        at = self._on(keys.device, part.start, lambda: part.nodes)
        k, v = (x.index_select(2, at) for x in (keys, values))
        reach, cuts = self._reach(module), self._cuts_in(module, part)
        name = ("together", part.start, reach, *(c.edit for c in cuts))
        free = part.trunk if reach == EVERYTHING and not cuts else _free_under(cuts)

        def seen() -> Tensor:
            own = torch.arange(len(part.nodes) - (part.stop - part.start), len(part.nodes))
            return without(part.mask(reach, free or 0), cuts, part.depth, own, q.shape[1])

        return masked(module, q, k, v, self._mask(module, name, (q, k, v), seen, free), **kwargs)[0]

    def _reach(self, module: nn.Module, path: int | None = None) -> Reach:
        """The reach of the module's layer; `EVERYTHING` for a path that lies within it."""
        reach = self._reaches[int(module.layer_idx)]  # pyright: ignore
        assert reach is not None, "models with masks of other kinds are run one by one"
        return EVERYTHING if path is not None and path <= reach.whole else reach

    def _cuts_in(self, module: nn.Module, part: Run | _Together) -> list[Cut]:
        """The knockouts in this layer of the queries of `part`."""
        layer = int(module.layer_idx)  # pyright: ignore
        return [c for c in self._cuts[part.start, part.stop] if c.edit.cuts_in(layer)]

    def _mask(
        self,
        module: nn.Module,
        name: tuple[Any, ...],
        of: tuple[Tensor, Tensor, Tensor],
        seen: Callable[[], Tensor],
        free: int | None = 0,
    ) -> Tensor:
        """The mask of this name in the form that `masked` takes for queries, keys and values, made
        once; `free` as in `mask_for`."""
        q, k, v = of
        name = (*name, q.device, is_eager(module), q.shape[1], k.shape[1], v.shape[-1])
        if name not in self._masks:
            self._masks[name] = mask_for(module, seen(), q, k, v, free)
        return self._masks[name]

    def _on(
        self, device: torch.device, name: str | int, make: Callable[[], Tensor | np.ndarray]
    ) -> Tensor:
        """A tensor of indices on `device`, sent there once for all layers."""
        if (name, device) not in self._sent:
            self._sent[name, device] = sent(torch.as_tensor(make()), device)
        return self._sent[name, device]

    def _dense(
        self,
        module: nn.Module,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        kwargs: dict[str, Any],
    ) -> Tensor:
        reach, cuts = self._reach(module), self._cuts_in(module, self._all)

        def seen() -> Tensor:
            trie = self.forest.end, self.forest.depth
            end, depth = self._on(query.device, "trie", lambda: np.stack(trie))
            free = ancestor_mask(end, depth, self.start, self.stop, reach)
            own = torch.arange(self.start, self.stop, device=query.device)
            return without(free, cuts, depth[: self.stop], own, query.shape[1])

        name = ("dense", reach, *(c.edit for c in cuts))
        k, v = keys[:, :, : self.stop], values[:, :, : self.stop]
        mask = self._mask(module, name, (query, k, v), seen)
        return masked(module, query, k, v, mask, **kwargs)[0]

    def _flex(
        self,
        module: nn.Module,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        kwargs: dict[str, Any],
    ) -> Tensor:
        device, stop = query.device, self.stop
        reach = self._reach(module, int(self.forest.depth[:stop].max()) + 1)
        cuts, heads = self._cuts_in(module, self._all), query.shape[1]
        name = (reach, device, heads, *(c.edit for c in cuts))
        if name not in self._blocks:
            made = flex.block_mask(self.forest, self.start, stop, reach, device, cuts, heads)
            self._blocks[name] = made
        k, v = keys[:, :, :stop], values[:, :, :stop]
        return flex.attend(query, k, v, self._blocks[name], **kwargs)

    def _rows(
        self,
        module: nn.Module,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        kwargs: dict[str, Any],
    ) -> None:
        """As `_row`, of all nodes at once over all keys, where starting a call costs the most."""
        layer, device, nodes = int(module.layer_idx), query.device, np.array(self.row_nodes)  # pyright: ignore
        reach = self._reach(module)
        cuts = [c for c in cuts_of(self.forest, nodes) if c.edit.cuts_in(layer)]

        def seen() -> Tensor:
            end, depth = (torch.from_numpy(x) for x in (self.forest.end, self.forest.depth))
            own, at = torch.from_numpy(nodes), torch.arange(self.stop)
            path = (at <= own[:, None]) & (own[:, None] < end[: self.stop])
            free = path & reach.sees(depth[own][:, None], depth[: self.stop])
            return without(free, cuts, depth[: self.stop], own, query.shape[1])

        def places() -> Tensor:
            return nn.utils.rnn.pad_sequence(self._row_paths, batch_first=True)[None]

        name = ("rows", reach, device, *(c.edit for c in cuts))
        if name not in self._masks:
            self._masks[name] = as_additive(sent(seen(), device), query.dtype)
        at = self._on(device, "row nodes", lambda: nodes - self.start)
        k, v = keys[:, :, : self.stop], values[:, :, : self.stop]
        q = query.index_select(2, at)
        weights = eager(module)(module, q, k, v, self._masks[name], **kwargs)[1]
        assert weights is not None
        taken = self._on(device, "row places", places).expand(len(weights[0]), -1, -1)
        of_nodes = weights[0].gather(2, taken).float()
        for i, (node, path) in enumerate(zip(self.row_nodes, self._row_paths, strict=True)):
            self.rows[node][layer] = of_nodes[:, i, : len(path)]

    def _row(
        self,
        module: nn.Module,
        node: int,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        kwargs: dict[str, Any],
    ) -> Tensor:
        """(H, P) attention weights of one query, by the family's own plain attention."""
        (run,) = self.forest.runs(node, node + 1)
        q = query[:, :, node - self.start : node - self.start + 1]
        k, v = (_join(x, run) for x in (keys, values))
        p = k.shape[2]
        reach = self._reach(module, p)
        layer = int(module.layer_idx)  # pyright: ignore
        cuts = [c for c in cuts_of(self.forest, np.array([node])) if c.edit.cuts_in(layer)]
        free = causal_mask(1, p, reach, torch.device("cpu"))
        seen = without(free, cuts, torch.arange(p), torch.tensor([p - 1]), q.shape[1])
        mask = as_additive(sent(seen, q.device), q.dtype)
        weights = eager(module)(module, q, k, v, mask, **kwargs)[1]
        assert weights is not None
        return weights[0, :, 0].float()


def _free_under(cuts: Sequence[Cut]) -> int | None:
    """`free` of `mask_for` where a trunk is not seen whole: what knockouts leave of it is looked
    for, and windows leave nothing."""
    return None if cuts else 0


def cuts_of(forest: Forest, nodes: np.ndarray) -> list[Cut]:
    """The knockouts on any of `nodes`, each with the nodes that it applies to."""
    marks, depth = forest.mark[nodes], forest.depth[nodes]
    under: dict[Knockout, list[int]] = {}
    for mark in np.unique(marks).tolist():
        for edit in forest.edits[mark]:
            if isinstance(edit, Knockout):
                under.setdefault(edit, []).append(mark)
    cuts = []
    for edit, of in under.items():
        first, last = edit.queries
        done = np.isin(marks, of) & (depth >= first)
        if last is not None:
            done &= depth < last
        if done.any():
            cuts.append(Cut(edit, torch.from_numpy(done)))
    return cuts


def _join(x: Tensor, run: Run) -> Tensor:
    """The keys or values on the path through `run`, oldest first."""
    spans = [*run.ancestors, (run.start, run.stop)]
    merged = [spans[0]]
    for a, b in spans[1:]:
        if merged[-1][1] == a:
            merged[-1] = (merged[-1][0], b)
        else:
            merged.append((a, b))
    parts = [x[:, :, a:b] for a, b in merged]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
