"""Hooks on a model's layers and their parts, which read activations or replace them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from faithscope.interp.edits import Edit, Patch, Site
from faithscope.interp.forest import Forest
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.placement import sent

Placed = Mapping[tuple[Site, int], Sequence[tuple[Tensor, Tensor]]]
"""(site, layer) -> rows of the current forward and the values that replace them."""


def placed(forest: Forest, start: int, stop: int) -> Placed:
    """The patches of nodes `start`..`stop`, by row of the forward that runs these nodes."""
    marks, depth = forest.mark[start:stop], forest.depth[start:stop]
    patches: dict[tuple[Site, int], list[tuple[Tensor, Tensor]]] = {}
    for mark in np.unique(marks).tolist():
        rows = np.flatnonzero(marks == mark)
        for patch in forest.edits[mark]:
            if isinstance(patch, Patch):
                _place(patches, patch, rows, depth[rows])
    return patches


def placed_alone(edits: Sequence[Edit], length: int) -> Placed:
    """The patches of one sequence that is run alone."""
    rows = np.arange(length)
    patches: dict[tuple[Site, int], list[tuple[Tensor, Tensor]]] = {}
    for patch in edits:
        if isinstance(patch, Patch):
            _place(patches, patch, rows, rows)
    return patches


def _place(
    patches: dict[tuple[Site, int], list[tuple[Tensor, Tensor]]],
    patch: Patch,
    rows: np.ndarray,
    depth: np.ndarray,
) -> None:
    # several nodes may stand at one depth: labels that differ after a shared prefix
    at: dict[int, list[int]] = {}
    for d, r in zip(depth.tolist(), rows.tolist(), strict=True):
        at.setdefault(d, []).append(r)
    pairs = [(r, i) for i, p in enumerate(patch.positions) for r in at.get(p, ())]
    if pairs:
        into, of = (torch.tensor(x) for x in zip(*pairs, strict=True))
        patches.setdefault((patch.site, patch.layer), []).append(
            (into, patch.values[of.to(patch.values.device)])
        )


@contextmanager
def patched(model: LoadedModel, places: Placed) -> Iterator[None]:
    """Replace activations at their places while a (1, T) batch runs."""

    def hook(replacements: Sequence[tuple[Tensor, Tensor]]) -> Any:
        def replace(_: nn.Module, __: tuple, out: Tensor | tuple) -> Tensor | tuple:
            x = out if isinstance(out, Tensor) else out[0]
            x = x.clone(memory_format=torch.contiguous_format)
            # some experts give (T, D), all others (1, T, D)
            flat = x.view(-1, x.shape[-1])
            for rows, values in replacements:
                flat[sent(rows, x.device)] = sent(values, x.device).to(x.dtype)
            return x if isinstance(out, Tensor) else (x, *out[1:])

        return replace

    # every part is found before a hook is placed: one that is not there must leave none behind
    parts = {place: model.structure.part(*place) for place in places}
    hooks = [
        parts[place].register_forward_hook(hook(replacements))
        for place, replacements in places.items()
    ]
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
    # every part is found before a hook is placed: one that is not there must leave none behind
    parts: list[tuple[Site, nn.Module]] = [
        (site, model.structure.part(site, layer))
        for site in sites
        for layer in range(model.n_layers)
        if positions
    ]
    at = sent(torch.tensor(positions, dtype=torch.long), model.device)
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
