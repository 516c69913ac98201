"""Rotation of cached keys to other positions, by the model's own rotary embedding.

With rotary positions, a key differs from that of the same token at another position by a rotation
alone. Families write it in several ways (parts of a head, interleaved pairs, layers without any),
so each layer's rotation is compared with what the model itself computes at another position.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from faithscope.interp import execute
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Forest
from faithscope.interp.keyvalues import KeyValues
from faithscope.interp.loaded import LoadedModel

_TOKENS, _SHIFT = 12, 37
_TOLERANCE = {"float32": 1e-3, "float64": 1e-3}
"""Largest difference of rotated keys from the model's own, as a share of the largest number, by
dtype; `_ROUGH` for dtypes of fewer digits."""
_ROUGH = 0.05


class Rotation:
    """Moves keys of a model's layers to other positions."""

    def __init__(self, model: LoadedModel) -> None:
        """
        Raises:
            UserError: positions of the model are not rotary, or not in a way that is known here.
        """
        embeddings = [m for m in model.hf.modules() if type(m).__name__.endswith("RotaryEmbedding")]
        if not embeddings or not isinstance(
            vars(sys.modules[type(embeddings[0]).__module__]).get("apply_rotary_pos_emb"), Callable
        ):
            raise UserError(f"{model.name}: its positions are not rotary, so that {_CONSEQUENCE}")
        self._embedding = embeddings[0]
        self._types = getattr(model.hf.config.get_text_config(), "layer_types", None)
        self._parts: dict[int, slice | None] = {}
        """Layer -> the dimensions of a key that are rotated; None if none are."""
        self._angles: dict[tuple[str | None, int, torch.device], tuple[Tensor, Tensor]] = {}
        self._check(model)

    def turn(self, module: nn.Module, keys: Tensor, by: int) -> Tensor:
        """(1, heads, N, D) keys of an attention module as they are `by` positions later."""
        part = self._parts[layer := int(module.layer_idx)]  # pyright: ignore
        return keys if part is None or not by else self._turned(module, keys, layer, by, part)

    def _turned(self, module: nn.Module, keys: Tensor, layer: int, by: int, part: slice) -> Tensor:
        apply: Callable[..., tuple[Tensor, Tensor]]
        apply = sys.modules[type(module).__module__].apply_rotary_pos_emb
        own = keys[..., part].float()
        turned = keys.clone()
        turned[..., part] = apply(own, own[:, :1, :1], *self._at(layer, by, keys.device))[0]
        return turned

    def _at(self, layer: int, by: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """(1, 1, D) cosines and sines of a shift."""
        types = "layer_type" in inspect.signature(self._embedding.forward).parameters
        kind = self._types[layer] if types and self._types else None
        if (kind, by, device) not in self._angles:
            position = torch.tensor([[by]], device=device)
            like = torch.zeros(1, device=device)
            cos, sin = self._embedding(like, position, *([kind] if kind else []))
            # some families scale both, queries and keys; a key has its scale already
            scale = (cos * cos + sin * sin).sqrt()
            self._angles[kind, by, device] = cos / scale, sin / scale
        return self._angles[kind, by, device]

    def _check(self, model: LoadedModel) -> None:
        here, there = _keys(model, 0), _keys(model, _SHIFT)
        stream = model.structure.stream
        for layer in list(here.layers):
            module = stream.attentions[layer] if stream else None
            (keys, values), (expected, same) = here.read(layer), there.read(layer)
            known = _alike(model, values, same)
            if known and _alike(model, keys, expected):
                self._parts[layer] = None
                continue
            parts = self._possible(layer, keys) if known and module is not None else []
            for part in parts:
                # a part, or arguments, that the family's function does not take
                with contextlib.suppress(RuntimeError, TypeError):
                    turned = self._turned(module, keys, layer, _SHIFT, part)  # pyright: ignore
                    if _alike(model, turned, expected):
                        self._parts[layer] = part
                        break
            else:
                raise UserError(
                    f"{model.name}: keys of layer {layer} at another position are not its keys "
                    f"rotated by the model's rotary embedding, so that {_CONSEQUENCE}"
                )

    def _possible(self, layer: int, keys: Tensor) -> list[slice]:
        """Parts of a key that may be rotated: its first or last dimensions, as many as there are
        cosines, or twice as many."""
        n = self._at(layer, _SHIFT, keys.device)[0].shape[-1]
        width = keys.shape[-1]
        sizes = [size for size in (n, 2 * n) if size <= width]
        return [part for size in sizes for part in (slice(0, size), slice(width - size, width))]


_CONSEQUENCE = (
    "removal of a step cannot be estimated from cached keys; take steps.screen out, or draw steps "
    "by steps.sample alone"
)


def _keys(model: LoadedModel, first: int) -> KeyValues:
    """Keys and values of a short text whose first token is at position `first`."""
    forest = Forest.of([np.arange(1, 1 + _TOKENS)])
    forest = replace(forest, depth=forest.depth + first)
    return execute.prefill(model, forest, [], lambda *_: None, chunk=_TOKENS)


def _alike(model: LoadedModel, a: Tensor, b: Tensor) -> bool:
    gap = (a.float() - b.float()).abs().max() / b.float().abs().max()
    return bool(gap <= _TOLERANCE.get(model.dtype, _ROUGH))
