"""Doors: the same weights as a TransformerLens bridge or an nnsight model.

Both libraries change the module tree they are given: TransformerLens replaces its modules and
forces eager attention, nnsight hangs its own state on every module, and either may set fields of
the config. Each therefore gets a *twin*: a second tree of modules over the same storage. Changes of
the twin's modules, hooks, config or tokenizer do not reach our model; a write *into* a weight in
place (`weight.data.mul_(2)`) does, since the storage is shared.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn

from faithscope.interp.errors import UserError
from faithscope.interp.placement import is_offloaded

if TYPE_CHECKING:
    from nnsight.modeling.transformers import TransformersModel
    from transformer_lens.model_bridge import TransformerBridge

    from faithscope.interp.loaded import LoadedModel


def to_transformer_lens(model: LoadedModel, **options: Any) -> TransformerBridge:
    """A TransformerLens bridge over the weights of `model`; see `faithscope docs interop`.

    The bridge is raw: no norm is folded and nothing is centred, so its activations are the
    model's own. `enable_compatibility_mode()` on it folds and centres copies of the weights.
    Its attention is eager, since its hooks need that: every layer makes its T x T weights.

    Args:
        options: further arguments of `TransformerBridge.boot_transformers`.

    Raises:
        UserError: TransformerLens is not installed or knows no such architecture, or weights
            of `model` are offloaded.
    """
    try:
        from transformer_lens.model_bridge import TransformerBridge
    except ImportError as error:
        raise _missing("TransformerLens", "tl", error) from error
    hf = _twin_of(model)
    # TransformerLens chooses its adapter by this field, which a config made by hand lacks
    hf.config.architectures = hf.config.architectures or [type(hf).__name__]
    try:
        return TransformerBridge.boot_transformers(
            model.name,
            hf_model=hf,
            tokenizer=copy.deepcopy(model.tokenizer),
            dtype=model.hf.dtype,
            device=model.device,
            **options,
        )
    except ValueError as error:
        if "architecture" not in str(error).lower():
            raise
        raise UserError(
            f"{model.name}: TransformerLens has no adapter for {type(hf).__name__} "
            f"({' '.join(str(error).split())[:200]}); to_nnsight() serves every architecture"
        ) from error


def to_nnsight(
    model: LoadedModel, *, attention: Literal["sdpa", "eager"] | None = None, **options: Any
) -> TransformersModel:
    """An nnsight model over the weights of `model`; see `faithscope docs interop`.

    It runs in this process, unless its `trace(..., remote=True)` is called, which goes to nnsight's
    client under the hub id that the weights were loaded by.

    Args:
        attention: kernel of the twin; by default the one that `model` runs. Attention weights
            (`self_attn.output[1]`) exist under `eager` alone.
        options: further arguments of nnsight's `TransformersModel` (`rename=`; `revision=`, which a
            remote server looks up).

    Raises:
        UserError: nnsight is not installed, or weights of `model` are offloaded.
    """
    try:
        from nnsight.modeling.transformers import TransformersModel
    except ImportError as error:
        raise _missing("nnsight", "nnsight", error) from error
    hf = _twin_of(model)
    # a server knows transformers' kernels, not ours, and is told the name of the kernel below ours
    own = str(hf.config._attn_implementation).removeprefix("faithscope_")
    hf.set_attn_implementation(attention or own)
    options.setdefault("task", "text-generation")
    return TransformersModel(hf, tokenizer=copy.deepcopy(model.tokenizer), **options)


def twin(hf: nn.Module) -> Any:
    """A second module tree over the same storage: modules, hooks and config are copies.

    Parameters are objects of their own, so that moving, casting or replacing them leaves the
    original alone; tied weights stay tied. Quantised weights carry state beside their numbers
    and are shared as they are.
    """
    memo: dict[int, Any] = {}
    for tensor in [*hf.parameters(), *hf.buffers()]:
        if type(tensor) is nn.Parameter:
            memo[id(tensor)] = nn.Parameter(tensor.data, requires_grad=tensor.requires_grad)
        else:
            memo[id(tensor)] = tensor.detach() if type(tensor) is torch.Tensor else tensor
    return copy.deepcopy(hf, memo)


def _twin_of(model: LoadedModel) -> Any:
    if is_offloaded(model.hf):
        raise UserError(
            f"{model.name}: some weights are offloaded to CPU or disk by device_map, where a "
            "second module tree cannot share them; load it without offload to convert it"
        )
    return twin(model.hf)


def _missing(library: str, extra: str, error: ImportError) -> UserError:
    return UserError(
        f"{library} cannot be imported ({error}); add it: pip install 'faithscope[{extra}]'"
    )
