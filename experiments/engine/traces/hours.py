"""Hours and memory of a run on a GPU and on this machine, said before it starts.

Work is counted as in `forecast`, of given chains by their own sizes and of chains that are still
to be written at several lengths; `cost_model` says how long a device takes for it. No weights are
read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from faithscope.experiments.engine.cost_model import (
    CPU,
    Device,
    Shape,
    Work,
    Written,
    held,
    seconds,
    writing,
)
from faithscope.experiments.engine.models.hours import Costs, Total, costs_of, on, table
from faithscope.experiments.engine.traces import forecast
from faithscope.experiments.numerals import money
from faithscope.probes import PROBES
from faithscope.probes.probe import GUESS, Size

if TYPE_CHECKING:
    from faithscope.experiments.engine.traces.config import TracesConfig
    from faithscope.experiments.engine.traces.units import Item
    from faithscope.probes.settings import Settings

LENGTHS = (GUESS.reasoning, 1_000)
"""Tokens of chains that are still to be written, for which hours are said, besides the most that
the config allows."""


def work_of(probe: str, size: Size, settings: Settings, device: Device, config: Any) -> Work:
    """The work of a probe on a trace of this size."""
    limits = config.token_budget or device.budget, config.steps.sample
    known = forecast.work(probe, size, settings, *limits, config.steps.screen)
    edited = forecast.edited(probe, size, config.steps.sample)
    after = size.cue + size.labels
    own = known.branches * (size.reasoning // 2 + after)
    tokens = size.prompt + size.reasoning + own if known.tokens is None else known.tokens
    if (trained := PROBES[probe].trained) is not None:
        # the gradient of a forward costs as much as two forwards
        tokens += 3 * trained(edited, settings)
    whole = size.prompt + size.reasoning
    texts = PROBES[probe].texts(edited, settings)
    written = tuple(Written(of.n, of.tokens, whole, of.share) for of in texts)
    return Work(
        tokens, size.prompt + size.reasoning * 3 // 5, known.branches, 1 + len(written), written
    )


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
    shape = on(device, shape)
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
    price = config.gpu_hour
    rows: list[tuple[str, ...]] = []
    told: list[Costs] = []
    guessed = ""
    section = config.model
    for model in dict.fromkeys(item.model for item, _ in sizes):
        costs = costs_of(model, section.device, section.dtype, section.quantize)
        if costs is None:
            continue
        told.append(costs)
        own = [(item, size) for item, size in sizes if item.model == model]
        given = own[0][0].given is not None
        lengths = [0] if given else sorted({*LENGTHS, limit(model)})
        for tokens in (n for n in lengths if given or n <= limit(model)):
            for device in costs.devices:
                total = Total()
                for item, size in own:
                    if not given:
                        steps = max(2, round(tokens / GUESS.tokens))
                        size = size._replace(steps=steps, tokens=tokens // steps)
                    probes = [p for p in item.probes if not left_out(item, p)]
                    shape = costs.shape
                    total += of_item(config, shape, device, model, probes, size, writes=not given)
                what = f"of {tokens:,} tokens" if tokens else "given"
                row = costs.row(device, what, len(own), total)
                dollars = total.seconds / 3600 * (price or 0)
                paid = () if price is None else ("" if device is CPU else money(dollars),)
                rows.append((*row, *paid))
        if not given:
            guessed = (
                f"; chains are not written yet: {LENGTHS[0]} tokens are a guess, the greatest "
                "number is the most that the config allows (generation.max_new_tokens)"
            )
    header = ("model", "on", "chains", "items", "hours", "memory")
    counted = (
        "chains and answers as this package writes them, loading, judges and tables not counted"
    )
    lines = table(header if price is None else (*header, "dollars"), rows, told, counted + guessed)
    if not lines:
        return []
    used = dict.fromkeys(device for costs in told for device in costs.devices)
    return [
        *lines,
        *(f"measured on {device.name}: {device.error}" for device in used),
        "these are the rows that the model was fitted to; other measures, models and lengths were "
        "not timed, and may be further off",
    ]
