"""Devices on which the parts of a model compute: on one, spread over several, or offloaded.

accelerate keeps offloaded weights in the CPU's memory or on disk, and leaves a placeholder on
`meta` in their place; during a module's forward its weights are on the device that computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    """`x` on `device`; the host does not wait for the device to take it, where that is safe: it
    waits for what comes to itself, which it could read before that has arrived."""
    return x.to(device, non_blocking=device.type not in ("cpu", "mps"))


def sent_together(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Tensors on `device`, as `sent`; those that come from the CPU go there in one transfer."""
    here = [x for x in tensors if x.device.type == "cpu"]
    if device.type == "cpu" or len(here) < 2:
        return [sent(x, device) for x in tensors]
    layout = _Layout(here)
    packed = layout.join(here)
    there = sent(packed.pin_memory() if device.type == "cuda" else packed, device)
    parts = iter(layout.split(there))
    return [next(parts) if x.device.type == "cpu" else sent(x, device) for x in tensors]


class Fetch:
    """Tensors of one device on their way to the CPU, in one transfer.

    On a CUDA device reading them waits for nothing that is started after them.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._layout, device = _Layout(tensors), tensors[0].device
        self._packed = self._layout.join(tensors)
        self._arrived: Any = None
        if device.type == "cuda":
            here = torch.empty(self._packed.shape, dtype=torch.uint8, pin_memory=True)
            self._packed = here.copy_(self._packed, non_blocking=True)
            self._arrived = torch.cuda.current_stream(device).record_event()

    def read(self) -> list[Tensor]:
        """The tensors, on the CPU and in order."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return self._layout.split(self._packed.cpu())


class _Layout:
    """Where tensors begin among the bytes of one: the widest numbers first, so that each begins at
    a multiple of its own size."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._kinds = [(x.dtype, x.shape, x.nbytes) for x in tensors]
        self._order = sorted(range(len(tensors)), key=lambda i: -tensors[i].element_size())

    def join(self, tensors: Sequence[Tensor]) -> Tensor:
        return torch.cat([tensors[i].contiguous().view(-1).view(torch.uint8) for i in self._order])

    def split(self, packed: Tensor) -> list[Tensor]:
        parts, at = {}, 0
        for i in self._order:
            dtype, shape, size = self._kinds[i]
            parts[i] = packed[at : at + size].view(dtype).view(shape)
            at += size
        return [parts[i] for i in range(len(parts))]


def is_offloaded(hf: nn.Module) -> bool:
    """Whether weights are kept in the CPU's memory, or on disk, until a forward needs them."""
    return any(p.is_meta for p in hf.parameters())
