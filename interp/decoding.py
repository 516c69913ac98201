"""Attention of lockstep decoding: one token a call for each of many sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from einops import rearrange
from torch import Tensor, nn

from faithscope.interp import hooks
from faithscope.interp.attention import is_eager, kernel
from faithscope.interp.edits import Edit, Knockout
from faithscope.interp.keyvalues import KeyValues, Rows
from faithscope.interp.masked import mask_for, masked, one_query
from faithscope.interp.masks import Cut, Reach, as_additive, without
from faithscope.interp.placement import sent

BLOCK = 64
"""Most tokens of every sequence for which room is made at a time."""
_ROWS = 16
"""Number of sequences up to which attention over shared keys is bound by reading them: with four
query heads to a head of keys a CUDA kernel then computes 64 queries at a time. From the figures of
an H100, not measured."""


@dataclass
class _Clock:
    """Where a step stands, on one device: what masks and positions are computed from.

    A step changes it in place, and no shape, so that a captured step can be run again.
    """

    at: Tensor
    """(1,) the column of the newest token of every sequence."""
    pad: Tensor
    """(B, 1) columns before each sequence begins."""
    columns: Tensor
    """(1, P) all columns of keys and values, those yet to come among them."""


class _Columns(NamedTuple):
    """What a step's masks are made from, on one device."""

    held: Tensor
    """(B, P) bool, the columns that hold something of each sequence."""
    keys: Tensor
    """(B or 1, P) position of the token in every column."""
    queries: Tensor
    """(B, 1) position of the newest token of every sequence."""
    own: Tensor
    """(B,) column of the newest token of every sequence."""


