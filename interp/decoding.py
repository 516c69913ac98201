"""Attention of lockstep decoding: one token a call for each of many sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from faithscope.interp.attention import is_eager, kernel, one_query
from faithscope.interp.edits import Edit, Knockout
from faithscope.interp.keyvalues import KeyValues, Rows
from faithscope.interp.masks import Cut, Reach, as_additive, without


class Decode:
    """A session that runs one token per call for each of `B` sequences, each over its own past.

    Pasts are right-aligned: column `at` holds the newest token of every sequence.
    """

    def __init__(
        self,
        cache: KeyValues,
        paths: Sequence[Sequence[int]],
        room: int,
        reaches: Mapping[int, Reach | None],
        edits: Sequence[Sequence[Edit]] | None = None,
        *,
        spend: bool = False,
    ) -> None:
        """
        Args:
            spend: whether the cache is no longer needed: each of its layers is freed as it is
                copied, so that cache and rows are never held together.
        """
        self._reaches = reaches
        self._edits = [tuple(e) for e in edits] if edits else [()] * len(paths)
        rows = Rows(paths)
        self.lengths = rows.lengths
        self.at = rows.longest - 1
        self._block = min(room, 64)
        self.layers = {
            layer: cache.rows(layer, rows, self._block, spend=spend) for layer in list(cache.layers)
        }
        self._pad = (rows.longest - self.lengths)[:, None]
        self._masks: dict[tuple[Any, ...], Tensor | None] = {}

    def _grown(self, x: Tensor) -> Tensor:
        room = x.new_empty(*x.shape[:2], self._block, x.shape[3])
        return torch.cat([x, room], dim=2)

    @property
    def positions(self) -> Tensor:
        """(B,) positions of the tokens about to be run, once `advance` was called."""
        return self.at - self._pad[:, 0]

    def advance(self) -> None:
        self.at += 1
        self._masks.clear()
        if any(k.shape[2] <= self.at for k, _ in self.layers.values()):
            self._replace(self._grown)

    def keep(self, rows: Tensor) -> None:
        """Drop every sequence but `rows`, and the columns that no remaining sequence needs."""
        self._pad, self.lengths = self._pad[rows], self.lengths[rows]
        self._edits = [self._edits[i] for i in rows.tolist()]
        spare = int(self._pad.min())
        self._pad = self._pad - spare
        self.at -= spare
        self._replace(lambda x: x[rows.to(x.device), :, spare:])

    def _replace(self, make: Callable[[Tensor], Tensor]) -> None:
        """Replace keys and values by `make`, one tensor at a time: only one is held twice."""
        for pair in self.layers.values():
            for i in range(len(pair)):
                pair[i] = make(pair[i])

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        keys, values = self.layers[int(module.layer_idx)]  # pyright: ignore
        keys[:, :, self.at] = key[0].transpose(0, 1)
        values[:, :, self.at] = value[0].transpose(0, 1)
        mask = self._mask(module, query)
        q, seen = query[0].transpose(0, 1)[:, :, None], slice(None, self.at + 1)
        k, v = keys[:, :, seen], values[:, :, seen]
        if mask is None or is_eager(module):
            out, _ = kernel(module)(module, q, k, v, mask, **kwargs)
        else:
            out, _ = one_query(module, q, k, v, mask, **kwargs)
        return out.transpose(0, 1)

    def _mask(self, module: nn.Module, query: Tensor) -> Tensor | None:
        layer = int(module.layer_idx)  # pyright: ignore
        reach, cuts = self._reaches[layer], self._cuts_in(layer)
        assert reach is not None, "models with masks of other kinds are run one by one"
        name = (reach, query.device, is_eager(module), *(c.edit for c in cuts))
        if name not in self._masks:
            columns = torch.arange(self.at + 1)[None]
            seen = columns >= self._pad
            seen &= reach.sees(self.at - self._pad, columns - self._pad)
            own = torch.full((len(seen),), self.at)
            # (B, 1 or H, 1, P): in decoding every sequence is one query
            mask = without(seen, cuts, columns - self._pad, own, query.shape[1])
            mask = mask[0].transpose(0, 1)[:, :, None].to(query.device)
            if is_eager(module):
                self._masks[name] = as_additive(mask, query.dtype)
            else:
                self._masks[name] = None if bool(mask.all()) else mask
        return self._masks[name]

    def _cuts_in(self, layer: int) -> list[Cut]:
        cuts = []
        for edit in dict.fromkeys(
            e for row_edits in self._edits for e in row_edits if isinstance(e, Knockout)
        ):
            first, last = edit.queries
            done = self.positions >= first
            if last is not None:
                done &= self.positions < last
            done &= torch.tensor([edit in row_edits for row_edits in self._edits])
            if edit.cuts_in(layer) and bool(done.any()):
                cuts.append(Cut(edit, done))
        return cuts
