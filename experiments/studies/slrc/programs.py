"""Readers of chains in words: models that write a chain down as a program, for the probes that
execute it, where the probe's own rule cannot read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from faithscope.experiments.config.judge import Reading
from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.hours import asking_lines
from faithscope.experiments.engine.models.judges import check_stages, decides, stage_of
from faithscope.experiments.engine.models.judging import Judging
from faithscope.experiments.engine.planfile import missing
from faithscope.experiments.engine.traces.stages import TRACE
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.judges.asking import about_of, trace_of
from faithscope.experiments.studies.slrc.stages import MENDED, PROGRAM
from faithscope.experiments.studies.slrc.units import ChainItem
from faithscope.interventions import Trace
from faithscope.probes import PROBES
from faithscope.probes.judge.form import Ask, Writing
from faithscope.probes.program_reader import (
    PROMPT,
    READING,
    SCHEMA,
    Written,
    asked,
    asked_again,
    unread_by_rule,
)


def probes_of(config: RunConfig) -> tuple[str, ...]:
    """The probes of a run that wait for programs; none without readers."""
    if config.programs is None:
        return ()
    return tuple(probe for probe in config.probes if PROBES[probe].reads_programs)


def with_units(config: RunConfig, items: Iterable[ChainItem]) -> Iterator[ChainItem]:
    """The items with a unit for each reader's program and for one that is mended; those of the
    probes that wait for programs depend on them."""
    later, how = probes_of(config), config.programs
    if how is None or not later:
        yield from items
        return
    check_stages(how.model, "programs.model")
    ids = {
        reader: UnitIds(**decides(reader, how, config.seed), prompt=PROMPT, reading=READING)
        for reader in how.model
    }
    of_probe = UnitIds()
    for item in items:
        waits = {probe: item.units[probe] for probe in later if probe in item.units}
        if not waits:
            yield item
            continue
        units = {
            stage_of(stage, reader): of.of(trace=item.units[TRACE], stage=stage)
            for reader, of in ids.items()
            for stage in (PROGRAM, MENDED)
        }
        new = {probe: of_probe.of(measure=unit, programs=units) for probe, unit in waits.items()}
        yield item.with_units(units | new)


def judging(config: RunConfig, stage: str) -> Judging[ChainItem]:
    """What every reader is asked in one of the two stages."""
    assert config.programs is not None
    # A reader here writes freely; one behind an API is held to a schema if its service can do so.
    how = config.programs.model_copy(update={"structured": "prompt"})
    stages: dict[str, dict[str, Reading]] = {
        reader: {stage_of(stage, reader): "generated"} for reader in how.model
    }
    needs = {r: [stage_of(PROGRAM, r)] if stage == MENDED else [] for r in how.model}
    asks = lambda index, item, reader, _: _asks(index, item, reader, stage)  # noqa: E731
    return Judging(how, config.seed, stages, asks, about_of, needs)


def _asks(index: Index, item: ChainItem, reader: str, stage: str) -> list[ItemPrompt]:
    """What a reader is asked about a chain; nothing where the rule reads it, or nothing is to be
    mended."""
    trace = trace_of(index, item)
    if unread_by_rule(trace) is None:
        return []
    name = f"{reader} {item.model} {item.task} {item.item} {stage}"
    if stage == PROGRAM:
        return [ItemPrompt(Writing(name, asked(trace), schema=SCHEMA))]
    said = reply_of(index, item, stage_of(PROGRAM, reader))
    if said is None or said["outcome"] != "parsed":
        return []
    again = asked_again(name, trace, said["text"])
    return [] if again is None else [ItemPrompt(again)]


def reply_of(index: Index, item: ChainItem, stage: str) -> Mapping[str, Any] | None:
    """The record of a stored reply; None where nothing was asked or there is no reply yet."""
    key = item.key(stage)
    records = index.records(key) if index.is_done(key, item.units[stage]) else []
    return records[0] if records else None


def written(config: RunConfig, index: Index, item: ChainItem) -> list[Written]:
    """The last reply of every reader about a chain."""
    assert config.programs is not None
    found = []
    for reader in config.programs.model:
        first = reply_of(index, item, stage_of(PROGRAM, reader))
        last = reply_of(index, item, stage_of(MENDED, reader)) or first
        if last is not None:
            found.append(Written(reader, last["outcome"], last["text"]))
    return found


def lines(
    config: RunConfig,
    index: Index,
    items: Sequence[ChainItem],
    given: Callable[[ChainItem], Trace],
) -> list[str]:
    """Dry-run lines on the calls and tokens of readers.

    Args:
        given: the given chain of an item, before it is encoded.
    """
    if (how := config.programs) is None:
        return []
    asks: dict[str, list[Ask | Writing]] = {reader: [] for reader in how.model}
    for reader, of_reader in asks.items():
        for item in (i for i in items if stage_of(PROGRAM, reader) in missing(index, i)):
            trace = trace_of(index, item) if item.given is None else given(item)
            if unread_by_rule(trace) is not None:
                of_reader.append(Writing(item.item, asked(trace), schema=SCHEMA))
    about = "chains that the rule may not read; of replies to mend, at most as many more"
    left = [f"{reader}: {len(of)} {about}" for reader, of in asks.items()]
    return ["", *left, *asking_lines(asks, {}, how, config.spend, "reader")]