class Decode:
    """A session that runs one token per call for each of `B` sequences, each over its own past.

    Pasts are right-aligned: column `at` holds the newest token of every sequence. On accelerators a
    step is static: attention is over all columns there are, under a mask made on the device, so
    that nothing in a step waits and every step of a block of columns has the same shapes.
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
        positions: int | None = None,
        block: int | None = None,
    ) -> None:
        """
        Args:
            spend: whether the cache is no longer needed: each of its layers is freed as it is
                copied, so that cache and rows are never held together.
            positions: number of positions that the model knows; sequences that have ended but are
                not dropped yet go no further.
            block: number of columns that are added at a time; by default at most 64.
        """
        self._reaches = reaches
        self._edits: list[tuple[Edit, ...]] = (
            [tuple(e) for e in edits] if edits else [()] * len(paths)
        )
        self._changes: hooks.Placed | None = None
        rows = Rows(paths)
        self.at = rows.longest - 1
        self._block = block or min(room, BLOCK)
        self._home = next(iter(cache.devices), torch.device("cpu"))
        self.static = self._home.type != "cpu"
        # rows of masks begin at multiples of eight, see `as_additive`
        first = self._block + (-(rows.longest + self._block) % 8 if self.static else 0)
        self.layers = {
            layer: cache.rows(layer, rows, first, spend=spend) for layer in list(cache.layers)
        }
        self.layout = 0
        """Changes whenever the shapes of a step do."""
        self._pad = (rows.longest - rows.lengths)[:, None]
        self._positions = positions
        self._masks: dict[tuple[Any, ...], Tensor | None] = {}
        self._clocks: dict[torch.device, _Clock] = {}
        self._now: dict[torch.device, _Columns] = {}
        self._edited: dict[tuple[Knockout, torch.device], Tensor] = {}

    def _grown(self, x: Tensor) -> Tensor:
        # masked columns are computed with, where steps are static: they must be finite
        make = x.new_zeros if self.static else x.new_empty
        room = make(*x.shape[:2], self._block, x.shape[3])
        return torch.cat([x, room], dim=2)

    @property
    def has_edits(self) -> bool:
        """Whether a sequence runs under an edit."""
        return any(self._edits)

    @property
    def positions(self) -> Tensor:
        """(B,) positions of the tokens about to be run, once `advance` was called."""
        if not self.static:
            return self.at - self._pad[:, 0]
        clock = self._clock(self._home)
        at = clock.at - clock.pad[:, 0]
        return at if self._positions is None else at.clamp(max=self._positions - 1)

    @property
    def changes(self) -> hooks.Placed:
        """What edits change of the activations of every step, made once for the sequences there
        are."""
        if self._changes is None:
            self._changes = hooks.placed(self._edits, np.arange(len(self._edits)), None)
        return self._changes

    def positions_on(self, device: torch.device) -> Tensor:
        """(B,) positions of the tokens about to be run, on a device that a layer runs on."""
        return self._columns_now(device).queries[:, 0]

    def _columns_now(self, device: torch.device) -> _Columns:
        if device not in self._now:
            self._now[device] = self._columns(device)
        return self._now[device]

    def _clock(self, device: torch.device) -> _Clock:
        if device not in self._clocks:
            columns = next(k.shape[2] for k, _ in self.layers.values())
            self._clocks[device] = _Clock(
                torch.full((1,), self.at, device=device),
                sent(self._pad, device),
                torch.arange(columns, device=device)[None],
            )
        return self._clocks[device]

    def advance(self) -> None:
        self.at += 1
        self.forget()
        for clock in self._clocks.values():
            clock.at += 1
        if any(k.shape[2] <= self.at for k, _ in self.layers.values()):
            # columns that only sequences of the past needed are taken again
            spare = self._spare()
            if spare < self._block:
                self._replace(self._grown)
            else:
                self._move(spare)

    def forget(self) -> None:
        """Forget what was made for the step at hand, which its layers share."""
        self._masks.clear()
        self._now.clear()

    def keep(self, rows: Tensor) -> None:
        """Drop every sequence but `rows`, and the columns that no remaining sequence needs."""
        self._pad = self._pad[rows]
        self._edits = [self._edits[i] for i in rows.tolist()]
        self._forget_edits()
        spare = self._spare()
        self._pad = self._pad - spare
        self.at -= spare
        self._replace(lambda x: x[sent(rows, x.device), :, spare:])

    def put(
        self,
        places: Sequence[int],
        cache: KeyValues,
        paths: Sequence[Sequence[int]],
        edits: Sequence[Sequence[Edit]] | None = None,
        *,
        spend: bool = False,
    ) -> None:
        """Begin sequences of a cached forest in the places of others, which have ended, or in new
        ones behind them; shapes change only where there are not yet places or columns enough.

        Args:
            spend: as for `Decode`.
        """
        rows = Rows(paths)
        before = max(0, rows.longest - 1 - self.at)
        if self.static:
            before += -before % 8
        behind = max(0, max(places) + 1 - len(self._pad))
        if before or behind:
            self.at += before
            self._pad = nn.functional.pad(self._pad + before, (0, 0, 0, behind))
            self._edits += [()] * behind
            self._replace(lambda x: nn.functional.pad(x, (0, 0, before, 0, 0, 0, 0, behind)))
        edited = self.has_edits
        for i, place in enumerate(places):
            self._edits[place] = tuple(edits[i]) if edits else ()
        if edited or self.has_edits:
            # what a recorded step does under edits is made for the sequences that there were
            self._forget_edits()
            self.layout += 1
        at, stop = torch.tensor(places), self.at + 1
        self._pad[at] = (stop - rows.lengths)[:, None]
        for clock in self._clocks.values():
            clock.pad.copy_(self._pad, non_blocking=True)
        for layer, pair in self.layers.items():
            for x, new in zip(pair, cache.rows(layer, rows, 0, spend=spend), strict=True):
                x[sent(at, x.device), :, stop - rows.longest : stop] = new

    def _forget_edits(self) -> None:
        self._changes = None
        self._edited.clear()

    def _spare(self) -> int:
        """Number of leading columns that no sequence needs."""
        spare = int(self._pad.min())
        return spare - spare % 8 if self.static else spare

    def _move(self, spare: int) -> None:
        """Take the first columns away and make room behind the others, with no shape changed."""
        for pair in self.layers.values():
            for x in pair:
                x[:, :, : self.at - spare] = x[:, :, spare : self.at].clone()
        self.at -= spare
        self._pad = self._pad - spare
        for clock in self._clocks.values():
            clock.at -= spare
            clock.pad -= spare

    def _replace(self, make: Callable[[Tensor], Tensor]) -> None:
        """Replace keys and values by `make`, one tensor at a time: only one is held twice."""
        self._clocks.clear()
        self.layout += 1
        for pair in self.layers.values():
            for i in range(len(pair)):
                pair[i] = make(pair[i])

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        keys, values = self.layers[int(module.layer_idx)]  # pyright: ignore
        q = rearrange(query, "1 h b d -> b h 1 d")
        new = (rearrange(x, "1 k b d -> b k 1 d") for x in (key, value))
        if keys.device.type != "cpu":
            at = self._clock(keys.device).at
            k, v = (x.index_copy_(2, at, y) for x, y in zip((keys, values), new, strict=True))
        else:
            for x, y in zip((keys, values), new, strict=True):
                x[:, :, self.at : self.at + 1] = y
            k, v = (x[:, :, : self.at + 1] for x in (keys, values))
        mask = self._mask(module, query)
        if mask is None or is_eager(module):
            out, _ = kernel(module)(module, q, k, v, mask, **kwargs)
        else:
            out, _ = one_query(module, q, k, v, mask, **kwargs)
        return rearrange(out, "b 1 h d -> 1 b h d")

    def _columns(self, device: torch.device) -> _Columns:
        if device.type != "cpu":
            clock = self._clock(device)
            at, pad, columns = clock.at, clock.pad, clock.columns
        else:
            at, pad, columns = torch.tensor([self.at]), self._pad, torch.arange(self.at + 1)[None]
        return _Columns(columns >= pad, columns - pad, at - pad, at.expand(len(pad)))

    @staticmethod
    def _of_rows(mask: Tensor) -> Tensor:
        """A (1, 1 or H, B, P) mask as (B, 1 or H, 1, P): each sequence has keys of its own."""
        return rearrange(mask, "1 h b p -> b h 1 p")

    def _mask(self, module: nn.Module, query: Tensor) -> Tensor | None:
        layer = int(module.layer_idx)  # pyright: ignore
        reach, device = self._reaches[layer], query.device
        assert reach is not None, "models with masks of other kinds are run one by one"
        static = device.type != "cpu"
        held, keys, queries, own = self._columns_now(device)
        cuts = self._cuts_in(layer, queries[:, 0], drop=not static)
        name = (reach, device, is_eager(module), *(c.edit for c in cuts))
        if name not in self._masks:
            seen = held & reach.sees(queries, keys)
            mask = self._of_rows(without(seen, cuts, keys, own, query.shape[1]))
            self._masks[name] = self._form(module, mask, query)
        return self._masks[name]

    def _form(self, module: nn.Module, mask: Tensor, query: Tensor) -> Tensor | None:
        """A mask of booleans as the attention call takes it; None where every key is seen."""
        if query.device.type != "cpu" or is_eager(module):
            return as_additive(mask, query.dtype)
        return None if bool(mask.all()) else mask

    def _cuts_in(self, layer: int, positions: Tensor, *, drop: bool) -> list[Cut]:
        """The knockouts in a layer; with `drop`, without those that no sequence is under now."""
        cuts = []
        for edit in dict.fromkeys(
            e for row_edits in self._edits for e in row_edits if isinstance(e, Knockout)
        ):
            if not edit.cuts_in(layer):
                continue
            first, last = edit.queries
            done = self._under(edit, positions.device) & (positions >= first)
            if last is not None:
                done &= positions < last
            if not drop or bool(done.any()):
                cuts.append(Cut(edit, done))
        return cuts

    def _under(self, edit: Knockout, device: torch.device) -> Tensor:
        """(B,) bool: the sequences that run under `edit`."""
        if (edit, device) not in self._edited:
            under = torch.tensor([edit in row_edits for row_edits in self._edits])
            self._edited[edit, device] = sent(under, device)
        return self._edited[edit, device]


@dataclass
class _Trunk:
    """The columns of a step of `Shared` on one device; a step changes these tensors in place."""

    held: Tensor
    keys: Tensor
    queries: Tensor
    own: Tensor

    @property
    def columns(self) -> _Columns:
        return _Columns(self.held, self.keys[None], self.queries[:, None], self.own)


class Shared(Decode):
    """Decoding in which sequences share the keys and values of the nodes that their paths share.

    All sequences are queries of one attention call over the nodes of the trie and the tokens
    written since, each under a mask of its own path. A trunk of 8,000 tokens is held and read once,
    where `Decode` holds and reads it for every sequence. Accelerators only.
    """

    @staticmethod
    def serves(cache: KeyValues, paths: Sequence[Sequence[int]], room: int = 0) -> bool:
        """Whether paths share so much that one call costs less than a call per path.

        One call computes every query with every key, those that others have written too, and reads
        every key once.

        Args:
            room: most new tokens of a path; half of them are there at a middle step.
        """
        if any(device.type == "cpu" for device in cache.devices):
            return False
        shared = len(np.unique(np.concatenate([np.asarray(p) for p in paths])))
        written = len(paths) * room / 2
        one_call = (shared + written) * max(1, len(paths) / _ROWS)
        return 2 * one_call <= sum(map(len, paths)) + written

    def __init__(
        self,
        cache: KeyValues,
        paths: Sequence[Sequence[int]],
        room: int,
        reaches: Mapping[int, Reach | None],
        edits: Sequence[Sequence[Edit]] | None = None,
        *,
        spend: bool = False,
        positions: int | None = None,
    ) -> None:
        nodes = np.unique(np.concatenate([np.asarray(p) for p in paths]))
        self._free = len(nodes)
        """The first column that holds nothing yet."""
        super().__init__(
            cache,
            [nodes.tolist()],
            room,
            reaches,
            spend=spend,
            positions=positions,
            block=len(paths) * min(room, BLOCK),
        )
        self._edits = [tuple(e) for e in edits] if edits else [()] * len(paths)
        size = next(k.shape[2] for k, _ in self.layers.values())
        held, depth = torch.zeros(len(paths), size, dtype=torch.bool), torch.zeros(size).long()
        for row, path in zip(held, paths, strict=True):
            at = torch.from_numpy(np.searchsorted(nodes, np.asarray(path)))
            row[at], depth[at] = True, torch.arange(len(path))
        self._trunks = {
            device: _Trunk(
                sent(held, device),
                sent(depth, device),
                sent(torch.tensor([len(path) - 1 for path in paths]), device),
                self._last(len(paths), device),
            )
            for device in {k.device for k, _ in self.layers.values()}
        }

    def _last(self, rows: int, device: torch.device) -> Tensor:
        """(B,) columns before the free ones, one for each sequence."""
        return torch.arange(self._free - rows, self._free, device=device)

    @property
    def positions(self) -> Tensor:
        at = self._trunks[self._home].queries
        return at if self._positions is None else at.clamp(max=self._positions - 1)

    def advance(self) -> None:
        self.forget()
        self._free += len(self._edits)
        if any(k.shape[2] < self._free for k, _ in self.layers.values()):
            self._replace(self._grown)
            for trunk in self._trunks.values():
                trunk.held = nn.functional.pad(trunk.held, (0, self._block))
                trunk.keys = nn.functional.pad(trunk.keys, (0, self._block))
        for trunk in self._trunks.values():
            trunk.own += len(self._edits)
            trunk.queries += 1
            trunk.held.scatter_(1, trunk.own[:, None], True)
            trunk.keys.index_copy_(0, trunk.own, trunk.queries)

    def keep(self, rows: Tensor) -> None:
        """Drop every sequence but `rows`; what only others wrote stays, unseen."""
        self._edits = [self._edits[i] for i in rows.tolist()]
        self._forget_edits()
        self.layout += 1
        for device, trunk in self._trunks.items():
            at = sent(rows, device)
            trunk.held, trunk.queries = trunk.held[at], trunk.queries[at]
            trunk.own = self._last(len(rows), device)

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        layer, new = self.layers[int(module.layer_idx)], (key, value)  # pyright: ignore
        own = self._trunks[query.device].own
        k, v = (x.index_copy_(2, own, y) for x, y in zip(layer, new, strict=True))
        mask = self._mask(module, query)
        assert mask is not None
        return masked(module, query, k, v, mask, **kwargs)[0]

    def _columns(self, device: torch.device) -> _Columns:
        return self._trunks[device].columns

    @staticmethod
    def _of_rows(mask: Tensor) -> Tensor:
        return mask

    def _form(self, module: nn.Module, mask: Tensor, query: Tensor) -> Tensor:
        return mask_for(module, mask, query, *self.layers[int(module.layer_idx)])  # pyright: ignore
