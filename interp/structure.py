"""A model's layers, final norm and unembedding, found by a probe and not by name.

One short forward with hooks shows which modules' outputs lead to what the unembedding reads (the
final norm) and which list of modules feeds them (the layers). A model in which no list does can
still be asked for answers.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from faithscope.interp import attention
from faithscope.interp.errors import UserError
from faithscope.interp.hook_names import HOOKS, Place, Site, place_of
from faithscope.interp.masks import Reach
from faithscope.interp.placement import device_of

_TOKENS = 12


@dataclass(frozen=True)
class Stream:
    """The parts that a decoder's residual stream passes: its layers, a norm, the unembedding."""

    layers: nn.ModuleList
    final_norm: nn.Module
    """The module between the last layer and the unembedding; an identity if there is none."""
    unembedding: nn.Module
    attentions: tuple[nn.Module | None, ...]
    """Per layer, its child module that holds the attention; None if it could not be told."""
    mlps: tuple[nn.Module | None, ...]


@dataclass(frozen=True)
class Structure:
    """The parts of a model that the probe found.

    `layers`, `final_norm`, `unembedding` and `part` raise a `UserError` if the residual stream is
    `unknown`: such a model can be asked, but its inside cannot be read.
    """

    family: str
    """Name of the model's class."""
    n_layers: int
    stream: Stream | None
    unknown: str | None
    """Why there is no residual stream to read, patch or put through a lens, if there is none."""
    attention_layers: int
    """Number of layers that call transformers' attention interface; fewer than `n_layers` means
    that the packed forest cannot serve the model."""
    attention_calls: int
    """Number of calls of the attention interface in one forward."""
    reaches: Mapping[int, Reach | None]
    """Layer -> the reach of its attention; None if the packed forest has no such mask."""
    mask_is_read: bool
    """Whether a layer computes with the attention mask before attention does."""
    takes_positions: bool
    keeps_logits: bool
    """Whether the model's forward can compute logits at chosen positions alone."""

    def without_stream(self, reason: str) -> Structure:
        """This structure with its residual stream marked unknown, for `reason`."""
        return replace(self, stream=None, unknown=reason)

    @property
    def layers(self) -> nn.ModuleList:
        return self._known.layers

    @property
    def final_norm(self) -> nn.Module:
        return self._known.final_norm

    @property
    def unembedding(self) -> nn.Module:
        return self._known.unembedding

    @property
    def _known(self) -> Stream:
        if self.stream is None:
            raise UserError(
                f"{self.family}: no residual stream, patch or lens of this model: {self.unknown}; "
                "it can be asked, scored and continued, and measures of behaviour hold"
            )
        return self.stream

    def part(self, site: Site, layer: int) -> nn.Module:
        """The module whose output is the site `site` of a layer.

        Raises:
            UserError: the probe found no such part of the layer.
        """
        known = self._known
        of_site = {"residual": known.layers, "attention": known.attentions, "mlp": known.mlps}
        module = of_site[site][layer]
        if module is None:
            raise UserError(
                f"{type(known.layers[layer]).__name__}: which part of layer {layer} is its {site} "
                "cannot be told: its attention does not go through transformers' interface, or it "
                "has more than two parts; use the residual stream"
            )
        return module

    def hook_names(self) -> dict[str, Place]:
        """TransformerLens' names of the places that states are read at and edits write to, layer by
        layer (`interp.hook_names`).

        Raises:
            UserError: the probe found no residual stream.
        """
        known, names = self._known, (f"blocks.{n}.{h}" for n in range(self.n_layers) for h in HOOKS)
        parts = {"attention": known.attentions, "mlp": known.mlps}
        places = {name: place_of(name) for name in names}
        return {
            name: place
            for name, place in places.items()
            if place.site == "residual" or parts[place.site][place.layer] is not None
        }


