"""How far rounding alone moves a model's numbers: the scale that a difference is judged by.

Two right computations of one number differ by rounding: kernels add in another order, a layer's
output falls on the neighbouring float, and the layers above carry it on. This module does so on
purpose: it moves every layer's output by at most one unit in the last place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from faithscope.interp.model import Model

_DRAWS = 8_191
"""Length of the table of draws: prime, so that no layer's width divides it and each position has
draws of its own."""


@contextmanager
def rounding(model: Model, seed: int = 0, *, linear: bool = False) -> Iterator[None]:
    """In forwards within the context, all texts of a batch but the first are rounded otherwise:
    embeddings and every layer's output are multiplied by 1 + ε·u, with u uniform in [-1, 1] for
    each number and ε the dtype's epsilon.

    Args:
        linear: the output of every linear map is, too. Attention of a layer with large biases of
            queries and keys (Qwen2.5's first) is rounded far more than its inputs are.

    Packed logits of tiny random models lie 0.4 to 0.8 times as far from plain ones as these
    lie from each other (root mean square over the vocabulary), in float32 and bfloat16 alike.
    """
    drawn = 2 * torch.rand(_DRAWS, generator=torch.Generator().manual_seed(seed)) - 1
    tables: dict[torch.device, Tensor] = {}

    def moved(_: nn.Module, __: tuple, out: Any) -> Any:
        x = out[0] if isinstance(out, tuple | list) and out else out
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return out
        # drawn on the CPU, since not every device has generators of its own
        tables[x.device] = table = tables.get(x.device, drawn.to(x.device)).roll(1)
        u = table.repeat(-(-x.numel() // _DRAWS))[: x.numel()].view(x.shape).clone()
        u[0] = 0
        y = (x.float() * (1 + torch.finfo(x.dtype).eps * u)).to(x.dtype)
        # the constructor of a named tuple takes its fields one by one
        return y if x is out else getattr(out, "_make", type(out))((y, *out[1:]))

    depth = model.n_layers
    lists = [m for m in model.hf.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    layers = [layer for of_one in lists for layer in of_one]
    parts = [model.hf.get_input_embeddings(), *layers]
    if linear:
        # each once, though a list of layers may lie within another
        parts += dict.fromkeys(m for layer in layers for m in layer.modules() if _is_linear(m))
    handles = [part.register_forward_hook(moved) for part in parts]  # pyright: ignore
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _is_linear(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 2


def size(difference: Tensor) -> Tensor:
    """Root mean square over the vocabulary of (..., V) differences of logits, shape (...).

    Unlike the maximum over V, it is nearly the same for every draw of the rounding.
    """
    return difference.float().pow(2).mean(-1).sqrt()
