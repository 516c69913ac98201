"""Attention over a packed trie, through transformers' own attention interface.

A model loaded by faithscope runs under an attention implementation registered here.
Outside a packed run it hands every call straight to the kernel that transformers would
have used. Inside one, a *session* decides which keys each query sees, and the same kernel
does the arithmetic, so grouped heads, soft-caps, sinks and scaling stay the model's own.
The mask function is registered with it: without one, transformers drops padding and
causality silently.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from interp.forest import Forest, Run

Kernel = Callable[..., tuple[Tensor, Tensor | None]]

_BLOCK = 128
"""Queries of one masked call. Under a mask a CPU's kernel computes keys beyond a query all the
same, so a long run is cut where its keys end; and as many short runs share one call."""


class Session(Protocol):
    """Decides what the queries of a packed forward attend to."""

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        """(1, H, T, D) queries to (1, T, H, D) outputs."""
        ...


_session: ContextVar[Session | None] = ContextVar("faithscope_attention", default=None)


@contextmanager
def session(active: Session) -> Iterator[None]:
    token = _session.set(active)
    try:
        yield
    finally:
        _session.reset(token)


def register(base: str) -> str:
    """Register the packed implementation over the kernel `base`; gives its name."""
    name = f"faithscope_{base}"
    if name not in ALL_ATTENTION_FUNCTIONS:
        base_mask = ALL_MASK_ATTENTION_FUNCTIONS[base]

        def attention(
            module: nn.Module,
            query: Tensor,
            key: Tensor,
            value: Tensor,
            attention_mask: Tensor | None,
            **kwargs: Any,
        ) -> tuple[Tensor, Tensor | None]:
            active = _session.get()
            if active is None:
                return kernel(module)(module, query, key, value, attention_mask, **kwargs)
            return active.attend(module, query, key, value, **kwargs), None

        def mask(*args: Any, **kwargs: Any) -> Tensor | None:
            return None if _session.get() is not None else base_mask(*args, **kwargs)

        AttentionInterface.register(name, attention)
        AttentionMaskInterface.register(name, mask)
    return name


def kernel(module: nn.Module) -> Kernel:
    """The kernel below the packed implementation that `module` runs under."""
    name: str = module.config._attn_implementation  # pyright: ignore
    if name in ("faithscope_eager", "eager"):
        return eager(module)
    return ALL_ATTENTION_FUNCTIONS[name.removeprefix("faithscope_")]


def _masked_on_cpu(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    *,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """What transformers' sdpa does under a mask, without a copy of the keys for every query
    head: its way is right for CUDA, whose masked kernels want the copy, and costs a short run
    on a CPU half of its time."""
    if kwargs.get("dropout") or kwargs.get("position_bias") is not None:
        return kernel(module)(module, query, key, value, mask, scaling=scaling, **kwargs)  # pyright: ignore
    out = nn.functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return out.transpose(1, 2).contiguous(), None


def eager(module: nn.Module) -> Kernel:
    """The family's own plain attention, which also returns its weights."""
    return sys.modules[type(module).__module__].eager_attention_forward


def _is_eager(module: nn.Module) -> bool:
    return module.config._attn_implementation == "faithscope_eager"  # pyright: ignore


def causal_mask(queries: int, keys: int, window: int | None, device: torch.device) -> Tensor:
    """(queries, keys) bool: the last `queries` positions of a path of `keys` tokens."""
    q = torch.arange(keys - queries, keys, device=device)[:, None]
    k = torch.arange(keys, device=device)[None]
    seen = k <= q
    return seen if window is None else seen & (k > q - window)


def ancestor_mask(end: Tensor, depth: Tensor, start: int, stop: int, window: int | None) -> Tensor:
    """(stop - start, stop) bool: which nodes lie on the path to nodes `start`..`stop`."""
    q = torch.arange(start, stop, device=end.device)[:, None]
    k = torch.arange(stop, device=end.device)[None]
    seen = (k <= q) & (q < end[None, :stop])
    if window is not None:
        seen &= depth[None, :stop] > depth[start:stop, None] - window
    return seen


def as_additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Zero where seen, the most negative number of `dtype` elsewhere."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)


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


