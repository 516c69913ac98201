"""Number of a model's parameters, and of those that one token passes through."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import nn

_TOP_K = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "top_k_experts")


@dataclass(frozen=True)
class Size:
    """Parameter counts; quantised weights count as the parameters they stand for."""

    total: int
    active: int | None
    """Parameters that one token uses: all but the experts that its router leaves out. None for a
    mixture of experts whose config does not say how many experts a token is sent to."""


def size_of(hf: nn.Module) -> Size:
    """Count the parameters of a transformers model."""
    total = _count(hf)
    used = _per_token(hf)
    idle = 0
    for bank in _experts(hf):
        if used is None:
            return Size(total, None)
        n_experts = _number_of(bank)
        idle += round(_count(bank) * (1 - min(used, n_experts) / n_experts))
    return Size(total, total - idle)


def _experts(hf: nn.Module) -> list[nn.Module]:
    """The banks of routed experts, one per sparse layer; shared experts go by other names."""
    return [m for name, m in hf.named_modules() if name.rpartition(".")[2] == "experts"]


def _number_of(experts: nn.Module) -> int:
    if isinstance(experts, nn.ModuleList):
        return len(experts)
    return next(p.shape[0] for p in experts.parameters())


def _per_token(hf: nn.Module) -> int | None:
    config = hf.config.get_text_config()  # pyright: ignore
    return next((int(n) for name in _TOP_K if (n := getattr(config, name, None))), None)


def _count(module: nn.Module) -> int:
    return sum(_numel(p) for p in module.parameters())


def _numel(parameter: nn.Parameter) -> int:
    packed = getattr(parameter, "quant_state", None)
    return parameter.numel() if packed is None else math.prod(packed.shape)
