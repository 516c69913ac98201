"""What packs of one call hand on: the nodes that the next forest shares with the one before.

Packs follow each other in depth-first order, so that the next one begins on a path of the one
before. Its keys and values are cut back to the shared depth and kept; nothing is computed twice but
nodes that are read in both packs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from faithscope.interp.forest import Forest

Nodes = Int[NDArray[np.int64], " K"]


class Share(NamedTuple):
    """Nodes that a forest shares with the one before, each by its index in both."""

    nodes: Nodes
    """Ascending nodes of the forest."""
    before: Nodes
    """Indices of `nodes` in the forest before."""


NO_SHARE = Share(np.empty(0, np.int64), np.empty(0, np.int64))


class Pack(Protocol):
    """Sequences that run together, of which the first may be repeated in every pack."""

    @property
    def group(self) -> Sequence[int]:
        """Indices of the sequences, repeated ones first and then in depth-first order."""
        ...

    @property
    def forest(self) -> Forest: ...

    @property
    def read(self) -> Iterable[int]:
        """Nodes at which something is read."""
        ...

    def path(self, place: int) -> NDArray[np.int64]:
        """Nodes of the sequence at this place of `group`."""
        ...


P = TypeVar("P", bound=Pack)


def linked(packs: Iterable[P], *, apart: bool = False) -> Iterator[tuple[P, Share, int]]:
    """Every pack, with the nodes that the next one takes over from it and the size of the next.

    Args:
        apart: whether each pack runs from its first node.
    """
    for pack, after in itertools.pairwise(itertools.chain(packs, [None])):
        assert pack is not None
        if after is None or apart:
            yield pack, NO_SHARE, 0
        else:
            yield pack, share(after, pack), len(after.forest)


def share(pack: Pack, before: Pack) -> Share:
    """The nodes that `pack` takes over from the pack before it: those above all that it reads."""
    places = {i: place for place, i in enumerate(before.group)}
    pairs = [(place, places[i]) for place, i in enumerate(pack.group) if i in places]
    fresh = next((place for place, i in enumerate(pack.group) if i not in places), None)
    if fresh is not None:
        pairs.append((fresh, len(before.group) - 1))
    read = np.zeros(len(pack.forest), dtype=bool)
    read[list(pack.read)] = True
    shared = []
    for own, other in pairs:
        path, of_before = pack.path(own), before.path(other)
        n = _alike(pack.forest, path, before.forest, of_before)
        n = int(np.argmax(read[path[:n]])) if read[path[:n]].any() else n
        # the last node of a sequence is run: a forward of no node has no layers to hand on
        n = min(n, len(path) - 1)
        shared.append(np.stack([path[:n], of_before[:n]]))
    both = np.concatenate([np.empty((2, 0), np.int64), *shared], axis=1)
    nodes, first = np.unique(both[0], return_index=True)
    return Share(nodes, both[1][first])


def _alike(a: Forest, of_a: NDArray[np.int64], b: Forest, of_b: NDArray[np.int64]) -> int:
    """Number of nodes with which two paths begin alike: equal tokens under equal edits."""
    n = min(len(of_a), len(of_b))
    of_a, of_b = of_a[:n], of_b[:n]
    known = {edits: mark for mark, edits in enumerate(a.edits)}
    marks = np.array([known.get(edits, -1) for edits in b.edits])
    same = (a.tokens[of_a] == b.tokens[of_b]) & (a.mark[of_a] == marks[b.mark[of_b]])
    return n if same.all() else int(np.argmin(same))


@dataclass(frozen=True)
class Trunk:
    """Keys and values of nodes that an earlier pack has computed."""

    nodes: Nodes = field(default_factory=lambda: NO_SHARE.nodes)
    """Ascending nodes of the forest that takes them over."""
    layers: dict[int, list[Tensor]] = field(default_factory=dict)
    """Layer -> (1, heads, K, D) keys and values."""
    spilled: bool = False
    """Whether they lie in the CPU's memory, from which each layer is fetched for its own forward:
    together with the pack's own nodes they exceed the token budget."""

    def rest(self, n_nodes: int) -> list[tuple[int, int]]:
        """Half-open spans of the nodes of a forest that are left to run."""
        left = np.ones(n_nodes, dtype=bool)
        left[self.nodes] = False
        bounds = np.flatnonzero(np.diff(left, prepend=False, append=False))
        return list(zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True))

    def fill(self, layer: int, into: Sequence[Tensor], *, spend: bool) -> None:
        """Copy a layer's keys and values to their nodes of (1, heads, N, D) tensors.

        Args:
            spend: whether each of them is freed once it is copied.
        """
        own = self.layers.pop(layer, []) if spend else list(self.layers.get(layer, []))
        for x in into:
            if own:
                at = torch.from_numpy(self.nodes).to(x.device)
                x.index_copy_(2, at, own.pop(0).to(x.device))


NO_TRUNK = Trunk()
