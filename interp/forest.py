"""Many token sequences with shared prefixes, merged into one trie.

Letters used for shapes in this package: `B` branches, `N` trie nodes, `P` path length,
`A` asked nodes, `L` layers, `H` query heads, `D` width, `V` vocabulary.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from faithscope.interp.edits import Edit

_MARK = 32
"""Number of bits of a token id; the index of a node's set of edits stands above them."""


@dataclass(frozen=True)
class Branch:
    """One token sequence to be run, and the positions to read."""

    ids: tuple[int, ...]
    """Every token from the first one of the prompt."""
    ask: tuple[int, ...] = (-1,)
    """Positions whose next-token logits are wanted; negative ones count from the end."""
    edits: tuple[Edit, ...] = ()
    """Edits of the model while it runs this branch."""

    def __post_init__(self) -> None:
        if not self.ids:
            raise ValueError("a branch needs at least one token; got an empty sequence")
        for position in self.ask:
            if not -len(self.ids) <= position < len(self.ids):
                raise ValueError(
                    f"asked position {position} lies outside a branch of {len(self.ids)} tokens"
                )


@dataclass(frozen=True)
class Run:
    """Consecutive nodes, each the child of the one before: what attention is computed on."""

    start: int
    stop: int
    ancestors: tuple[tuple[int, int], ...]
    """Half-open node spans on the path from the root to the run's first node, in order."""
    depth: int
    """Depth of the first node, i.e. how many tokens the ancestors hold."""


