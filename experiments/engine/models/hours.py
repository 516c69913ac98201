"""Hours and memory on a GPU and on this machine, said before a run starts: the table of a dry run,
and the work of models here that are given a prompt each and write a reply.

`cost_model` says how long a device takes. No weights are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from faithscope.experiments.config.api import API, SpendConfig
from faithscope.experiments.config.judge import JudgeConfig
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
)
from faithscope.experiments.engine.listing import columns
from faithscope.experiments.engine.models.model_files import files_of
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.numerals import decimal, significant
from faithscope.probes.judge.form import Ask, Writing
from faithscope.probes.judge.spend import most_used

DRIVER = Path("/proc/driver/nvidia/gpus")
SMALL = 3e9
"""Parameters from which on nobody is told the hours of a CPU that was not asked for."""
OVERHEAD = 1.0
"""GiB that a GPU's context and libraries take."""


@dataclass(frozen=True)
class Total:
    """Work of a run on one device."""

    seconds: float = 0
    bytes: float = 0
    """The most bytes beside the weights."""

    def __add__(self, other: Total) -> Total:
        return Total(self.seconds + other.seconds, max(self.bytes, other.bytes))


@dataclass(frozen=True)
class Costs:
    """A model whose size is known, and the devices for which its hours are said."""

    model: str
    shape: Shape
    source: str
    """Where the shape is from, in words."""
    devices: tuple[Device, ...]

    def row(self, device: Device, what: str, n: int, total: Total) -> tuple[str, ...]:
        """Model, device, what is done, how often, hours and memory."""
        weights = (4.0 if device is CPU else self.shape.bytes) * self.shape.parameters
        memory = (weights + total.bytes) / GIB + OVERHEAD
        fits = device.memory is None or memory <= device.memory
        return (
            self.model,
            device.name,
            what,
            f"{n:,}",
            in_hours(total.seconds),
            f"{decimal(memory, 0)} GiB"
            + ("" if fits else f" of {device.memory}: set token_budget"),
        )


def in_hours(seconds: float) -> str:
    """Hours as a table shows them."""
    hours = seconds / 3600
    return significant(hours)


def device_here(asked: str) -> Device:
    """The device on which this machine would run: a measured GPU by its driver's name, else a CPU.

    A GPU of another kind is taken for no device that was measured, and the H100 stands for it.

    Args:
        asked: the config's device: `cpu`, `auto`, ….
    """
    names = [f.read_text("utf-8", "replace") for f in sorted(DRIVER.glob("*/information"))]
    if asked == "cpu" or not names:
        return CPU
    return next((d for d in DEVICES if re.search(rf"\b{d.name}\b", names[0])), H100)


def costs_of(
    model: str, device: str, dtype: str = "auto", quantize: str | None = None
) -> Costs | None:
    """What a model's work costs; None of models behind APIs, planted models, and such of which no
    size is known.

    Args:
        device: the config's device: `cpu`, `auto`, ….
        dtype: the config's type of numbers.
        quantize: `8bit`, `4bit`, or None.
    """
    if model.startswith((API, "planted:")):
        return None
    shape, source = of_config(files_of(model).config), f"config.json of {model}"
    if shape is None:
        shape = of_name(model)
        source = f"the size in the name of {model}, as its config.json is not at hand"
    if shape is None:
        return None
    weight = {"8bit": 1.0, "4bit": 0.6}.get(quantize or "", 2.0)
    if dtype == "float32":
        shape = replace(shape, kv_bytes=4)
        weight = 4.0 if quantize is None else weight
    shape, here = replace(shape, bytes=weight), device_here(device)
    small = here is not CPU or device == "cpu" or shape.parameters < SMALL
    return Costs(model, shape, source, tuple(dict.fromkeys([H100, here] if small else [H100])))


def on(device: Device, shape: Shape) -> Shape:
    """The shape as the device holds it: a CPU in float32."""
    return replace(shape, kv_bytes=4, bytes=4.0) if device is CPU else shape


def table(
    header: Sequence[str], rows: Sequence[tuple[str, ...]], costs: Iterable[Costs], counted: str
) -> list[str]:
    """Lines of a table of hours, with what they follow from; none without rows.

    Args:
        counted: what is counted and what is not.
    """
    if not rows:
        return []
    sources = dict.fromkeys(cost.source for cost in costs)
    basis = f"basis: a cost model (`faithscope docs scaling`) with {'; '.join(sources)}; {counted}"
    return ["", *columns([tuple(header), *rows]), basis]


@dataclass(frozen=True)
class Replies:
    """Prompts of one model, to each of which it writes a reply, or whose verdicts are scored."""

    prompts: Sequence[int]
    """Tokens of each prompt."""
    tokens: int
    """Most tokens of a reply; 0 where the log-probs of verdicts are read."""

    @classmethod
    def of(cls, asks: Iterable[Ask | Writing], tokens: int) -> Replies:
        """Replies to asks, whose tokens are counted without a tokenizer."""
        return cls([most_used(ask, tokens, False).input_tokens for ask in asks], tokens)


def asking_lines(
    asks: Mapping[str, Sequence[Ask | Writing]],
    scored: Mapping[str, Sequence[Ask | Writing]],
    judge: JudgeConfig,
    spend: SpendConfig,
    who: str = "judge",
) -> list[str]:
    """Lines for `--dry-run` on what judges have still to be asked: calls, tokens and dollars of
    those behind APIs, hours and memory of those here.

    Args:
        asks: judge -> what it replies to.
        scored: judge -> what its log-probs are read of.
    """
    here = {
        costs: [
            Replies.of(asks.get(name, ()), judge.max_tokens),
            Replies.of(scored.get(name, ()), 0),
        ]
        for name in dict.fromkeys([*asks, *scored])
        if (costs := costs_of(name, judge.device, judge.dtype, judge.quantize))
    }
    paid = spending_lines(asks, judge, spend, who)
    return [*paid, *replies_lines(here, judge.batch_size, who)]


def replies_lines(asked: Mapping[Costs, Sequence[Replies]], batch_size: int, who: str) -> list[str]:
    """Lines on the hours of prompts and their replies; none without any.

    Args:
        batch_size: number of replies that are written together.
        who: role of the models, at the head of the table.
    """
    rows = [
        costs.row(
            device, _what(of.tokens), len(of.prompts), _of_replies(of, costs, device, batch_size)
        )
        for costs, parts in asked.items()
        for of in parts
        if of.prompts
        for device in costs.devices
    ]
    told = [costs for costs, parts in asked.items() if any(of.prompts for of in parts)]
    return table(
        (who, "on", "replies", "prompts", "hours", "memory"),
        rows,
        told,
        "tokens of prompts are estimated from the kind of text, without a tokenizer, and rather "
        "high; "
        "replies as this package writes them, as long as the config allows; loading not counted; "
        "and no replies were timed: the cost model is fitted to other work",
    )


def _what(tokens: int) -> str:
    return f"of at most {tokens:,} tokens" if tokens else "scored"


def _of_replies(of: Replies, costs: Costs, device: Device, batch_size: int) -> Total:
    n, longest, shape = len(of.prompts), max(of.prompts), on(device, costs.shape)
    mean = sum(of.prompts) // n
    rows = min(batch_size, n)
    written = (Written(rows, of.tokens, mean),) if of.tokens else ()
    batch = Work(mean * rows, mean // 2, rows, 1, written)
    most = (Written(rows, of.tokens, longest),) if of.tokens else ()
    return Total(
        n / rows * seconds(device, shape, batch), held(device, shape, rows * longest, most)
    )