@dataclass(frozen=True)
class _Together:
    """Several short runs that follow each other, and all that any of them sees."""

    start: int
    stop: int
    nodes: Tensor
    """(P,) what lies on the path to the first node, then all nodes from it on. What comes
    before the first and is an ancestor of a later node is one of the first, too."""
    end: Tensor
    """(P,) of those nodes, where their descendants end."""
    depth: Tensor
    """(P,)"""

    @classmethod
    def of(cls, forest: Forest, start: int, stop: int) -> _Together:
        path = forest.path(start)[:-1]
        nodes = torch.from_numpy(np.concatenate([path, np.arange(start, stop)]))
        of_nodes = (torch.from_numpy(x)[nodes] for x in (forest.end, forest.depth))
        return cls(start, stop, nodes, *of_nodes)

    def mask(self, window: int | None) -> Tensor:
        """(stop - start, P) bool."""
        q = torch.arange(self.start, self.stop)[:, None]
        seen = (self.nodes[None] <= q) & (q < self.end[None])
        if window is not None:
            own = self.depth[-(self.stop - self.start) :, None]
            seen &= self.depth[None] > own - window
        return seen


class Prefill:
    """One forward over nodes `start`..`stop` of a forest whose earlier nodes are cached."""

    def __init__(
        self,
        forest: Forest,
        cache: KeyValues,
        start: int,
        stop: int,
        *,
        row_nodes: Sequence[int] = (),
        dense: bool = False,
    ) -> None:
        self.forest, self.cache = forest, cache
        self.start, self.stop = start, stop
        self.row_nodes = [n for n in row_nodes if start <= n < stop]
        self.rows: dict[int, dict[int, Tensor]] = {n: {} for n in self.row_nodes}
        """node -> layer -> (H, P) attention of that node over its path."""
        blocks = [] if dense else forest.blocks(start, stop, _BLOCK)
        self._parts: list[Run | _Together] = [
            forest.run(a, b) if one else _Together.of(forest, a, b) for a, b, one in blocks
        ]
        self._masks: dict[tuple[Any, ...], Tensor] = {}

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
        else:
            out = self._dense(module, query, keys, values, kwargs)
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
        n, p, window = q.shape[2], k.shape[2], kwargs.get("sliding_window")
        if window is not None and p <= window:
            window = None
        if window is None and (n == 1 or (n == p and not _is_eager(module))):
            return kernel(module)(module, q, k, v, None, **kwargs)[0]
        mask = self._mask(module, n, p, window, q)
        if q.device.type != "cpu":
            return kernel(module)(module, q, k, v, mask, **kwargs)[0]
        masked = kernel(module) if _is_eager(module) else _masked_on_cpu
        outs = [
            masked(
                module,
                q[:, :, at : at + _BLOCK],
                k[:, :, :upto],
                v[:, :, :upto],
                mask[:, :, at : at + _BLOCK, :upto],
                **kwargs,
            )[0]
            for at in range(0, n, _BLOCK)
            for upto in [min(p, p - n + at + _BLOCK)]
        ]
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
        at = part.nodes.to(keys.device)
        k, v = (x.index_select(2, at) for x in (keys, values))
        window = kwargs.get("sliding_window")
        name = ("together", part.start, window, q.device, _is_eager(module))
        if name not in self._masks:
            mask = part.mask(window).to(q.device)[None, None]
            self._masks[name] = as_additive(mask, q.dtype) if _is_eager(module) else mask
        plain = q.device.type != "cpu" or _is_eager(module)
        masked = kernel(module) if plain else _masked_on_cpu
        return masked(module, q, k, v, self._masks[name], **kwargs)[0]

    def _mask(self, module: nn.Module, n: int, p: int, window: int | None, q: Tensor) -> Tensor:
        name = (n, p, window, q.device, _is_eager(module))
        if name not in self._masks:
            mask = causal_mask(n, p, window, q.device)[None, None]
            self._masks[name] = as_additive(mask, q.dtype) if _is_eager(module) else mask
        return self._masks[name]

    def _dense(
        self,
        module: nn.Module,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        kwargs: dict[str, Any],
    ) -> Tensor:
        window = kwargs.get("sliding_window")
        name = ("dense", window, query.device, _is_eager(module))
        if name not in self._masks:
            end, depth = (
                torch.as_tensor(x, device=query.device)
                for x in (self.forest.end, self.forest.depth)
            )
            mask = ancestor_mask(end, depth, self.start, self.stop, window)[None, None]
            self._masks[name] = as_additive(mask, query.dtype) if _is_eager(module) else mask
        k, v = keys[:, :, : self.stop], values[:, :, : self.stop]
        return kernel(module)(module, query, k, v, self._masks[name], **kwargs)[0]

    def _row(
        self,
        module: nn.Module,
        node: int,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        kwargs: dict[str, Any],
    ) -> Tensor:
        """The family's own plain attention, for one query: (H, P) weights."""
        (run,) = self.forest.runs(node, node + 1)
        q = query[:, :, node - self.start : node - self.start + 1]
        k, v = (_join(x, run) for x in (keys, values))
        window = kwargs.get("sliding_window")
        mask = None
        if window is not None and k.shape[2] > window:
            mask = as_additive(causal_mask(1, k.shape[2], window, q.device), q.dtype)[None, None]
        weights = eager(module)(module, q, k, v, mask, **kwargs)[1]
        assert weights is not None
        return weights[0, :, 0].float()


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


