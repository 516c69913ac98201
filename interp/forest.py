"""Many token sequences with shared prefixes, merged into one trie.

Letters used for shapes in this package: `B` branches, `N` trie nodes, `P` path length,
`A` asked nodes, `L` layers, `H` query heads, `D` width, `V` vocabulary.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from faithscope.interp.edits import Edit

_KEPT = 2**20
"""Most nodes of all paths of a forest together with which they are kept."""
_MARK = 32
"""Number of bits of a token id; the index of a node's set of edits stands above them."""


@dataclass(frozen=True)
class Joined:
    """Token ids in two parts, of which many sequences may share the first."""

    head: NDArray[np.integer]
    tail: NDArray[np.integer]

    def __len__(self) -> int:
        return len(self.head) + len(self.tail)


Ids = Sequence[int] | NDArray[np.integer] | Joined


def id_array(ids: Ids) -> NDArray[np.integer]:
    """Token ids as an array; an array as it is."""
    if isinstance(ids, Joined):
        return np.concatenate([ids.head, ids.tail])
    return ids if isinstance(ids, np.ndarray) else np.fromiter(ids, np.int32, len(ids))


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
    leaves: tuple[int, ...]
    """Per sequence, in the order given: its last node."""
    mark: Int[NDArray[np.int64], " N"]
    """Per node, the index of its set of edits in `edits`; 0 for none."""
    edits: tuple[tuple[Edit, ...], ...] = ((),)

    @classmethod
    def of(cls, sequences: Sequence[Ids], edits: Sequence[Sequence[Edit]] | None = None) -> Forest:
        """Merge `sequences` into a forest; equal prefixes under equal edits share their nodes.

        Sorting brings shared prefixes together, so one pass that compares each sequence with the
        one before makes the trie in depth-first order.
        """
        if not sequences:
            raise ValueError("a forest needs at least one sequence")
        marks = _Marks()
        under = edits or [()] * len(sequences)
        if not all(map(len, sequences)):
            raise ValueError("a forest cannot hold an empty sequence")

        # one at a time: thousands of sequences may share a text of thousands of tokens
        def array(i: int) -> NDArray[np.integer]:
            return marks.on(sequences[i], under[i])

        order = _in_order(list(map(len, sequences)), array)
        tokens: list[NDArray[np.integer]] = []
        depth: list[NDArray[np.int64]] = []
        parent: list[NDArray[np.int64]] = []
        leaves = [0] * len(sequences)
        size = 0
        before, path = array(order[0])[:0], np.empty(0, np.int64)
        for i in order:
            ids = array(i)
            shared = _common_prefix(before, ids)
            fresh = ids.size - shared
            nodes = np.arange(size, size + fresh)
            path = np.concatenate([path[:shared], nodes])
            if fresh:
                tokens.append(ids[shared:].copy())
                depth.append(np.arange(shared, ids.size))
                parent.append(np.concatenate([path[shared - 1 : shared], nodes[:-1]]))
                if not shared:
                    parent[-1] = np.concatenate([[-1], nodes[:-1]])
            leaves[i] = int(path[-1])
            before, size = ids, size + fresh
        keys = np.concatenate(tokens).astype(np.int64)
        return cls(
            tokens=keys & ((1 << _MARK) - 1),
            depth=np.concatenate(depth),
            parent=np.concatenate(parent),
            leaves=tuple(leaves),
            mark=keys >> _MARK,
            edits=marks.sets,
        )

    def __len__(self) -> int:
        return int(self.tokens.size)

    @property
    def naive_tokens(self) -> int:
        """Tokens that one-by-one runs would process."""
        return int(self.depth[list(self.leaves)].sum()) + len(self.leaves)

    @cached_property
    def paths(self) -> Paths:
        """Per sequence, in the order given: its nodes from root to leaf."""
        return Paths(self)

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
        return np.flatnonzero(self.end[: node + 1] > node)

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


