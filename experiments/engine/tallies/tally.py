"""Tally of a run: how many items are measured, why others are not, and what would change it.

All studies share this count, which is made before a run from the plan's forecast, and after it from
the stored units.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from faithscope.experiments.config.study import Stages, declared, study_of
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.exclusions import exclusions_of, most_frequent
from faithscope.experiments.engine.folder import read_config, stored_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.planfile import Planned, Shard
from faithscope.experiments.engine.tallies import chain_faults
from faithscope.experiments.engine.tallies.chain_faults import ChainFaults
from faithscope.experiments.engine.tallies.input_report import InputReport
from faithscope.experiments.engine.tallies.reasons import (
    LOW_MASS,
    REMEDIES,
    WORDS,
    in_words,
)
from faithscope.experiments.engine.units import Key
from faithscope.experiments.garbage import gc_paused

_SETTING = re.compile(r"[a-z_.]+=")
"""Beginning of a remedy that sets a config key."""
MOST_STAGES = 16
"""Most lines about single measures; the table of exclusions has all."""


@dataclass(frozen=True)
class StageTally:
    """Number of items that each of `stages` measured, for stages with equal counts."""

    stages: tuple[str, ...]
    """Names of stages, or of a variant of one: `slrc.prefix.scored`."""
    items: int
    measured: int
    lost: Mapping[str, int]
    """Reason -> number of items that were not measured for it."""
    keys: tuple[str, ...] = ()
    """Config keys that ask for a measure which no stage makes (`Study.derived`)."""


@dataclass(frozen=True)
class Tally:
    """Numbers of items of a run that at least one of its stages measured, and that none did."""

    items: int
    measured: int
    """Number of measured items; before a run, of those not known to be left out."""
    left: int
    """Number of items of which nothing is stored yet; 0 before a run."""
    lost: Mapping[str, int]
    """Reason -> number of items of which nothing is measured."""
    stages: tuple[StageTally, ...] = ()
    """Tallies of stages, and of single variants, that measure fewer items than the run as a
    whole."""
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Stage that is done and measured no item -> the config keys that ask for it."""
    chains: Mapping[chain_faults.Place, ChainFaults] = field(default_factory=dict)
    """(model, task) -> faults of its chains; empty for a run without chains, and before a run."""
    input_report: InputReport = field(default_factory=InputReport)
    remedies: Mapping[str, str] = field(default_factory=dict)
    """Reason -> config setting that would avoid it, besides `reasons.REMEDIES`."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Reason -> its meaning, besides `reasons.WORDS`."""
    parts: Mapping[str, Tally] = field(default_factory=dict)
    """Title -> the tally of a run that this run is made of."""
    unit: str = "items"
    """What the study calls its items (`Study.unit`)."""
    ahead: bool = False
    """Whether the tally is a forecast."""

    @property
    def nothing_measured(self) -> bool:
        """Whether a run ends, or would end, without a single measured item."""
        if self.parts:
            return all(part.nothing_measured for part in self.parts.values())
        return self.items > 0 and not self.measured and not self.left

    @property
    def named_without(self) -> dict[str, list[str]]:
        """Config key by which the user asked for measures -> stages that measured nothing, or will
        measure nothing. A stage that only a shipped config asks for is in `without` alone."""
        found: dict[str, list[str]] = {}
        for part in self.parts.values():
            for key, stages in part.named_without.items():
                found.setdefault(key, []).extend(stages)
        for stage, keys in self.without.items():
            if named := next((k for k in keys if k in self.input_report.asked), None):
                found.setdefault(named, []).append(stage)
        return found

    @property
    def falls_short(self) -> bool:
        """Whether nothing was measured, or nothing by a measure that the user asked for."""
        return self.nothing_measured or bool(self.named_without)

    @property
    def says_something(self) -> bool:
        """Whether something is left out, not reached or not used."""
        faulty = any(of.faults for of in self.chains.values())
        own = self.lost or self.left or self.stages or faulty or self.input_report.lines()
        return bool(own) or any(part.says_something for part in self.parts.values())

    def lines(self) -> list[str]:
        """The tally as lines for a person, the number of measured items first."""
        if self.parts:
            return [
                f"source {title}: {line}"
                for title, part in self.parts.items()
                for line in part.lines()
            ]
        done = "can be measured" if self.ahead else "measured"
        first = f"{self.measured:,} of {self.items:,} {self.unit} {done}"
        if self.left:
            first += f", {self.left:,} not reached yet"
        first += self._because(self.lost)
        first += f"; {self.input_report.readers}" if self.input_report.readers else ""
        lines = [first] if self.items else []
        lines += chain_faults.lines(self.chains)
        for of in self.stages[:MOST_STAGES]:
            count = f"{', '.join(of.stages)}: {of.measured:,} of {of.items:,}"
            lines.append(f"{count} {done}{self._because(of.lost)}")
        if more := len(self.stages[MOST_STAGES:]):
            lines.append(f"{more} further measures leave out items: see the table of exclusions")
        for key, stages in self.named_without.items():
            none = "nothing can be" if self.ahead else "nothing was"
            lines.append(f"{none} measured by {', '.join(stages)}, which {key} asks for")
        # each remedy stands below what it changes
        lines += self._remedy(self._of_reasons())
        cuts, of_input = self.input_report.cuts, self.input_report.lines()
        lines += of_input[: len(cuts)] + self._remedy(cut.do for cut in cuts)
        return lines + of_input[len(cuts) :]

    @property
    def reasons(self) -> list[str]:
        """Reasons why items are left out, by all stages or by some."""
        return list(dict.fromkeys([*self.lost, *(r for of in self.stages for r in of.lost)]))

    def _of_reasons(self) -> list[str]:
        known = {**REMEDIES, **self.remedies}
        faults = (fault for of in self.chains.values() for fault in of.faults)
        return [known.get(x, "") for x in dict.fromkeys([*faults, *self.reasons])]

    def _remedy(self, remedies: Iterable[str]) -> list[str]:
        settings = (f"--set {x}" if _SETTING.match(x) else x for x in dict.fromkeys(remedies) if x)
        named = "; ".join(settings)
        return [f"to change that: {named}"] if named else []

    @property
    def because(self) -> dict[str, int]:
        """Reason in words -> number of items of which nothing is measured."""
        return {f"left out ({self._in_words(reason)})": n for reason, n in self.lost.items()}

    def _in_words(self, reason: str) -> str:
        return self.words.get(reason) or in_words(reason)

    def _because(self, lost: Mapping[str, int]) -> str:
        reasons = [f"{n:,} because {self._in_words(reason)}" for reason, n in lost.items()]
        return f"; left out: {', '.join(reasons)}" if reasons else ""