class Decode:
    """One token for each of `B` sequences a call, each over its own past.

    Pasts are right-aligned: column `at` holds the newest token of every sequence.
    """

    def __init__(self, cache: KeyValues, paths: Sequence[Sequence[int]], room: int) -> None:
        self.lengths = torch.tensor([len(p) for p in paths])
        longest = int(self.lengths.max())
        index = torch.zeros(len(paths), longest, dtype=torch.long)
        for row, path in zip(index, paths, strict=True):
            row[longest - len(path) :] = torch.as_tensor(path)
        self.at = longest - 1
        self._block = min(room, 64)
        self.layers = {
            layer: tuple(self._grown(x) for x in cache.paths(layer, index))
            for layer in cache.layers
        }
        self._pad = (longest - self.lengths)[:, None]
        self._masks: dict[tuple[Any, ...], Tensor | None] = {}

    def _grown(self, x: Tensor) -> Tensor:
        room = x.new_empty(*x.shape[:2], self._block, x.shape[3])
        return torch.cat([x, room], dim=2)

    @property
    def positions(self) -> Tensor:
        """(B,) position of the token about to be run, once `advance` was called."""
        return self.at - self._pad[:, 0]

    def advance(self) -> None:
        self.at += 1
        self._masks.clear()
        if any(k.shape[2] <= self.at for k, _ in self.layers.values()):
            self.layers = {
                n: tuple(self._grown(x) for x in pair) for n, pair in self.layers.items()
            }

    def keep(self, rows: Tensor) -> None:
        """Drop every sequence but `rows` and the columns no one needs any more."""
        self._pad, self.lengths = self._pad[rows], self.lengths[rows]
        spare = int(self._pad.min())
        self._pad = self._pad - spare
        self.at -= spare
        self.layers = {
            n: tuple(x[rows.to(x.device), :, spare:] for x in pair)
            for n, pair in self.layers.items()
        }

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        keys, values = self.layers[int(module.layer_idx)]  # pyright: ignore
        keys[:, :, self.at] = key[0].transpose(0, 1)
        values[:, :, self.at] = value[0].transpose(0, 1)
        mask = self._mask(module, kwargs.get("sliding_window"), query)
        out, _ = kernel(module)(
            module,
            query[0].transpose(0, 1)[:, :, None],
            keys[:, :, : self.at + 1],
            values[:, :, : self.at + 1],
            mask,
            **kwargs,
        )
        return out.transpose(0, 1)

    def _mask(self, module: nn.Module, window: int | None, query: Tensor) -> Tensor | None:
        name = (window, query.device, _is_eager(module))
        if name not in self._masks:
            columns = torch.arange(self.at + 1)[None]
            seen = columns >= self._pad
            if window is not None:
                seen &= columns > self.at - window
            mask = seen[:, None, None].to(query.device)
            self._masks[name] = (
                None
                if bool(seen.all())
                else as_additive(mask, query.dtype)
                if _is_eager(module)
                else mask
            )
        return self._masks[name]