class Paths(Sequence[NDArray[np.int64]]):
    """The nodes of each sequence of a forest, made when they are asked for. All are kept of a small
    forest, and else the last: of a thousand cuts of a long text they would hold more than it."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._kept: dict[int, NDArray[np.int64]] = {}
        self._small = forest.naive_tokens <= _KEPT

    def __len__(self) -> int:
        return len(self._forest.leaves)

    def __getitem__(self, i: Any) -> Any:
        leaf = self._forest.leaves[i]
        if isinstance(i, slice):
            return [self._forest.path(node) for node in leaf]
        if leaf not in self._kept:
            if not self._small:
                self._kept.clear()
            self._kept[leaf] = self._forest.path(leaf)
        return self._kept[leaf]


def size_of(sequences: Sequence[Ids], edits: Sequence[Sequence[Edit]] | None = None) -> int:
    """Number of nodes of the forest of `sequences`, which is not made."""
    marks = _Marks()
    under = edits or [()] * len(sequences)
    arrays = [marks.on(ids, of) for ids, of in zip(sequences, under, strict=True)]
    return _nodes([arrays[i] for i in _in_order(list(map(len, arrays)), arrays.__getitem__)])


def split_by_budget(
    sequences: Sequence[Ids],
    budget: int,
    edits: Sequence[Sequence[Edit]] | None = None,
    continued: Sequence[Sequence[Sequence[int]]] | None = None,
    repeat: Sequence[int] = (),
) -> list[list[int]]:
    """Indices of `sequences`, grouped so that each group's forest has at most `budget` nodes.

    A single sequence longer than the budget stands alone, with its continuations and the repeated
    sequences: it cannot be made smaller. Groups follow each other in depth-first order, so that a
    group can take over what it shares with the one before (`interp.trunk`).

    Args:
        continued: per sequence, the token sequences (labels) that follow it in the same forest,
            under its edits; counted for each sequence, even if two equal ones would share them.
        repeat: indices of the sequences that stand in every group.
    """
    if budget < 1:
        raise ValueError(f"the token budget must be positive, got {budget}")
    marks = _Marks()
    under = edits or [()] * len(sequences)
    arrays = [marks.on(ids, of) for ids, of in zip(sequences, under, strict=True)]
    known: dict[tuple[tuple[int, ...], ...], int] = {}
    tails = [tuple(sorted(map(tuple, own))) for own in continued or [()] * len(sequences)]
    for own in set(tails):
        # edits begin at positions, so tails of one sequence part where their tokens do
        known[own] = _nodes([id_array(tail) for tail in own])
    of_tails = [known[own] for own in tails]

    def fresh(i: int, before: list[NDArray[np.integer]]) -> int:
        """Most nodes that a sequence with its tails adds to a forest that holds those of before."""
        shared = max((_common_prefix(a, arrays[i]) for a in before), default=0)
        return arrays[i].size - shared + of_tails[i]

    def last(i: int) -> NDArray[np.integer]:
        """A sequence with its last tail, as which the next sequence may begin."""
        if not any(tails[i]):
            return arrays[i]
        whole = np.concatenate([id_array(sequences[i]), id_array(tails[i][-1])])
        return marks.on(whole, under[i])

    in_order = _in_order(list(map(len, arrays)), arrays.__getitem__)
    always = [i for i in in_order if i in set(repeat)]
    heads = [arrays[i] for i in always]
    whole, before = 0, []
    for i in always:
        whole += fresh(i, before)
        before = [last(i)]
    groups: list[list[int]] = []
    size, before = 0, heads
    for i in in_order:
        if i in always:
            continue
        more = fresh(i, before)
        if not groups or size + more > budget:
            groups.append(list(always))
            size, more = whole, fresh(i, heads)
        groups[-1].append(i)
        size += more
        before = [*heads, last(i)]
    return groups or [always]


class _Marks:
    """Tokens with the index of their set of edits in the bits above their ids."""

    def __init__(self) -> None:
        self._sets: dict[tuple[Edit, ...], int] = {(): 0}

    @property
    def sets(self) -> tuple[tuple[Edit, ...], ...]:
        """The sets of edits by their index."""
        return tuple(self._sets)

    def on(self, sequence: Ids, edits: Sequence[Edit] = ()) -> NDArray[np.integer]:
        """The marked tokens of a sequence that runs under `edits`; an array without any itself."""
        ids = id_array(sequence)
        # of an edit that is named twice the later one is kept, as where branches run alone
        distinct = reversed(dict.fromkeys(reversed(edits)))
        starts = [(e.first, e) for e in distinct if e.first is not None]
        begin = sorted({first for first, _ in starts if first < ids.size})
        ids = ids.astype(np.int64) if begin else ids
        for at in begin:
            under = tuple(e for first, e in starts if first <= at)
            ids[at:] &= (1 << _MARK) - 1
            ids[at:] |= self._sets.setdefault(under, len(self._sets)) << _MARK
        return ids


class _Rest:
    """What follows a common beginning of a sequence; sorts as its tokens do."""

    def __init__(self, ids: NDArray[np.integer]) -> None:
        self._ids = ids

    def __lt__(self, other: _Rest) -> bool:
        a, b = self._ids, other._ids
        shared = _common_prefix(a, b)
        return bool(a[shared] < b[shared]) if shared < min(a.size, b.size) else a.size < b.size


def _in_order(lengths: Sequence[int], array: Callable[[int], NDArray[np.integer]]) -> list[int]:
    """Indices of sequences of these lengths in the order of their tokens; equal ones keep theirs.

    The longest sequence is a trunk: of those before it, the ones that leave it first come first,
    and of those after it the ones that leave it last. Only those that leave it at one place are
    compared with each other.
    """
    trunk = array(max(range(len(lengths)), key=lengths.__getitem__))

    def place(i: int) -> tuple[int, int, _Rest]:
        ids = array(i)
        shared = _common_prefix(trunk, ids)
        above = shared < ids.size and (shared == trunk.size or ids[shared] > trunk[shared])
        return int(above), -shared if above else shared, _Rest(ids[shared:].copy())

    return sorted(range(len(lengths)), key=place)


def _nodes(ordered: Sequence[NDArray[np.integer]]) -> int:
    """Number of nodes of the forest of sequences in order."""
    pairs = itertools.pairwise([np.empty(0, np.int64), *ordered])
    return sum(b.size - _common_prefix(a, b) for a, b in pairs)


def _common_prefix(a: NDArray[np.integer], b: NDArray[np.integer]) -> int:
    n = min(a.size, b.size)
    if not n:
        return 0
    different = a[:n] != b[:n]
    first = int(different.argmax())
    return first if different[first] else n