@torch.inference_mode()
def probe(hf: nn.Module) -> Structure:
    """Find the parts of `hf`, a transformers causal language model.

    Raises:
        UserError: the model gives no logits.
    """
    depth = hf.config.get_text_config().num_hidden_layers  # pyright: ignore
    unembedding = hf.get_output_embeddings()  # pyright: ignore
    lists = [m for m in hf.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    outputs: list[tuple[nn.Module, Tensor, Tensor]] = []
    read: list[Tensor] = []

    def record(module: nn.Module, args: tuple, out: Any) -> None:
        first = out[0] if isinstance(out, tuple | list) else out
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
        last[id(module)] = out[0] if isinstance(out, tuple | list) else out

    hooks += [m.register_forward_hook(keep) for m in tops]
    if unembedding is not None:
        hooks.append(unembedding.register_forward_pre_hook(lambda _, args: read.append(args[0])))
    device = device_of(hf.get_input_embeddings())  # pyright: ignore
    try:
        with attention.watch() as watched:
            out = hf(input_ids=torch.arange(1, 1 + _TOKENS, device=device)[None], use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    if getattr(out, "logits", None) is None:
        raise UserError(
            f"{type(hf).__name__} gives no logits; faithscope needs a causal language model (load "
            "it with AutoModelForCausalLM)"
        )
    parameters = inspect.signature(hf.forward).parameters
    attending = set(watched.modules.values())
    stream = None
    unknown = (
        f"no list of {depth} layers was found whose output goes through a norm into the unembedding"
    )
    for layers in lists:
        end = last.get(id(layers[-1]))
        if unembedding is None or end is None or not read:
            continue
        between = _way(end, read[0], outputs)
        if between is not None and end.shape[:-1] != (1, _TOKENS):
            unknown = "its layers carry several streams beside each other"
        elif between is not None:
            parts = [_parts(layer, attending) for layer in layers]
            stream = Stream(
                layers=layers,
                final_norm=between[0] if len(between) == 1 else nn.Sequential(*between),
                unembedding=unembedding,
                attentions=tuple(one for one, _ in parts),
                mlps=tuple(other for _, other in parts),
            )
    return Structure(
        family=type(hf).__name__,
        n_layers=depth if stream is None else len(stream.layers),
        stream=stream,
        unknown=unknown if stream is None else None,
        attention_layers=len(watched.modules),
        attention_calls=watched.calls,
        reaches=watched.reaches,
        mask_is_read=watched.mask_is_read,
        takes_positions="position_ids" in parameters,
        keeps_logits="logits_to_keep" in parameters,
    )


@torch.inference_mode()
def looks_ahead(hf: nn.Module) -> bool:
    """Whether the logits of the first half of a text depend on its second half."""
    device = device_of(hf.get_input_embeddings())  # pyright: ignore
    text = torch.arange(1, 25, device=device)
    other = torch.cat([text[:12], text[12:].flip(0)])
    first, second = (
        hf(input_ids=ids[None], use_cache=False).logits[0, :12].float() for ids in (text, other)
    )
    # rows of a batch that share a kernel call round alike, but batches of experts differ in size
    noise = torch.finfo(hf.dtype).eps ** 0.5  # pyright: ignore
    return bool((first - second).abs().max() > noise * first.std())


def _way(
    start: Tensor, end: Tensor, outputs: Sequence[tuple[nn.Module, Tensor, Tensor]]
) -> list[nn.Module] | None:
    """The modules that lead from one tensor to another, in order; None if none do.

    Of a module and its submodules the whole is taken, since its output comes last.
    """
    if _equal(start, end):
        return []
    for i in reversed(range(len(outputs))):
        module, into, out = outputs[i]
        if _equal(out, end) and not _equal(into, out):
            before = _way(start, into, outputs[:i])
            if before is not None:
                return [*before, module]
    return None


def _parts(layer: nn.Module, attending: set[nn.Module]) -> tuple[nn.Module | None, ...]:
    """The two children of a layer that hold matrices: its attention, and its MLP."""
    heavy = [m for m in layer.children() if _holds_matrices(m)]
    holding = [m for m in heavy if not attending.isdisjoint(m.modules())]
    if len(heavy) != 2 or len(holding) != 1:
        return None, None
    return holding[0], next(m for m in heavy if m is not holding[0])


def _holds_matrices(module: nn.Module) -> bool:
    """Whether a module holds matrices; packed 4-bit weights (GPTQ, AWQ) are buffers."""
    return any(x.dim() > 1 for x in itertools.chain(module.parameters(), module.buffers()))


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a.to(b.device), b)