def forecast_of(
    items: Iterable[Planned],
    index: Index,
    declarations: Stages,
    known_exclusions: Mapping[Key, str],
) -> Tally:
    """Tally of the items that at least one stage can measure, before a run.

    Args:
        declarations: of the stages of their study.
        known_exclusions: unit -> why it will measure nothing.
    """

    def outcomes(item: Planned, stage: str) -> Outcomes:
        state = _state(item, stage, index, known_exclusions)
        if state is None:
            state = index.excluded(item.key(stage))
        # a pending unit is not known to measure nothing
        return {"": None if state == WAITS else state}

    return replace(_counted(items, declarations, outcomes), ahead=True)


Outcomes = Mapping[str, str | None]
"""Variant of a stage -> why it has no value of an item, or `WAITS`; None if it has one. The variant
is empty where the reason holds for all variants."""


def _counted(
    items: Iterable[Planned],
    declarations: Stages,
    outcomes: Callable[[Planned, str], Outcomes],
) -> Tally:
    """Tally of the items that at least one stage measures.

    Args:
        outcomes: gives what became of an item in a stage.
    """
    n = left = 0
    lost = Counter[str]()
    # stage -> variant -> a state per item; all items, and those that some stage measures
    every: dict[str, list[str | None]] = {}
    entered: dict[str, list[Outcomes]] = {}
    for item in items:
        stages = [s for s in item.units if declared(declarations, s).measures]
        n += 1
        if not stages:
            lost["beyond_limit"] += 1
            continue
        of = {stage: outcomes(item, stage) for stage in stages}
        states = {stage: most_frequent(list(found.values())) for stage, found in of.items()}
        for stage, state in states.items():
            every.setdefault(stage, []).append(state)
        if None in states.values():
            for stage, found in of.items():
                entered.setdefault(stage, []).append(found)
        elif WAITS in states.values():
            left += 1
        else:
            lost[Counter(states.values()).most_common(1)[0][0] or ""] += 1
    alike: dict[tuple[int, tuple[tuple[str, int], ...]], list[str]] = {}
    for stage, found in entered.items():
        for name, of_items in _by_variant(stage, found).items():
            reasons = Counter(reason for reason in of_items if reason is not None)
            if reasons:
                key = (len(of_items), tuple(reasons.most_common()))
                alike.setdefault(key, []).append(name)
    less = [
        StageTally(tuple(names), entering, entering - sum(dict(reasons).values()), dict(reasons))
        for (entering, reasons), names in alike.items()
    ]
    less.sort(key=lambda of: of.measured > 0)
    without = {
        stage: declared(declarations, stage).keys
        for stage, states in every.items()
        if not {None, WAITS} & set(states)
    }
    measured = n - left - sum(lost.values())
    return Tally(n, measured, left, dict(lost.most_common()), tuple(less), without)