@dataclass(frozen=True)
class Forest:
    """Unique prefixes of a set of sequences, in depth-first order.

    Sequences that run under different edits share the nodes before the first edited token.
    Depth-first order makes ancestry a comparison of integers: node `j` is an ancestor
    of node `i` (or `i` itself) exactly if `j <= i < end[j]`.
    """

    tokens: Int[NDArray[np.int64], " N"]
    depth: Int[NDArray[np.int64], " N"]
    """Position of the token in every sequence that passes through the node."""
    parent: Int[NDArray[np.int64], " N"]
    """Parent node of each node; -1 at a root."""
    paths: tuple[NDArray[np.int64], ...]
    """Per sequence, in the order given: its nodes from root to leaf."""
    mark: Int[NDArray[np.int64], " N"]
    """Per node, the index of its set of edits in `edits`; 0 for none."""
    edits: tuple[tuple[Edit, ...], ...] = ((),)

    @classmethod
    def of(
        cls, sequences: Sequence[Sequence[int]], edits: Sequence[Sequence[Edit]] | None = None
    ) -> Forest:
        """Merge `sequences` into a forest; equal prefixes under equal edits share their nodes.

        Sorting brings shared prefixes together, so one pass that compares each sequence with the
        one before makes the trie in depth-first order.
        """
        if not sequences:
            raise ValueError("a forest needs at least one sequence")
        arrays, sets = _marked(sequences, edits)
        if any(a.size == 0 for a in arrays):
            raise ValueError("a forest cannot hold an empty sequence")
        order = sorted(range(len(arrays)), key=lambda i: tuple(arrays[i].tolist()))
        tokens: list[NDArray[np.int64]] = []
        depth: list[NDArray[np.int64]] = []
        parent: list[NDArray[np.int64]] = []
        paths: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(arrays)
        size = 0
        before, path = np.empty(0, np.int64), np.empty(0, np.int64)
        for i in order:
            ids = arrays[i]
            shared = _common_prefix(before, ids)
            fresh = ids.size - shared
            nodes = np.arange(size, size + fresh)
            path = np.concatenate([path[:shared], nodes])
            if fresh:
                tokens.append(ids[shared:])
                depth.append(np.arange(shared, ids.size))
                parent.append(np.concatenate([path[shared - 1 : shared], nodes[:-1]]))
                if not shared:
                    parent[-1] = np.concatenate([[-1], nodes[:-1]])
            paths[i] = path
            before, size = ids, size + fresh
        keys = np.concatenate(tokens)
        return cls(
            tokens=keys & ((1 << _MARK) - 1),
            depth=np.concatenate(depth),
            parent=np.concatenate(parent),
            paths=tuple(paths),
            mark=keys >> _MARK,
            edits=sets,
        )

    def __len__(self) -> int:
        return int(self.tokens.size)

    @property
    def naive_tokens(self) -> int:
        """Tokens that one-by-one runs would process."""
        return sum(p.size for p in self.paths)

    @property
    def limit(self) -> float:
        """The best speed-up that sharing prefixes can give: naive tokens per trie node."""
        return self.naive_tokens / len(self)

    @cached_property
    def end(self) -> NDArray[np.int64]:
        """One past the last node of each node's subtree. Shape (N,)."""
        end = np.arange(1, len(self) + 1)
        for node in range(len(self) - 1, -1, -1):
            above = self.parent[node]
            if above >= 0 and end[node] > end[above]:
                end[above] = end[node]
        return end

    def path(self, node: int) -> NDArray[np.int64]:
        """Nodes from the root to `node`, both included."""
        spans = self._spans(node)
        return np.concatenate([np.arange(a, b) for a, b in spans])

    def runs(self, start: int, stop: int) -> list[Run]:
        """The runs that nodes `start`..`stop` fall into, in order."""
        return [self.run(a, b) for a, b in self.bounds(start, stop)]

    def run(self, start: int, stop: int) -> Run:
        """The run of nodes `start`..`stop`, a pair that `bounds` gave."""
        return Run(start, stop, self._spans(int(self.parent[start])), int(self.depth[start]))

    def bounds(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The (begin, end) of every run that nodes `start`..`stop` fall into, in order."""
        breaks = self._breaks
        first, last = np.searchsorted(breaks, [start + 1, stop])
        return list(itertools.pairwise([start, *breaks[first:last].tolist(), stop]))

    def blocks(self, start: int, stop: int, most: int) -> list[tuple[int, int, bool]]:
        """Nodes `start`..`stop` as spans; a span of several runs has at most `most` nodes.

        Returns:
            (first, last + 1, whether the span is one run), in order. A run longer than `most`
            stands alone; short runs that follow each other stand together, since a trie of many
            short runs (a cue after every token) would else be computed a few tokens at a time.
        """
        blocks: list[tuple[int, int, bool]] = []
        for a, b in self.bounds(start, stop):
            if blocks and b - blocks[-1][0] <= most:
                blocks[-1] = (blocks[-1][0], b, False)
            else:
                blocks.append((a, b, True))
        return blocks

    @cached_property
    def _breaks(self) -> NDArray[np.int64]:
        """Nodes that are not the child of the node before them."""
        return np.flatnonzero(self.parent != np.arange(len(self)) - 1)

    def _spans(self, node: int) -> tuple[tuple[int, int], ...]:
        spans: list[tuple[int, int]] = []
        breaks = self._breaks
        while node >= 0:
            head = max(
                0,
                int(breaks[np.searchsorted(breaks, node, side="right") - 1])
                if breaks.size and breaks[0] <= node
                else 0,
            )
            spans.append((head, node + 1))
            node = int(self.parent[head])
        return tuple(reversed(spans))


def split_by_budget(
    sequences: Sequence[Sequence[int]],
    budget: int,
    edits: Sequence[Sequence[Edit]] | None = None,
    continued: Sequence[Sequence[Sequence[int]]] | None = None,
    repeat: Sequence[int] = (),
) -> list[list[int]]:
    """Indices of `sequences`, grouped so that each group's forest has at most `budget` nodes.

    A single sequence longer than the budget stands alone, with its continuations and the repeated
    sequences: it cannot be made smaller. Shared prefixes are computed once per group.

    Args:
        continued: per sequence, the token sequences (labels) that follow it in the same forest,
            under its edits; counted for each sequence, even if two equal ones would share them.
        repeat: indices of the sequences that stand in every group.
    """
    if budget < 1:
        raise ValueError(f"the token budget must be positive, got {budget}")
    tails = [[(), *sorted(map(tuple, own))] for own in continued or [()] * len(sequences)]
    owners = [i for i, own in enumerate(tails) for _ in own]
    arrays, _ = _marked(
        [(*sequences[i], *tail) for i, tail in zip(owners, itertools.chain(*tails), strict=True)],
        [edits[i] for i in owners] if edits else None,
    )
    families: list[list[NDArray[np.int64]]] = [[] for _ in sequences]
    for i, array in zip(owners, arrays, strict=True):
        families[i].append(array)
    order = sorted(range(len(families)), key=lambda i: tuple(families[i][0].tolist()))
    always = [i for i in order if i in set(repeat)]
    heads = [families[i][0] for i in always]
    whole = _fresh([], [array for i in always for array in families[i]])
    groups: list[list[int]] = []
    size, before = 0, heads
    for i in order:
        if i in always:
            continue
        fresh = _fresh(before, families[i])
        if not groups or size + fresh > budget:
            groups.append(list(always))
            size, fresh = whole, _fresh(heads, families[i])
        groups[-1].append(i)
        size += fresh
        before = [*heads, families[i][-1]]
    return groups or [always]


def _marked(
    sequences: Sequence[Sequence[int]], edits: Sequence[Sequence[Edit]] | None
) -> tuple[list[NDArray[np.int64]], tuple[tuple[Edit, ...], ...]]:
    """Tokens with the index of their set of edits in the bits above their ids, and these sets."""
    arrays = [np.array(s, dtype=np.int64) for s in sequences]
    sets: dict[tuple[Edit, ...], int] = {(): 0}
    for ids, own_edits in zip(arrays, edits or (), strict=edits is not None):
        # of an edit that is named twice the later one is kept, as where branches run alone
        distinct = reversed(dict.fromkeys(reversed(own_edits)))
        starts = [(e.first, e) for e in distinct if e.first is not None]
        for at in sorted({first for first, _ in starts if first < ids.size}):
            under = tuple(e for first, e in starts if first <= at)
            ids[at:] &= (1 << _MARK) - 1
            ids[at:] |= sets.setdefault(under, len(sets)) << _MARK
    return arrays, tuple(sets)


def _fresh(before: list[NDArray[np.int64]], family: list[NDArray[np.int64]]) -> int:
    """Most nodes that sorted sequences (`family`) add to a forest that holds those of `before`."""
    if not family:
        return 0
    shared = max((_common_prefix(a, family[0]) for a in before), default=0)
    more = sum(b.size - _common_prefix(a, b) for a, b in itertools.pairwise(family))
    return family[0].size - shared + more


def _common_prefix(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    n = min(a.size, b.size)
    different = np.flatnonzero(a[:n] != b[:n])
    return int(different[0]) if different.size else n
