"""Where a model keeps its layers, final norm and unembedding: probed, not looked up.

One short forward with hooks shows which module's output the unembedding reads (the final
norm) and which list of modules feeds that norm (the layers).
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from interp import attention
from interp.edits import Site
from interp.errors import UserError
from interp.masks import Reach
from interp.placement import device_of


@dataclass(frozen=True)
class Structure:
    """The parts of a decoder that reading and writing need."""

    layers: nn.ModuleList
    final_norm: nn.Module
    unembedding: nn.Module
    attention_layers: int
    """How many layers call transformers' attention interface; fewer than `n_layers`
    means that the packed forest cannot serve the model."""
    reaches: Mapping[int, Reach | None]
    """Which earlier positions each of these layers sees; None where the packed forest has no
    such mask."""
    takes_positions: bool
    attentions: tuple[nn.Module | None, ...]
    """Per layer, its child that holds the attention; None where none could be told."""
    mlps: tuple[nn.Module | None, ...]

    @property
    def n_layers(self) -> int:
        return len(self.layers)

    def part(self, site: Site, layer: int) -> nn.Module:
        """The module whose output is a site of a layer.

        Raises:
            UserError: the layer has no such part that probing could tell.
        """
        of_site = {"residual": self.layers, "attention": self.attentions, "mlp": self.mlps}
        found = of_site[site][layer]
        if found is None:
            raise UserError(
                f"{type(self.layers[layer]).__name__}: which part of layer {layer} is its {site} "
                "cannot be told: its attention does not go through transformers' interface, or it "
                "has more than two parts; use the residual stream"
            )
        return found


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
    device = device_of(hf.get_input_embeddings())  # pyright: ignore
    try:
        with attention.watch() as watched:
            hf(input_ids=torch.arange(1, 13, device=device)[None], use_cache=False)
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
                parts = [_parts(layer, set(watched.modules.values())) for layer in layers]
                return Structure(
                    layers=layers,
                    final_norm=norm,
                    unembedding=unembedding,
                    attention_layers=len(watched.modules),
                    reaches=watched.reaches,
                    takes_positions="position_ids" in inspect.signature(hf.forward).parameters,
                    attentions=tuple(one for one, _ in parts),
                    mlps=tuple(other for _, other in parts),
                )
    raise UserError(
        f"{type(hf).__name__}: found no list of {depth} layers whose output goes through a norm "
        "into the unembedding; this architecture needs an adapter in interp/structure.py"
    )


def _parts(layer: nn.Module, attending: set[nn.Module]) -> tuple[nn.Module | None, ...]:
    """The two children of a layer that hold matrices: the one that attends, and the other."""
    heavy = [m for m in layer.children() if _holds_matrices(m)]
    holding = [m for m in heavy if not attending.isdisjoint(m.modules())]
    if len(heavy) != 2 or len(holding) != 1:
        return None, None
    return holding[0], next(m for m in heavy if m is not holding[0])


def _holds_matrices(module: nn.Module) -> bool:
    """Packed 4-bit weights (GPTQ, AWQ) are buffers, not parameters."""
    return any(x.dim() > 1 for x in itertools.chain(module.parameters(), module.buffers()))


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.to(b.device), b)
