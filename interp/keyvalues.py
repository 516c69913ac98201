"""The cache of a packed forward: keys and values of every node of a trie."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor


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

    def __init__(self, n_nodes: int) -> None:
        self.n_nodes = n_nodes
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    def write(self, layer: int, start: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if layer not in self.layers:
            if key.device.type != "cpu" and all(self._is_whole(x) for x in (key, value)):
                self.layers[layer] = key, value
                return key, value
            self.layers[layer] = tuple(  # pyright: ignore
                x.new_empty(1, x.shape[1], self.n_nodes, x.shape[3]) for x in (key, value)
            )
        keys, values = self.layers[layer]
        stop = start + key.shape[2]
        keys[:, :, start:stop], values[:, :, start:stop] = key, value
        return keys, values

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
        held = list(self.layers.pop(layer) if spend else self.layers[layer])
        return [_laid_out(held.pop(0)[0], rows, room) for _ in range(2)]


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
