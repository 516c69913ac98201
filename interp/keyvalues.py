"""The cache of a packed forward: keys and values of every node of a trie."""

from __future__ import annotations

from torch import Tensor


class KeyValues:
    """Keys and values of every trie node, per layer, on that layer's own device."""

    def __init__(self, n_nodes: int) -> None:
        self.n_nodes = n_nodes
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    def write(self, layer: int, start: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if layer not in self.layers:
            self.layers[layer] = tuple(  # pyright: ignore
                x.new_empty(1, x.shape[1], self.n_nodes, x.shape[3]) for x in (key, value)
            )
        keys, values = self.layers[layer]
        stop = start + key.shape[2]
        keys[:, :, start:stop], values[:, :, start:stop] = key, value
        return keys, values

    def paths(self, layer: int, index: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values along `index` (B, P) of nodes: (B, heads, P, D) each."""
        keys, values = self.layers[layer]
        flat = index.to(keys.device).flatten()

        def along(x: Tensor) -> Tensor:
            return x[0].index_select(1, flat).unflatten(1, index.shape).transpose(0, 1)

        return along(keys), along(values)
