"""Hooks on a model's layers and their parts, which read activations or change them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from faithscope.interp.edits import Edit, Knockout, Patch, Site, Steer
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.placement import sent


class Change:
    """What edits make of some rows of one activation, all of them in one way."""

    def __init__(
        self,
        way: Way,
        rows: np.ndarray,
        values: Sequence[Tensor],
        of: np.ndarray,
        spans: np.ndarray | None = None,
    ) -> None:
        """
        Args:
            rows: (n,) rows of the forward.
            values: (m, D) tensors, which are put one below the other.
            of: (n,) the line of the values that each row takes.
            spans: (2, n) positions from and up to which a row is changed, if its position is known
                only once the forward runs.
        """
        self._way: Way = way
        home = values[0].device
        whole = values[0] if len(values) == 1 else torch.cat([v.to(home) for v in values])
        parts = [torch.from_numpy(rows), whole, torch.from_numpy(of)]
        whole_span = None if spans is None else torch.from_numpy(spans)
        self._parts: dict[torch.device | None, tuple[Any, ...]] = {None: (*parts, whole_span)}
        """Device -> rows, values, lines and spans there, sent once."""

    def make(self, flat: Tensor, positions: Positions | None) -> None:
        """Change rows of the (T, D) activations in place."""
        if flat.device not in self._parts:
            sent_there = (x if x is None else sent(x, flat.device) for x in self._parts[None])
            self._parts[flat.device] = tuple(sent_there)
        rows, values, of, spans = self._parts[flat.device]
        x, v = flat[rows], values[of]
        if self._way == "replace":
            y = v.to(x.dtype)
        else:
            wide = x.to(torch.promote_types(x.dtype, torch.float32))
            v = v.to(wide.dtype)
            taken = -(wide * v).sum(-1, keepdim=True) * v if self._way == "ablate" else v
            y = (wide + taken).to(x.dtype)
        if spans is not None:
            assert positions is not None
            at = positions(flat.device)[rows]
            y = torch.where(((at >= spans[0]) & (at < spans[1]))[:, None], y, x)
        flat[rows] = y


Way = Literal["replace", "add", "ablate"]
Positions = Callable[[torch.device], Tensor]
"""Function from a device to the (T,) positions of a forward's rows on it."""
Placed = Mapping[tuple[Site, int], Sequence[Change]]
"""(site, layer) -> the changes of its activations, in order."""


def placed(sets: Sequence[Sequence[Edit]], under: np.ndarray, depth: np.ndarray | None) -> Placed:
    """The patches and steering of a forward, by place and by row.

    Args:
        sets: sets of edits, each in order.
        under: (T,) the set that each row of the forward runs under.
        depth: (T,) positions of the rows; None if they are known only once the forward runs. Then
            patches, which are of known tokens, are left out.
    """
    parts: dict[tuple[Site, int], dict[tuple[int, Way], list[tuple[Any, ...]]]] = {}
    for i in np.unique(under).tolist():
        rows = np.flatnonzero(under == i)
        turn: dict[tuple[Site, int], int] = {}
        for edit in sets[i]:
            if isinstance(edit, Knockout) or edit.first is None:
                continue
            part = _part(edit, rows, None if depth is None else depth[rows])
            if part is None:
                continue
            place = edit.place
            # edits of one row follow each other; those of different rows are made together
            turn[place] = turn.get(place, -1) + 1
            parts.setdefault(place, {}).setdefault((turn[place], part[0]), []).append(part[1:])
    return {
        place: [_joined(way, of_place[t, way]) for t, way in sorted(of_place)]
        for place, of_place in parts.items()
    }


def placed_alone(edits: Sequence[Edit], length: int) -> Placed:
    """The patches and steering of one sequence that is run alone."""
    return placed([edits], np.zeros(length, np.int64), np.arange(length))


