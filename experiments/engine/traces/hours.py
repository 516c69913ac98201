"""Hours and memory of a run on a GPU and on this machine, said before it starts.

Work is counted as in `forecast`, of given chains by their own sizes and of chains that are still
to be written at several lengths; `cost_model` says how long a device takes for it. No weights are
read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.api import API
from faithscope.experiments.engine.cost_model import (
    CPU,
    DEVICES,
    GIB,
    H100,
    Device,
    Shape,
    Work,
    Written,
    held,
    of_config,
    of_name,
    seconds,
    writing,
)
from faithscope.experiments.engine.listing import columns
from faithscope.experiments.engine.traces import forecast
from faithscope.probes import PROBES
from faithscope.probes.probe import GUESS, Size

if TYPE_CHECKING:
    from faithscope.experiments.engine.traces.config import TracesConfig
    from faithscope.experiments.engine.traces.units import Item
    from faithscope.probes.settings import Settings

DRIVER = Path("/proc/driver/nvidia/gpus")
LENGTHS = (GUESS.reasoning, 1_000)
"""Tokens of chains that are still to be written, for which hours are said, besides the most that
the config allows."""
SMALL = 3e9
"""Parameters from which on nobody is told the hours of a CPU that was not asked for."""
OVERHEAD = 1.0
"""GiB that a GPU's context and libraries take."""


def device_here(config: TracesConfig) -> Device:
    """The device on which this machine would run: a measured GPU by its driver's name, else a CPU.

    A GPU of another kind is taken for no device that was measured, and the H100 stands for it."""
    asked = config.model.device
    names = [f.read_text("utf-8", "replace") for f in sorted(DRIVER.glob("*/information"))]
    if asked == "cpu" or not names:
        return CPU
    return next((d for d in DEVICES if re.search(rf"\b{d.name}\b", names[0])), H100)


def shape_of(model: str, config: TracesConfig) -> tuple[Shape, str] | None:
    """The shape of a model, and where it is from, in words; None if nothing is known of it."""
    files = forecast.files_of(model)
    known, source = of_config(files.config), f"config.json of {model}"
    if known is None:
        known, source = (
            of_name(model),
            f"the size in the name of {model}, as its config.json is not at hand",
        )
    if known is None:
        return None
    of = {"8bit": 1.0, "4bit": 0.6}
    weight = of.get(config.model.quantize or "", 2.0)
    if config.model.dtype == "float32":
        known = replace(known, kv_bytes=4)
        weight = 4.0 if config.model.quantize is None else weight
    return replace(known, bytes=weight), source