def _by_variant(stage: str, found: Sequence[Outcomes]) -> dict[str, list[str | None]]:
    """Name of a stage, or of each of its variants where these differ -> a state per item that has
    the variant."""
    variants = dict.fromkeys(v for of in found for v in of if v)
    of_variants = {
        f"{stage}.{v}": [of.get(v, of.get("")) for of in found if v in of or "" in of]
        for v in variants
    }
    counts = {tuple(Counter(states).items()) for states in of_variants.values()}
    if len(counts) > 1:
        return of_variants
    return {stage: [most_frequent(list(of.values())) for of in found]}


WAITS = "not_run"
"""State of a unit that is neither stored nor known to measure nothing."""


def _state(
    item: Planned, stage: str, index: Index, known_exclusions: Mapping[Key, str]
) -> str | None:
    """Why a stage of an item that is not stored measures nothing, or `WAITS`; None if it is
    stored."""
    key = item.key(stage)
    if index.is_done(key, item.units[stage]):
        return None
    if index.failed(key, item.units[stage]):
        return "failed"
    for needed in (name for name in item.needs(stage) if name in item.units):
        before, unit = item.key(needed), item.units[needed]
        if index.failed(before, unit):
            return "failed"
        why = (
            index.excluded(before) if index.is_done(before, unit) else known_exclusions.get(before)
        )
        if why is not None:
            return why
    return known_exclusions.get(key, WAITS)


def tally_of_run(run_dir: Path, shard: Shard | None = None) -> Tally:
    """The tally of a run folder, or of one worker's part of it; a run made of other runs has a
    tally for each of those that exist."""
    stored = stored_config(run_dir)
    study = study_of(stored)
    if study.reads_runs:
        runs = read_config(run_dir).made_of.items()
        there = {title: path for title, path in runs if (path / planfile.FILE).is_file()}
        parts = {title: tally_of_run(path, shard) for title, path in there.items()}
        return Tally(0, 0, 0, {}, parts=parts)
    planned, excluded = planfile.read(run_dir), exclusions_of(run_dir)
    index = excluded.index
    items = () if planned is None else planned.part(shard or Shard())
    chains: dict[chain_faults.Place, list[frozenset[str]]] = {}
    low: set[Key] = set()

    with gc_paused(), index.reader() as read:

        def outcomes(item: Planned, stage: str) -> Outcomes:
            state, entry = _state(item, stage, index, {}), index.get(item.key(stage))
            if state is not None or entry is None:
                return {"": state}
            found = excluded.outcomes(item.key(stage), partial(read, entry))
            if LOW_MASS in found.values():
                low.add(item.key(""))
            return found

        excluded.read_faults({item.key("")[1:] for item in items})
        tally = _counted(items, excluded.stages, outcomes)
        for item in items:
            of_item = excluded.each(item.key("")[1:])
            if of_item and item.key("") in low:
                of_item[0] |= {LOW_MASS}
            chains.setdefault((item.model, item.task), []).extend(of_item)
    if tally.measured and not tally.left and (shard or Shard()).is_all:
        derived = study.derived(run_dir, stored)
        more = [of for of in derived if of.measured < of.items]
        without = {of.stages[0]: of.keys for of in derived if of.keys and not of.measured}
        tally = replace(tally, stages=(*tally.stages, *more), without={**tally.without, **without})
    tally = replace(tally, chains=chain_faults.counted({p: of for p, of in chains.items() if of}))
    remedies: dict[str, str] = {}
    for name in dict.fromkeys(name.partition(".")[0] for item in items for name in item.units):
        remedies |= excluded.stage(name).remedies(items, index, stored)
    # a study's words for its own reasons are loaded only if needed, with all that its tables import
    own = set(tally.reasons) - set(WORDS)
    words = study.report().reasons if own else {}
    return replace(
        tally, unit=study.unit, input_report=InputReport.of(run_dir), remedies=remedies, words=words
    )
