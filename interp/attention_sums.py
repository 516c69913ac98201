"""Attention between the spans of one text, summed on the devices of the layers.

Attention of every token to every other one is T² numbers a head and layer. Wanted are sums of them:
they are made of a bounded block of queries at a time, and only sums are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from faithscope.interp import execute
from faithscope.interp.attention import eager
from faithscope.interp.edits import Span
from faithscope.interp.forest import Forest, Ids
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.masks import as_additive, causal_mask
from faithscope.interp.placement import sent
from faithscope.interp.prefill import Prefill, block_on
from faithscope.interp.read import choose_execution

WEIGHTS, WEIGHTS_ELSEWHERE = 2**21, 2**26
"""Most attention weights that are held at once on a CPU, and on accelerators, where starting a call
costs more; unless one query has more."""
S = TypeVar("S", bound=Prefill)
_KEYS = 256
"""Keys whose attention is summed by one product with the spans that lie among them."""


class Summed(Prefill):
    """A forward over consecutive tokens of one text that hands on their attention to spans.

    Sums are float32, which every device has: their terms are positive, so that none loses the
    digits of small ones, as the difference of two cumulative sums would.
    """

    def __init__(self, *whole: Any, block: int, spans: Sequence[Span]) -> None:
        super().__init__(*whole, block=block)
        self._bounds = torch.tensor(spans).T

    def take(self, layer: int, at: int, first: int, weights: Tensor) -> None:
        """Take (H, n, P) attention of the tokens from `start + at` on to those from `first` on, a
        multiple of `_KEYS`."""
        raise NotImplementedError

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        out = super().attend(module, query, key, value, **kwargs)
        layer = int(module.layer_idx)  # pyright: ignore
        keys, values = self.cache.read(layer)
        reach = self._reach(module, self.stop)
        most = WEIGHTS if query.device.type == "cpu" else WEIGHTS_ELSEWHERE
        block = max(1, most // (query.shape[1] * self.stop))
        for at in range(0, query.shape[2], block):
            q = query[:, :, at : at + block]
            p = self.start + at + q.shape[2]
            # keys before a sliding window are left out
            first = max(0, self.start + at + 1 - (reach.window or p)) // _KEYS * _KEYS
            mask = causal_mask(q.shape[2], p, reach, q.device)[None, None, :, first:]
            # values of no width: only the weights are wanted
            whole = keys[:, :, first:p], values[:, :, first:p, :0]
            weights = eager(module)(module, q, *whole, as_additive(mask, q.dtype), **kwargs)[1]
            assert weights is not None
            self.take(layer, at, first, weights[0, :, :, : p - first])
        return out

    def of_spans(self, weights: Tensor, first: int) -> Tensor:
        """(..., n, S) sums over each span of (..., n, P) float32 attention to the tokens from
        `first` on."""
        device, at = weights.device, first // _KEYS
        spans = self._on(device, "spans", lambda: self._spans[0])
        joins = self._on(device, "joins", lambda: self._spans[1])
        of_keys = nn.functional.pad(weights, (0, -weights.shape[-1] % _KEYS))
        of_keys = of_keys.unflatten(-1, (-1, _KEYS)).movedim(-2, 0)
        upto = at + len(of_keys)
        sums = torch.einsum("j...k,jkw->j...w", of_keys, spans[at:upto])
        return torch.einsum("j...w,jws->...s", sums, joins[at:upto])

    @cached_property
    def _spans(self) -> tuple[Tensor, Tensor]:
        """(J, `_KEYS`, W) 1 where a key lies in a span, of the W spans at most among so many keys;
        and (J, W, S) 1 where such a span is that of this index."""
        first, last = self._bounds
        begin = torch.arange(0, self.stop, _KEYS)[:, None]
        meets = (first < begin + _KEYS) & (last > begin)
        width = max(1, int(meets.sum(1).max()))
        among = meets.int().argsort(dim=1, descending=True, stable=True)[:, :width]
        key = (begin + torch.arange(_KEYS))[..., None]
        inside = (key >= first[among][:, None]) & (key < last[among][:, None])
        return inside.float(), nn.functional.one_hot(among, len(first)).float()


def forwards(model: LoadedModel, ids: Ids, cache: KeyValues, make: Callable[..., S]) -> Iterator[S]:
    """Run a text in forwards of at most the model's chunk, and yield the session of each.

    Args:
        make: makes a session of the arguments of `Prefill`.
    """
    forest, n = Forest.of([ids]), len(ids)
    how, _ = choose_execution(model, [ids], "auto")
    # in one forward if positions are scaled by the longest sequence of a forward
    step = n if how == "loop" else model.chunk
    for start in range(0, n, step):
        stop = min(start + step, n)
        whole = (forest, cache, start, stop, model.structure.reaches)
        session = make(*whole, block=block_on(model.device))
        tokens, depth = (torch.from_numpy(x[start:stop]) for x in (forest.tokens, forest.depth))
        with torch.inference_mode():
            execute.forward(model, session, tokens, depth, np.empty(0, np.int64))
        yield session


class _Between(Summed):
    """Sums the attention of spans to spans over a text, weighted by factors."""

    def __init__(
        self, *whole: Any, block: int, spans: Sequence[Span], factors: Tensor, of: dict[int, Tensor]
    ) -> None:
        super().__init__(*whole, block=block, spans=spans)
        self._factors, self._of = factors, of

    @cached_property
    def _by_token(self) -> Tensor:
        """(T, S) factors of each token's attention."""
        first, last = self._bounds
        at = torch.arange(self.start, self.stop)[:, None]
        return ((at >= first) & (at < last)).float() @ self._factors

    def take(self, layer: int, at: int, first: int, weights: Tensor) -> None:
        factors = self._on(weights.device, "factors", lambda: self._by_token)
        sums = self.of_spans(weights.float(), first)
        summed = torch.einsum("hns,ns->hs", sums, factors[at : at + weights.shape[1]])
        self._of[layer] = self._of[layer] + summed if layer in self._of else summed


def attention_between(
    model: LoadedModel, ids: Ids, spans: Sequence[Span], factors: Float[NDArray[np.floating], "S S"]
) -> Float[NDArray[np.float32], "L H S"]:
    """Attention that spans of a text get from its spans, summed over both spans' tokens.

    Args:
        factors: the factor of the attention of each span's tokens (rows) to each span.
    """
    of: dict[int, Tensor] = {}
    weighed = torch.from_numpy(factors).float()

    def make(*whole: Any, block: int) -> _Between:
        return _Between(*whole, block=block, spans=spans, factors=weighed, of=of)

    for _ in forwards(model, ids, KeyValues(len(ids)), make):
        pass
    return np.stack([sent(of[layer], torch.device("cpu")).numpy() for layer in sorted(of)])
