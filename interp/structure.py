"""Where a model keeps its layers, final norm and unembedding: probed, not looked up.

One short forward with hooks shows which module's output the unembedding reads (the final
norm) and which list of modules feeds that norm (the layers).
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from interp import attention, masks
from interp.errors import UserError


@dataclass(frozen=True)
class Structure:
    """The parts of a decoder that reading and writing need."""

    layers: nn.ModuleList
    final_norm: nn.Module
    unembedding: nn.Module
    attention_layers: int
    """How many layers call transformers' attention interface; fewer than `n_layers`
    means that the packed forest cannot serve the model."""
    takes_positions: bool

    @property
    def n_layers(self) -> int:
        return len(self.layers)


class _Counter:
    """An attention session that only counts the layers that call it."""

    def __init__(self) -> None:
        self.layers: set[int] = set()

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, **kwargs: Any
    ) -> Tensor:
        self.layers.add(int(module.layer_idx))  # pyright: ignore
        mask = masks.as_additive(
            masks.causal_mask(query.shape[2], key.shape[2], None, query.device), query.dtype
        )
        return attention.eager(module)(module, query, key, value, mask[None, None], **kwargs)[0]


@torch.inference_mode()
def probe(hf: nn.Module) -> Structure:
    """Find the parts of `hf`, a transformers causal language model.

    Raises:
        UserError: the model has no unembedding, or no list of layers feeds it.
    """
    unembedding = hf.get_output_embeddings()  # pyright: ignore
    if unembedding is None:
        raise UserError(
            f"{type(hf).__name__} has no output embeddings; faithscope needs a causal language "
            "model (load it with AutoModelForCausalLM)"
        )
    depth = hf.config.get_text_config().num_hidden_layers  # pyright: ignore
    lists = [m for m in hf.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    outputs: list[tuple[nn.Module, Tensor, Tensor]] = []
    read: list[Tensor] = []

    def record(module: nn.Module, args: tuple, out: Any) -> None:
        first = out[0] if isinstance(out, tuple) else out
        if args and isinstance(args[0], Tensor) and isinstance(first, Tensor):
            outputs.append((module, args[0], first))

    within = {id(m) for layers in lists for layer in layers for m in layer.modules()}
    hooks = [
        m.register_forward_hook(record)
        for m in hf.modules()
        if m is not hf and m is not unembedding and id(m) not in within
    ]
    tops = [layer for layers in lists for layer in layers]
    last: dict[int, Tensor] = {}

    def keep(module: nn.Module, args: tuple, out: Any) -> None:
        last[id(module)] = out[0] if isinstance(out, tuple) else out

    hooks += [m.register_forward_hook(keep) for m in tops]
    hooks.append(unembedding.register_forward_pre_hook(lambda _, args: read.append(args[0])))
    counter = _Counter()
    device = next(hf.parameters()).device
    try:
        with attention.session(counter):
            hf(input_ids=torch.tensor([[1, 2]], device=device), use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    final = [
        (m, x) for m, x, y in outputs if y.shape[-1] == read[0].shape[-1] and _equal(y, read[0])
    ]
    for norm, into in reversed(final):
        for layers in lists:
            end = last.get(id(layers[-1]))
            if end is not None and _equal(end, into):
                return Structure(
                    layers=layers,
                    final_norm=norm,
                    unembedding=unembedding,
                    attention_layers=len(counter.layers),
                    takes_positions="position_ids" in inspect.signature(hf.forward).parameters,
                )
    raise UserError(
        f"{type(hf).__name__}: found no list of {depth} layers whose output goes through a norm "
        "into the unembedding; this architecture needs an adapter in interp/structure.py"
    )


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.to(b.device), b)
