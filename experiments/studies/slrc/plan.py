"""The plan of a run: its items, its inputs and what is left to do; reads no weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.data.saved import json_lines
from faithscope.experiments.engine.forms import as_files
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.plan import PROMPTS, RunPlan, below
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.tallies.input_report import InputReport, Truncation
from faithscope.experiments.engine.traces.given import cuts_of, groups_of
from faithscope.experiments.engine.traces.plan import TracePlan
from faithscope.experiments.engine.traces.plan import plan as plan_of_traces
from faithscope.experiments.engine.traces.stages import TRACE
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.slrc import programs
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.detectors import plan as detectors
from faithscope.experiments.studies.slrc.detectors.units import with_units
from faithscope.experiments.studies.slrc.judges.asking import Item, JudgedUnits
from faithscope.experiments.studies.slrc.judges.chains import as_lines_of_json, judged_chain
from faithscope.experiments.studies.slrc.stages import JUDGED_CHAINS, SHUFFLED, room_to_read
from faithscope.experiments.studies.slrc.units import ChainItem, UnreadChain
from faithscope.probes import Settings
from faithscope.probes.label_settings import ReadsLabels

if TYPE_CHECKING:
    from faithscope.experiments.engine.phases import Phases
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.store import Store

READ = "read_afterwards.json"
"""Input file of a run: digests of the files outside it from which its tables are made."""


@dataclass(frozen=True)
class ChainsPlan(RunPlan[RunConfig, Item]):
    """Everything that is measured and judged of chains, in working order."""

    judged: JudgedUnits
    traces: TracePlan | None
    """The plan of traces and probes; None if no model reads the chains."""
    source: str = ""
    """File that unread chains were read from, and its format."""
    labels: Sequence[Mapping[str, Any]] | None = None
    """Labels read from `labels.path`, one entry per labelled chain; None if no path is given."""

    @property
    def batch_size(self) -> int:
        if self.traces is None and self.config.judges is not None:
            return self.config.judges.batch_size
        return self.config.generation.batch_size

    def lines(self, index: Index) -> list[str]:
        written: dict[str, Any] = {}
        if self.config.writer is not None:
            # it loads transformers, which a finished run does without
            from faithscope.experiments.studies.slrc.detectors.edits import writing

            written = writing(self.config).pending(index, {self.config.writer: self._read})
        judged = self.judged.lines(index, self.items, written)
        if self.traces is not None:
            detected = self._lines_of_detectors(index) if self.config.detectors else []
            read = programs.lines(self.config, index, self._read, self.traces.given_trace)
            return [*self.traces.lines(index), *read, *detected, *judged]
        steps = sum(len(item.chain.places) for item in self._unread)
        return [f"chains      {len(self.items)} with {steps} steps, of {self.source}", *judged]

    def _lines_of_detectors(self, index: Index) -> list[str]:
        lines = ["", *detectors.lines(self.config, index, self._read)]
        if self.labels is not None:
            n, path = len(self.labels), self.config.labels.path
            lines.append(f"labels for chains of {path}: {n}")
        return lines

    @property
    def _read(self) -> list[ChainItem]:
        return [item for item in self.items if isinstance(item, ChainItem)]

    @property
    def alternates(self) -> bool:
        return (self.config.writer or "").startswith(API)

    @property
    def _unread(self) -> list[UnreadChain]:
        return [item for item in self.items if isinstance(item, UnreadChain)]

    def readers(self) -> str:
        return "" if self.traces is None else self.traces.readers()

    def known_exclusions(self) -> Mapping[Key, str]:
        """Units that measure nothing: as in the plan of traces and of judges."""
        of_traces = {} if self.traces is None else self.traces.known_exclusions()
        return {**self.judged.known_exclusions(self.items), **of_traces}

    def remedies(self) -> Mapping[str, str]:
        return {} if self.traces is None else {**self.traces.remedies(), **room_to_read()}

    def inputs(self) -> dict[str, str | None]:
        """Input files of a run: those of its traces, chains that no model reads, labels given by
        `labels.path`, digests of directions that are applied, and the prompts of judges."""
        unread = as_lines_of_json(item.chain for item in self._unread)
        of_traces = {JUDGED_CHAINS: unread} if self.traces is None else self.traces.inputs()
        labels = None if self.labels is None else json_lines(self.labels)
        prompts = below(PROMPTS, as_files(self.judged.forms))
        read = _read_afterwards(self.config)
        return {**of_traces, detectors.LABELS: labels, READ: read, **prompts}

    def work(self, store: Store, shard: Shard) -> Phases:
        """The phases of the work: traces and probes, shuffled options, edits and answers to them,
        judges."""
        from faithscope.experiments.engine.models.asking import Asker
        from faithscope.experiments.engine.phases import Phases

        meter, judges = Meter(), self.config.judges
        # A subject that is also a judge comes last, so that its weights are loaded once.
        own = judges.model if judges else ()
        subjects = sorted(self.config.model.name, key=lambda m: m in own)
        batches: dict[str, list[list[Any]]] = self.batches(subjects or [""], shard)
        phases: list[Any] = []
        # modules of work on weights import torch, which judges behind APIs alone do without
        if subjects:
            from faithscope.experiments.engine.traces.work import TraceWork

            later = programs.probes_of(self.config)
            first = [s for s in (TRACE, *self.config.probes) if s not in later]
            phases.append(TraceWork(self.config, batches, store, meter, first))
            if later:
                from faithscope.experiments.studies.slrc import programs_work

                phases += programs_work.phases(self.config, batches, store, meter)
        if self.config.detectors is not None or self.config.writer is not None:
            from faithscope.experiments.studies.slrc.detectors import work
        if self.config.detectors is not None:
            to_shuffle = {
                m: [[i for i in b if SHUFFLED in i.units] for b in of] for m, of in batches.items()
            }
            phases.append(work.Shuffling(self.config, to_shuffle, store, meter))
        if self.config.writer is not None:
            from faithscope.experiments.studies.slrc.detectors.edits import writing

            edits = writing(self.config)
            phases.append(Asker(edits, self.config, edits.batches(batches), store, meter))
            phases.append(work.EditedAnswers(self.config, batches, store, meter))
        if judges:
            judging = self.judged.judging
            phases.append(Asker(judging, self.config, judging.batches(batches), store, meter))
        return Phases(phases, needed=1)


def plan(config: RunConfig) -> ChainsPlan:
    """Plans a run: loads questions or chains, and names every unit of work.

    Raises:
        ConfigError: data that cannot be read, or holds no question; no chains are named, or a form
            that there is not.
        UserError: a file of given chains cannot be read, or a row does not fit.
    """
    judged = JudgedUnits.of(config)
    if not config.model.name:
        return _unread(config, judged)
    traces = plan_of_traces(config)
    if any(_reads_labels(config.settings(probe)) for probe in config.probes):
        # it imports what tables are made with, which other plans do without
        from faithscope.experiments.studies.slrc.label_probes.checks import check_labels

        check_labels(config, traces.items, judged)
    chains = programs.with_units(config, map(ChainItem.made_of, traces.items))
    items = judged.of_traces(with_units(config, chains))
    labels, report = detectors.labels_of(config), traces.input_report
    return ChainsPlan(config, tuple(items), judged, traces, labels=labels, input_report=report)


def _read_afterwards(config: RunConfig) -> str | None:
    """Digests of the files outside the run from which tables are made, so that a changed one makes
    them anew; None without such files."""
    digests = {}
    for probe in config.probes:
        for key, name in config.settings(probe).files_read_afterwards().items():
            path = Path(name).expanduser()
            found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
            digests[f"{probe}.{key}"] = {"file": name, "sha256": found}
    return json.dumps(digests, indent=1) + "\n" if digests else None


def _reads_labels(settings: Settings) -> bool:
    is_able = isinstance(settings, ReadsLabels)
    return is_able and bool(settings.labels or settings.step_labels or settings.apply)


def _unread(config: RunConfig, judged: JudgedUnits) -> ChainsPlan:
    """The plan of a run in which judges are asked about given chains that no model reads."""
    t = config.traces
    if t.path is None:
        raise ConfigError(
            [
                "traces.path: missing; give the chains that are to be judged: "
                "--set traces.path=FILE, or the folder of a run (faithscope docs given); or name a "
                "model that writes some in model.name"
            ]
        )
    read = t.read(config.seed)
    by_them = [c for c in read.chains if not t.written_by or c.model in t.written_by]
    source, cuts = f"{read.file} ({read.format})", cuts_of(read, t.limit)
    if others := len(read.chains) - len(by_them):
        written_by = f"traces.written_by={', '.join(t.written_by)}"
        what = "chains by other models"
        cuts.append(Truncation(what, 0, others, written_by, "traces.written_by=[]"))
    if not by_them:
        raise ConfigError([f"traces.written_by: no chain is left of {source}; name who wrote some"])
    items = tuple(judged.of_unread(judged_chain(chain, config.steps) for chain in by_them))
    groups = groups_of(replace(read, chains=tuple(by_them)))
    report = InputReport(tuple(cuts), notes=groups.notes, groups=groups.of)
    return ChainsPlan(config, items, judged, None, source, input_report=report)
