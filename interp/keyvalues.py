"""The cache of a packed forward: keys and values of every node of a trie."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from faithscope.interp.trunk import NO_TRUNK, Share, Trunk


class Rows:
    """Paths of nodes as right-aligned rows."""

    def __init__(self, paths: Sequence[Sequence[int]]) -> None:
        self._paths = [np.asarray(path, dtype=np.int64) for path in paths]
        self.lengths = torch.tensor([len(path) for path in paths])
        self.longest = int(self.lengths.max())

    @cached_property
    def spans(self) -> list[list[tuple[int, int]]]:
        """Per row, the half-open spans of consecutive nodes that its path is made of."""
        rows = []
        for path in self._paths:
            starts = np.flatnonzero(np.diff(path, prepend=path[:1] - 2) != 1)
            stops = np.append(starts[1:], len(path)) - 1
            rows.append(list(zip(path[starts].tolist(), (path[stops] + 1).tolist(), strict=True)))
        return rows

    @cached_property
    def index(self) -> Tensor:
        """(B, P) the node at every place of the rows; node 0 before a path begins."""
        index = torch.zeros(len(self._paths), self.longest, dtype=torch.long)
        for row, path in zip(index, self._paths, strict=True):
            row[self.longest - len(path) :] = torch.from_numpy(path)
        return index


class KeyValues:
    """Keys and values of every trie node, per layer, on that layer's own device."""

    def __init__(self, n_nodes: int, trunk: Trunk = NO_TRUNK) -> None:
        """
        Args:
            trunk: nodes that were computed before; each layer takes its own over at its first
                write, and the trunk loses it.
        """
        self.n_nodes = n_nodes
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}
        self._trunk = trunk

    @property
    def devices(self) -> list[torch.device]:
        """The devices on which layers are, that of the first layer first."""
        return list(dict.fromkeys(keys.device for keys, _ in self.layers.values()))

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """(1, heads, N, D) keys and values of a layer."""
        return self.layers[layer]

    def write(self, layer: int, start: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write keys and values of nodes from `start` on; returns those of the layer so far."""
        if layer not in self.layers:
            if key.device.type != "cpu" and all(self._is_whole(x) for x in (key, value)):
                self.layers[layer] = key, value
                return key, value
            self.layers[layer] = tuple(  # pyright: ignore
                x.new_empty(1, x.shape[1], self.n_nodes, x.shape[3]) for x in (key, value)
            )
            self._trunk.fill(layer, self.layers[layer], spend=True)
        keys, values = self.layers[layer]
        stop = start + key.shape[2]
        keys[:, :, start:stop], values[:, :, start:stop] = key, value
        return keys, values

    def trunk(self, share: Share, *, spend: bool, spill: bool) -> Trunk:
        """The nodes that the next forest takes over from this one.

        Args:
            spend: whether this cache is no longer needed: each layer is freed once it is copied.
            spill: whether they are kept in the CPU's memory.
        """
        layers = {}
        for layer in list(self.layers) if len(share.nodes) else []:
            pair = self.read(layer)
            at = torch.from_numpy(share.before).to(pair[0].device)
            taken = [x.index_select(2, at) for x in pair]
            layers[layer] = [x.cpu() for x in taken] if spill else taken
            if spend:
                del self.layers[layer]
            del pair
        return Trunk(share.nodes, layers, spill)

    def _is_whole(self, x: Tensor) -> bool:
        """Whether `x` holds every node, in memory that holds nothing else: it needs no copy."""
        return x.shape[2] == self.n_nodes and x.untyped_storage().nbytes() == x.nbytes

    def rows(self, layer: int, rows: Rows, room: int, *, spend: bool) -> list[Tensor]:
        """Keys and values along paths, (B, heads, P + room, D) each. Entries before a path are
        finite and without meaning, as is the room after it, but on a CPU, where that is left
        unwritten.

        Args:
            spend: whether this layer is no longer needed: its keys are freed before its values are
                copied, and then the values.
        """
        held = list(self.read(layer))
        if spend:
            del self.layers[layer]
        return [_laid_out(held.pop(0)[0], rows, room) for _ in range(2)]


class Spilled(KeyValues):
    """Keys and values of a forest whose trunk lies in the CPU's memory.

    A layer's device holds the layer's other nodes, and the trunk while the layer runs.
    """

    def write(self, layer: int, start: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if layer not in self.layers:
            own = self.n_nodes - len(self._trunk.nodes)
            self.layers[layer] = tuple(  # pyright: ignore
                x.new_empty(1, x.shape[1], own, x.shape[3]) for x in (key, value)
            )
        at = start - int(np.searchsorted(self._trunk.nodes, start))
        for held, new in zip(self.layers[layer], (key, value), strict=True):
            held[:, :, at : at + new.shape[2]] = new
        return self.read(layer)

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        own = self.layers[layer]
        keys, values = (x.new_empty(1, x.shape[1], self.n_nodes, x.shape[3]) for x in own)
        self._trunk.fill(layer, (keys, values), spend=False)
        for whole, held in zip((keys, values), own, strict=True):
            at = 0
            for start, stop in self._trunk.rest(self.n_nodes):
                whole[:, :, start:stop] = held[:, :, at : at + stop - start]
                at += stop - start
        return keys, values


def _laid_out(nodes: Tensor, rows: Rows, room: int) -> Tensor:
    """(heads, N, D) values of nodes laid out as (B, heads, P + room, D) values of rows."""
    heads, _, width = nodes.shape
    out = nodes.new_empty(len(rows.lengths), heads, rows.longest + room, width)
    if nodes.device.type != "cpu":
        # a few calls, on devices where starting a call costs more than a second copy
        out[:, :, rows.longest :] = 0
        index = rows.index.to(nodes.device, non_blocking=True)
        out[:, :, : rows.longest] = nodes[:, index].transpose(0, 1)
        return out
    for row, spans in zip(out, rows.spans, strict=True):
        at = rows.longest - sum(stop - start for start, stop in spans)
        row[:, :at] = 0
        for start, stop in spans:
            row[:, at : at + stop - start] = nodes[:, start:stop]
            at += stop - start
    return out
