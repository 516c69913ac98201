"""Tally of a run: how many items are measured, why others are not, and what would change it.

All studies share this count, which is made before a run from the plan's forecast, and after it from
the stored units.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from faithscope.experiments.config.study import Stages, declared, study_of
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.folder import read_config, stored_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.planfile import Planned, Shard
from faithscope.experiments.engine.tallies.input_report import InputReport
from faithscope.experiments.engine.tallies.reasons import (
    REMEDIES,
    WORDS,
    in_words,
)
from faithscope.experiments.engine.units import Key

_SETTING = re.compile(r"[a-z_.]+=")
"""Beginning of a remedy that sets a config key."""


@dataclass(frozen=True)
class StageTally:
    """Number of items that each of `stages` measured, for stages with equal counts."""

    stages: tuple[str, ...]
    items: int
    measured: int
    lost: Mapping[str, int]
    """Reason -> number of items that were not measured for it."""


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
    """Tallies of stages that measure fewer items than the run as a whole."""
    input_report: InputReport = field(default_factory=InputReport)
    remedies: Mapping[str, str] = field(default_factory=dict)
    """Reason -> config setting that would avoid it, besides `reasons.REMEDIES`."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Reason -> its meaning, besides `reasons.WORDS`."""
    parts: Mapping[str, Tally] = field(default_factory=dict)
    """Title -> the tally of a run that this run is made of."""
    ahead: bool = False
    """Whether the tally is a forecast."""

    @property
    def nothing_measured(self) -> bool:
        """Whether a run ends, or would end, without a single measured item."""
        if self.parts:
            return all(part.nothing_measured for part in self.parts.values())
        return self.items > 0 and not self.measured and not self.left

    @property
    def says_something(self) -> bool:
        """Whether something is left out, not reached or not used."""
        own = self.lost or self.left or self.stages or self.input_report.lines()
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
        first = f"{self.measured:,} of {self.items:,} items {done}"
        if self.left:
            first += f", {self.left:,} not reached yet"
        lines = [first + self._because(self.lost)] if self.items else []
        for of in self.stages:
            count = f"{', '.join(of.stages)}: {of.measured:,} of {of.items:,}"
            lines.append(f"{count} {done}{self._because(of.lost)}")
        lines += self.input_report.lines()
        if remedies := self._remedies():
            settings = (f"--set {x}" if _SETTING.match(x) else x for x in remedies)
            lines.append(f"to change that: {'; '.join(settings)}")
        return lines

    @property
    def reasons(self) -> list[str]:
        """Reasons why items are left out, by all stages or by some."""
        return list(dict.fromkeys([*self.lost, *(r for of in self.stages for r in of.lost)]))

    def _remedies(self) -> list[str]:
        known = {**REMEDIES, **self.remedies}
        of_reasons = [known[reason] for reason in self.reasons if known.get(reason)]
        return list(dict.fromkeys([*of_reasons, *(c.do for c in self.input_report.cuts if c.do)]))

    def _because(self, lost: Mapping[str, int]) -> str:
        words = {reason: self.words.get(reason) or in_words(reason) for reason in lost}
        reasons = [f"{n:,} because {words[reason]}" for reason, n in lost.items()]
        return f"; left out: {', '.join(reasons)}" if reasons else ""


def tally_of(
    items: Iterable[Planned],
    index: Index,
    declarations: Stages,
    known_exclusions: Mapping[Key, str] | None = None,
) -> Tally:
    """Count the items that at least one stage measures.

    Args:
        declarations: of the stages of their study.
        known_exclusions: unit -> why it will measure nothing, before a run; None after it.
    """
    ahead = known_exclusions is not None
    n = left = 0
    lost, entered = Counter[str](), Counter[str]()
    of_stages: dict[str, Counter[str]] = {}
    for item in items:
        stages = [s for s in item.units if declared(declarations, s).measures]
        n += 1
        if not stages:
            lost["beyond_limit"] += 1
            continue
        states = {stage: _state(item, stage, index, known_exclusions or {}) for stage in stages}
        if ahead:
            # a pending unit is not known to measure nothing
            states = {stage: None if s == WAITS else s for stage, s in states.items()}
        if None in states.values():
            entered.update(stages)
            for stage, state in states.items():
                if state is not None:
                    of_stages.setdefault(stage, Counter())[state] += 1
        elif WAITS in states.values():
            left += 1
        else:
            lost[Counter(states.values()).most_common(1)[0][0] or ""] += 1
    alike: dict[tuple[int, tuple[tuple[str, int], ...]], list[str]] = {}
    for stage, of in of_stages.items():
        alike.setdefault((entered[stage], tuple(of.most_common())), []).append(stage)
    less = tuple(
        StageTally(tuple(stages), entering, entering - sum(dict(of).values()), dict(of))
        for (entering, of), stages in alike.items()
    )
    measured = n - left - sum(lost.values())
    return Tally(n, measured, left, dict(lost.most_common()), less, ahead=ahead)


WAITS = "not_run"
"""State of a unit that is neither stored nor known to measure nothing."""


def _state(
    item: Planned, stage: str, index: Index, known_exclusions: Mapping[Key, str]
) -> str | None:
    """Why a stage of an item measures nothing, or `WAITS`; None if it measures something."""
    key = item.key(stage)
    if index.is_done(key, item.units[stage]):
        return index.excluded(key)
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
    planned, index = planfile.read(run_dir), planfile.counted(run_dir)
    items = () if planned is None else planned.part(shard or Shard())
    stages = study.stages()
    tally = tally_of(items, index, stages)
    remedies: dict[str, str] = {}
    for stage in stages.values():
        remedies |= stage.remedies(items, index, stored)
    # a study's words for its own reasons are loaded only if needed, with all that its tables import
    own = set(tally.reasons) - set(WORDS)
    words = study.report().reasons if own else {}
    return replace(tally, input_report=InputReport.of(run_dir), remedies=remedies, words=words)