def work_of(probe: str, size: Size, settings: Settings, device: Device, config: Any) -> Work:
    """The work of a probe on a trace of this size."""
    limits = config.token_budget or device.budget, config.steps.sample
    known = forecast.work(probe, size, settings, *limits, config.steps.screen)
    edited = forecast.edited(probe, size, config.steps.sample)
    after = size.cue + size.labels
    own = known.branches * (size.reasoning // 2 + after)
    tokens = size.prompt + size.reasoning + own if known.tokens is None else known.tokens
    whole = size.prompt + size.reasoning
    texts = PROBES[probe].texts(edited, settings)
    written = tuple(Written(of.n, of.tokens, whole, of.share) for of in texts)
    return Work(
        tokens, size.prompt + size.reasoning * 3 // 5, known.branches, 1 + len(written), written
    )


@dataclass(frozen=True)
class Total:
    """Work of a run on one device."""

    seconds: float = 0
    bytes: float = 0

    def __add__(self, other: Total) -> Total:
        return Total(self.seconds + other.seconds, max(self.bytes, other.bytes))


def of_item(
    config: TracesConfig,
    shape: Shape,
    device: Device,
    model: str,
    probes: Sequence[str],
    size: Size,
    *,
    writes: bool,
) -> Total:
    """Seconds of an item, and the most bytes beside the weights.

    Args:
        writes: whether the model writes the item's chain, too.
    """
    at_once = config.items_at_once or device.at_once
    if device is CPU:
        shape = replace(shape, kv_bytes=4, bytes=4.0)
    total = Total()
    if writes:
        rows = config.generation.batch_size
        chains = Written(rows, size.reasoning, size.prompt)
        total += Total(
            writing(device, shape, chains) / rows, held(device, shape, rows * size.prompt, [chains])
        )
    of_model = config.of(model)
    for probe in probes:
        work = work_of(probe, size, of_model.settings(probe), device, config)
        # the same rows for as many items as run side by side
        texts = [replace(w, texts=w.texts * at_once) for w in work.written]
        total += Total(
            seconds(device, shape, work, at_once),
            held(device, shape, work.tokens * at_once, texts),
        )
    return total


def hours_lines(
    config: TracesConfig,
    sizes: Sequence[tuple[Item, Size]],
    left_out: Callable[[Item, str], object],
    limit: Callable[[str], int],
) -> list[str]:
    """Lines of a table of hours and memory, a row for each model, device and length of chains; none
    for models behind APIs, planted models and such of which no size is known.

    Args:
        sizes: items that are still to be done, with the sizes of their chains, guessed where these
            are not written yet.
        left_out: function that tells whether a probe is known to leave an item out.
        limit: function of a model, the most tokens of a chain that it writes.
    """
    table: list[tuple[str, ...]] = []
    sources: dict[str, None] = {}
    used: dict[Device, None] = {}
    guessed = ""
    here = device_here(config)
    for model in dict.fromkeys(item.model for item, _ in sizes):
        if model.startswith((API, "planted:")) or (known := shape_of(model, config)) is None:
            continue
        shape, source = known
        small = here is not CPU or config.model.device == "cpu" or shape.parameters < SMALL
        devices = list(dict.fromkeys([H100, here] if small else [H100]))
        used |= dict.fromkeys(devices)
        own = [(item, size) for item, size in sizes if item.model == model]
        given = own[0][0].given is not None
        lengths = [0] if given else sorted({*LENGTHS, limit(model)})
        for tokens in (n for n in lengths if given or n <= limit(model)):
            for device in devices:
                total = Total()
                for item, size in own:
                    if not given:
                        steps = max(2, round(tokens / GUESS.tokens))
                        size = size._replace(steps=steps, tokens=tokens // steps)
                    probes = [p for p in item.probes if not left_out(item, p)]
                    total += of_item(config, shape, device, model, probes, size, writes=not given)
                table.append(_row(config, shape, device, model, tokens, len(own), total))
        sources[source] = None
        if not given:
            guessed = (
                f"; chains are not written yet: {LENGTHS[0]} tokens are a guess, the greatest "
                "number is the most that the config allows (generation.max_new_tokens)"
            )
    if not table:
        return []
    header = ("model", "on", "chains", "items", "hours", "memory")
    price = config.gpu_hour is not None
    shown = columns([(*header, "dollars") if price else header, *table])
    errors = [f"measured on {d.name}: {d.error}" for d in used]
    return [
        "",
        *shown,
        f"basis: a cost model (`faithscope docs scaling`) with {' and '.join(sources)}; chains and "
        f"answers as this package writes them, loading, judges and tables not counted{guessed}",
        *errors,
        "these are the rows that the model was fitted to; other measures, models and lengths were "
        "not timed, and may be further off",
    ]


def _row(
    config: TracesConfig,
    shape: Shape,
    device: Device,
    model: str,
    tokens: int,
    items: int,
    total: Total,
) -> tuple[str, ...]:
    on_cpu = device is CPU
    weights = (4.0 if on_cpu else shape.bytes) * shape.parameters
    memory = (weights + total.bytes) / GIB + OVERHEAD
    fits = device.memory is None or memory <= device.memory
    hours = total.seconds / 3600
    row = (
        model,
        device.name,
        f"of {tokens:,} tokens" if tokens else "given",
        str(items),
        f"{hours:.2g}" if hours < 10 else f"{hours:,.0f}",
        f"{memory:.0f} GiB" + ("" if fits else f" of {device.memory}: set token_budget"),
    )
    if config.gpu_hour is None:
        return row
    return (*row, "" if on_cpu else f"{hours * config.gpu_hour:,.2f}")
