"""TransformerLens' names of hook points for the places that edits write to and states are read at.

| name | place here |
|---|---|
| `blocks.{l}.hook_resid_post` | `residual` of layer l: the stream after it |
| `blocks.{l}.hook_resid_pre` | `residual` of layer l − 1: the stream before layer l |
| `blocks.{l}.hook_attn_out` | `attention` of layer l |
| `blocks.{l}.hook_mlp_out` | `mlp` of layer l |

Layers are counted from 0. `blocks.0.hook_resid_pre` is the stream before the first layer, layer −1
here: it can be read (the first of `Read.residuals`), and no edit writes to it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

from faithscope.interp.errors import UserError

Site = Literal["residual", "attention", "mlp"]
"""The stream after a layer, or what its attention or its MLP puts out, before any norm after it."""
SITES: tuple[Site, ...] = get_args(Site)
HOOKS: dict[str, tuple[Site, int]] = {
    "hook_resid_pre": ("residual", -1),
    "hook_resid_post": ("residual", 0),
    "hook_attn_out": ("attention", 0),
    "hook_mlp_out": ("mlp", 0),
}
"""Name of a hook of a block -> its site, and the layer of the place minus that of the block."""


class Place(NamedTuple):
    """A place of a model's activations."""

    site: Site
    layer: int
    """Layer index from 0; -1 for the stream before the first layer."""


def place_of(name: str) -> Place:
    """The place that a hook name stands for.

    Raises:
        UserError: the name is none of those above; the message has the nearest ones.
    """
    block, _, hook = name.rpartition(".")
    layer = re.fullmatch(r"blocks\.(0|[1-9][0-9]*)", block)
    if layer is None or hook not in HOOKS:
        at = (re.search(r"\d+", name) or ["{l}"])[0]
        near = difflib.get_close_matches(hook or name, HOOKS, n=2, cutoff=0.5) or HOOKS
        raise UserError(
            f"unknown hook name {name!r}; the nearest here: "
            f"{', '.join(f'blocks.{at}.{hook}' for hook in near)}"
        )
    site, off = HOOKS[hook]
    return Place(site, int(layer[1]) + off)


def edited_place(name: str) -> Place:
    """The place that a hook name stands for, if an edit can write to it.

    Raises:
        UserError: as `place_of`, or no edit reaches the place.
    """
    place = place_of(name)
    if place.layer < 0:
        raise UserError(f"{name} is the stream before the first layer; no edit reaches it")
    return place


def beyond(names: Iterable[str], n_layers: int) -> str | None:
    """What is wrong with the first hook name whose block a model of `n_layers` lacks; None if it
    has all."""
    for name in names:
        if int(name.split(".")[1]) >= n_layers:
            return f"{name} is not there; the model has blocks.0 to blocks.{n_layers - 1}"
    return None
