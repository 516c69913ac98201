"""Devices on which the parts of a model compute: on one, spread over several, or offloaded.

accelerate keeps offloaded weights in the CPU's memory or on disk, and leaves a placeholder on
`meta` in their place; during a module's forward its weights are on the device that computes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def device_of(module: nn.Module) -> torch.device | None:
    """The device that `module` computes on; None if the module holds no tensor that would tell."""
    for part in module.modules():
        hook = getattr(part, "_hf_hook", None)
        for each in getattr(hook, "hooks", [hook]):
            device = getattr(each, "execution_device", None)
            if device is not None:
                return torch.device(device)
    tensors = [*module.parameters(), *module.buffers()]
    return tensors[0].device if tensors else None


def devices_of(hf: nn.Module) -> frozenset[torch.device]:
    """Every device that some part of a model computes on."""
    parts = (m for m in hf.modules() if any(True for _ in m.parameters(recurse=False)))
    return frozenset(device for m in parts if (device := device_of(m)) is not None)


def sent(x: Tensor, device: torch.device) -> Tensor:
    """`x` on `device`; the host does not wait for the device to take it, where that is safe."""
    return x.to(device, non_blocking=device.type != "mps")


def is_offloaded(hf: nn.Module) -> bool:
    """Whether weights are kept in the CPU's memory, or on disk, until a forward needs them."""
    return any(p.is_meta for p in hf.parameters())
