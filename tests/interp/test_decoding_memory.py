"""Bytes of keys and values while rows are made, thinned out and grown: never two copies of all;
and while one token runs after each of many nodes: no copy of a path."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from faithscope.interp import execute
from faithscope.interp.decoding import Decode
from faithscope.interp.forest import Forest
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.masks import EVERYTHING
from faithscope.interp.model import Model

LAYERS, HEADS, NODES, WIDTH = 12, 2, 200, 16
BRANCHES, PREFIX, ROOM = 6, 150, 64


class Bytes(TorchDispatchMode):
    """Counts the bytes of all tensors that are held, and their peak."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._held: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in (x for x in tree_leaves(out) if isinstance(x, torch.Tensor)):
            storage = tensor.untyped_storage()
            if storage._cdata not in self._held:
                self._held[storage._cdata] = storage.nbytes()
                self.now += storage.nbytes()
                self.peak = max(self.peak, self.now)
                weakref.finalize(storage, self._freed, storage._cdata)
        return out

    def _freed(self, storage: int) -> None:
        self.now -= self._held.pop(storage)

    def peak_of(self, do: Any) -> int:
        """Bytes at the peak of what is done."""
        self.peak = self.now
        do()
        return self.peak


def bytes_of(*tensors: torch.Tensor) -> int:
    return sum(x.untyped_storage().nbytes() for x in tensors)


def test_rows_are_made_thinned_out_and_grown_with_one_tensor_held_twice():
    with Bytes() as held:
        cache = KeyValues(NODES)
        for layer in range(LAYERS):
            cache.write(layer, 0, *torch.randn(2, 1, HEADS, NODES, WIDTH))
        whole = sum(bytes_of(*pair) for pair in cache.layers.values())
        assert whole <= held.now < 1.1 * whole, "the count is of what is held"

        # a branch: most of the trunk, then nodes of its own
        paths = [[*range(PREFIX), *range(PREFIX + 5 * i, PREFIX + 5 * i + 5)] for i in range(6)]
        state: list[Decode] = []
        reaches = dict.fromkeys(range(LAYERS), EVERYTHING)
        peak = held.peak_of(lambda: state.append(Decode(cache, paths, ROOM, reaches, spend=True)))
        (decode,) = state
        rows = sum(bytes_of(*pair) for pair in decode.layers.values())
        of_a_layer = bytes_of(*decode.layers[0]) + whole // LAYERS
        assert not cache.layers
        assert rows > whole
        assert peak <= rows + of_a_layer
        assert held.now < 1.1 * rows

        before = held.now
        assert held.peak_of(lambda: decode.keep(torch.arange(3))) <= before + rows // LAYERS // 2
        assert held.now < 0.6 * before

        before = held.now
        for _ in range(ROOM - 1):
            decode.advance()
        assert held.now == before
        peak = held.peak_of(lambda: [decode.advance() for _ in range(2)])
        assert held.now > before, "it has grown"
        assert peak <= held.now + bytes_of(*decode.layers[0])


def test_a_whole_copy_would_be_seen():
    with Bytes() as held:
        layers = {i: torch.zeros(1000) for i in range(LAYERS)}
        before = held.now
        peak = held.peak_of(lambda: {i: x.clone() for i, x in layers.items()})
    assert peak >= 2 * before - 4


def test_rows_hold_what_lies_on_their_paths():
    cache = KeyValues(NODES)
    cache.write(0, 0, *torch.randn(2, 1, HEADS, NODES, WIDTH))
    keys, values = cache.layers[0]
    paths = [[0, 1, 2, 7, 8], [0, 5], [3]]
    decode = Decode(cache, paths, ROOM, {0: EVERYTHING})
    assert cache.layers, "another group may need them"
    for laid_out, nodes in zip(decode.layers[0], (keys, values), strict=True):
        for row, path in zip(laid_out, paths, strict=True):
            at = 5 - len(path)
            assert torch.equal(row[:, at:5], nodes[0][:, path])
            assert not row[:, :at].any()


def test_a_token_after_each_of_many_nodes_copies_no_path_for_each(llama: Model):
    trunk, n = tuple(range(1, 201)), 60
    forest = Forest.of([(*trunk, i) for i in range(n)])
    cache = execute.prefill(llama, forest, [0], lambda *_: None, chunk=llama.chunk)
    ends = [int(path[-1]) for path in forest.paths]
    a_path = sum(bytes_of(*pair) for pair in cache.layers.values()) * len(trunk) // len(forest)
    logits: dict[int, torch.Tensor] = {}

    def run() -> None:
        execute.one_more(
            llama,
            forest,
            cache,
            ends,
            [7] * n,
            lambda rows, x: logits.update(zip(rows, x, strict=True)),
            edits=[()] * n,
        )

    with Bytes() as held:
        peak = held.peak_of(run)
    assert peak < 10 * a_path
    assert sorted(logits) == list(range(n))