def _part(
    edit: Patch | Steer, rows: np.ndarray, depth: np.ndarray | None
) -> tuple[Way, np.ndarray, Tensor, np.ndarray, np.ndarray | None] | None:
    """The way of an edit, the rows that it changes, its values, their lines, and spans."""
    if isinstance(edit, Steer):
        way: Way = "ablate" if edit.ablate else "add"
        start, stop = edit.positions[0], edit.positions[1] or np.iinfo(np.int64).max
        spans = None
        if depth is None:
            spans = np.repeat([[start], [stop]], len(rows), axis=1)
        else:
            rows = rows[(depth >= start) & (depth < stop)]
        of = np.zeros(len(rows), np.int64)
        return (way, rows, edit.vector[None], of, spans) if len(rows) else None
    if depth is None:
        return None
    lines = {p: i for i, p in enumerate(edit.positions)}
    # several nodes may stand at one depth: labels that differ after a shared prefix
    hit = np.isin(depth, edit.positions)
    of = np.array([lines[d] for d in depth[hit].tolist()], np.int64)
    return ("replace", rows[hit], edit.values, of, None) if hit.any() else None


def _joined(way: Way, parts: Sequence[tuple[Any, ...]]) -> Change:
    rows, values, of, spans = zip(*parts, strict=True)
    before = np.cumsum([0, *map(len, values)])
    lines = [o + n for o, n in zip(of, before, strict=False)]
    whole = None if spans[0] is None else np.concatenate(spans, axis=1)
    return Change(way, np.concatenate(rows), values, np.concatenate(lines), whole)


@contextmanager
def patched(
    model: LoadedModel, places: Placed, positions: Positions | None = None
) -> Iterator[None]:
    """Change activations at their places while a (1, T) batch runs."""

    def hook(changes: Sequence[Change]) -> Any:
        def change(_: nn.Module, __: tuple, out: Tensor | tuple) -> Tensor | tuple:
            x = out if isinstance(out, Tensor) else out[0]
            x = x.clone(memory_format=torch.contiguous_format)
            # some experts give (T, D), all others (1, T, D)
            flat = x.view(-1, x.shape[-1])
            for one in changes:
                one.make(flat, positions)
            return x if isinstance(out, Tensor) else (x, *out[1:])

        return change

    # every part is found before a hook is placed: one that is not there must leave none behind
    parts = {place: model.structure.part(*place) for place in places}
    hooks = [parts[place].register_forward_hook(hook(of)) for place, of in places.items()]
    try:
        yield
    finally:
        for handle in hooks:
            handle.remove()


@contextmanager
def residuals(model: LoadedModel, positions: list[int]) -> Iterator[list[Tensor]]:
    """Collect (len(positions), D) residual streams before the first layer and after every layer."""
    streams: list[Tensor] = []
    if not positions:
        yield streams
        return
    layers, at = model.structure.layers, sent(torch.tensor(positions), model.device)

    def before(_: nn.Module, args: tuple, kwargs: dict) -> None:
        x = args[0] if args else kwargs["hidden_states"]
        streams.append(x[0, sent(at, x.device)].to(model.device))

    hooks = [layers[0].register_forward_pre_hook(before, with_kwargs=True)]
    hooks += [layer.register_forward_hook(_collect(model, at, streams)) for layer in layers]
    try:
        yield streams
    finally:
        for handle in hooks:
            handle.remove()


@contextmanager
def outputs(
    model: LoadedModel, positions: list[int], sites: Sequence[Site]
) -> Iterator[dict[Site, list[Tensor]]]:
    """Collect (len(positions), D) outputs at the sites of every layer."""
    by_site: dict[Site, list[Tensor]] = {site: [] for site in sites}
    if not sites or not positions:
        yield by_site
        return
    # every part is found before a hook is placed: one that is not there must leave none behind
    parts: list[tuple[Site, nn.Module]] = [
        (site, model.structure.part(site, layer))
        for site in sites
        for layer in range(model.n_layers)
    ]
    at = sent(torch.tensor(positions), model.device)
    hooks = [part.register_forward_hook(_collect(model, at, by_site[site])) for site, part in parts]
    try:
        yield by_site
    finally:
        for handle in hooks:
            handle.remove()


def _collect(model: LoadedModel, at: Tensor, into: list[Tensor]) -> Any:
    def after(_: nn.Module, __: tuple, out: Tensor | tuple) -> None:
        x = out if isinstance(out, Tensor) else out[0]
        into.append(x.reshape(-1, x.shape[-1])[sent(at, x.device)].to(model.device))

    return after
