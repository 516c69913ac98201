"""Linear layers of decoding on a CPU, over weights that are laid out for oneDNN beforehand.

A step multiplies few rows with all weights, and PyTorch's own `linear` reads these in an order that
does not suit it. Packed weights are a second copy, kept for steps alone: whatever reads, patches
or trains a model sees the weights as they are, and packs are run by PyTorch's own calls.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

LEAST = 64 << 20
"""Bytes of weights below which nothing is packed: they stay in the processor's caches."""
SHARE = 8
"""Packed weights take at most one part in so many of the memory that a process may take. What is
free at the time does not count: a run that is resumed is to compute as it did before."""
GAIN = 1.1
"""Least ratio of the time with PyTorch's own `linear` to that with packed weights."""
ROWS = 16
"""Rows for which weights are packed and timed; fewer and more gain as well."""
GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
"""On Linux: the groups of this process, and where their limits stand."""
_TIMED = 256 << 20
"""Bytes of weights on which the two are timed: more than a cache holds."""


class Packed:
    """The linear layers of one model, and their packed weights where these make steps faster."""

    def __init__(self, hf: nn.Module) -> None:
        self._hf = hf
        self._layers: list[nn.Linear] = []
        self._weights: list[Tensor] = []
        self._sums: list[int] = []
        self.reason: str | None = "there are none in float32 on a CPU"
        """Why no weights are packed; None if they are."""
        self.gain = 1.0
        """How many times as fast packed layers were in the trial."""

    def refresh(self) -> None:
        """Pack the weights at the first call, if that pays; and those that have changed since."""
        # layers that were exchanged, moved or cast meanwhile need a trial of their own
        if (layers := _layers(self._hf)) != self._layers:
            self._layers, self._weights, self._sums = layers, [], []
            self.reason = self._reason()
            if self.reason is not None:
                self._weights = []
        for i, layer in enumerate(layers if self._weights else ()):
            if (new := _sum(layer.weight)) != self._sums[i]:
                self._weights[i], self._sums[i] = _packed(layer.weight), new

    def _reason(self) -> str | None:
        size = sum(layer.weight.nbytes for layer in self._layers)
        if size < LEAST:
            return "its linear layers are small"
        if size * SHARE > (most := memory_limit()):
            return f"they take {size >> 20:,} MiB of {most >> 20:,}, more than one in {SHARE}"
        try:
            self._weights = [_packed(layer.weight) for layer in self._layers]
            self.gain = _gain(self._layers, self._weights)
        except (AttributeError, RuntimeError) as error:
            return f"this build of PyTorch cannot: {' '.join(str(error).split())[:200]}"
        self._sums = [_sum(layer.weight) for layer in self._layers]
        return None if self.gain >= GAIN else f"{self.gain:.2f} times as fast on this processor"

    @contextmanager
    def used(self, rows: int) -> Iterator[None]:
        """A context in which linear layers run over packed weights, if there are some.

        Args:
            rows: number of rows of the step; a single one gains nothing.
        """
        layers = self._layers if self._weights and rows > 1 else []
        for layer, weight in zip(layers, self._weights, strict=False):
            vars(layer)["forward"] = partial(_linear, weight=weight, bias=layer.bias)
        try:
            yield
        finally:
            for layer in layers:
                del vars(layer)["forward"]


def _layers(hf: nn.Module) -> list[nn.Linear]:
    """The layers that may be packed; others, and those that something else runs, are left out."""
    return [
        m
        for m in hf.modules()
        if type(m) is nn.Linear
        and "forward" not in vars(m)
        and m.weight.device.type == "cpu"
        and m.weight.dtype == torch.float32
        and m.weight.is_contiguous()
        and m.weight.numel() % 2 == 0
    ]


def _packed(weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS)


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(input, weight, bias, "none", [], "")


def _sum(weight: Tensor) -> int:
    """A number that changes with any bit of a weight, however it is written to."""
    return int(weight.detach().view(-1).view(torch.int64).sum())


def _gain(layers: Sequence[nn.Linear], weights: Sequence[Tensor]) -> float:
    """Processor time of the layers as they are by that over packed weights, in turn.

    Raises:
        RuntimeError: the two compute different numbers.
    """
    size, n = 0, 0
    while n < len(layers) and size < _TIMED:
        size, n = size + layers[n].weight.nbytes, n + 1
    draw = torch.Generator().manual_seed(0)
    widths = {layer.in_features for layer in layers[:n]}
    rows = {width: torch.randn(1, ROWS, width, generator=draw) for width in widths}

    def run(packed: bool) -> list[Tensor]:
        return [
            _linear(rows[layer.in_features], weight, layer.bias)
            if packed
            else nn.functional.linear(rows[layer.in_features], layer.weight, layer.bias)
            for layer, weight in zip(layers[:n], weights, strict=False)
        ]

    for one, other in zip(run(False), run(True), strict=True):
        if not torch.allclose(one, other, rtol=1e-3, atol=1e-4 * float(one.abs().max())):
            raise RuntimeError("packed weights give other numbers")
    took: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(3):
        for packed, seconds in took.items():
            seconds.append(_seconds(partial(run, packed)))
    return min(took[False]) / min(took[True])


def _seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def memory_limit() -> int:
    """Bytes of memory that this process may take at most: the machine's, or its container's or
    job's."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    file, root = GROUPS
    for line in file.read_text().splitlines() if file.exists() else []:
        _, kind, path = line.split(":", 2)
        if kind not in ("", "memory"):
            continue
        folder = root / kind / path.strip("/")
        for each in (folder, *folder.parents):
            for limit in (each / "memory.max", each / "memory.limit_in_bytes"):
                text = limit.read_text().strip() if limit.exists() else ""
                found += [int(text)] if text.isdigit() else []
            if each == root / kind:
                break
    return min(found)
