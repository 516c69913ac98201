"""The plan of a run of FaithCoT-Bench: its units of work and phases; reads no weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.api import API
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.saved import json_lines
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.plan import RunPlan
from faithscope.experiments.engine.planfile import missing
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.traces.plan import plan as plan_of_traces
from faithscope.experiments.engine.traces.units import TRACE
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.faithcot.config import FaithCotConfig
from faithscope.experiments.studies.faithcot.judging import judgings, trace_of
from faithscope.experiments.studies.faithcot.shuffling import SHUFFLED
from faithscope.experiments.studies.faithcot.units import (
    EDITED,
    EDITS,
    WRITTEN,
    FaithUnits,
    Pair,
    reordered,
    units_of,
)
from faithscope.probes.judge.form import Ask, Writing
from faithscope.probes.probe import GUESS

if TYPE_CHECKING:
    from faithscope.experiments.engine.phases import Phases
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.store import Store

LABELS = "labels.jsonl"
"""Name of the file in the run folder with the labels given by `labels.path`."""


@dataclass(frozen=True)
class FaithPlan(RunPlan[FaithCotConfig, Pair]):
    """Everything to be done in a run of FaithCoT-Bench, in working order."""

    units: FaithUnits
    labels: tuple[Mapping[str, Any], ...] | None
    """Labels read from `labels.path`, one entry per labelled chain; None if no path is given."""

    @property
    def batch_size(self) -> int:
        return self.config.generation.batch_size

    @property
    def alternates(self) -> bool:
        return (self.config.writer or "").startswith(API)

    def lines(self, index: Index) -> list[str]:
        lines = [*self.units.traces.lines(index), ""]
        rows = {
            "chains asked again with shuffled options": SHUFFLED,
            "chains to be answered with written edits": EDITED,
        }
        for what, stage in rows.items():
            planned = [p for p in self.items if stage in p.units]
            if planned:
                left = sum(stage in missing(index, p) for p in planned)
                lines.append(f"{what}: {len(planned)}, left {left}")
        if self.labels is not None:
            lines.append(f"labels for chains of {self.config.labels.path}: {len(self.labels)}")
        return [*lines, *self._subject_lines(index), *self._judge_lines(index)]

    def _subject_lines(self, index: Index) -> list[str]:
        """Dry-run lines on what this study asks API models, beside traces and probes."""
        asks: dict[str, list[Ask | Writing]] = {}
        for pair in self.items:
            if not pair.model.startswith(API):
                continue
            mine, lacking = asks.setdefault(pair.model, []), missing(index, pair)
            if SHUFFLED in lacking:
                question = reordered(pair.question, self.config).question
                mine.append(Writing(f"{pair.item} s", pair.of.cot_prompt(question)))
            if EDITED in lacking:
                text = pair.of.necessity_prompt(pair.question, trace_of(index, pair).reasoning_text)
                n = 1 + len(EDITS) * self.config.edits.steps
                mine += [Writing(f"{pair.item} {i}", text) for i in range(n)]
        return spending_lines(asks, self.config.api, self.config.spend, "subject, besides")

    def _judge_lines(self, index: Index) -> list[str]:
        if self.config.judge is None:
            return []
        asks: dict[str, list[Ask | Writing]] = {judge: [] for judge in self.config.judges}
        for judging in judgings(self.units).values():
            for judge, pending in judging.pending(
                index, dict.fromkeys(judging.stages, self.items)
            ).items():
                asks[judge] += pending
        guessed = sum(not index.is_done(p.key(TRACE), p.units[TRACE]) for p in self.items)
        lines = [f"judge asks   {m}: {len(of):,}" for m, of in asks.items()]
        if guessed:
            lines.append(
                f"{guessed} chains are not written yet: taken for {GUESS.steps} steps of "
                f"{GUESS.tokens} tokens"
            )
        return ["", *lines, *spending_lines(asks, self.config.judge, self.config.spend)]

    def known_exclusions(self) -> Mapping[Key, str]:
        return self.units.traces.known_exclusions()

    def remedies(self) -> Mapping[str, str]:
        return self.units.traces.remedies()

    def inputs(self) -> dict[str, str | None]:
        """Input files of a run: those of its traces, and the labels given by `labels.path`, if
        any."""
        return {
            **self.units.traces.inputs(),
            LABELS: None if self.labels is None else json_lines(self.labels),
        }

    def work(self, store: Store, shard: Shard) -> Phases:
        """The phases of the work: traces and probes, shuffled options, edits and answers to them,
        judges."""
        # These modules import torch, which a dry run does without.
        from faithscope.experiments.engine.models.asking import Asker
        from faithscope.experiments.engine.phases import Phases
        from faithscope.experiments.engine.traces.work import TraceWork
        from faithscope.experiments.studies.faithcot import work

        whole, meter = self.units, Meter()
        # A subject that is also a judge comes last, so that its weights are loaded once.
        subjects = sorted(self.config.model.name, key=lambda m: m in self.config.judges)
        batches = self.batches(subjects, shard)
        to_shuffle = {
            m: [[p for p in b if SHUFFLED in p.units] for b in of] for m, of in batches.items()
        }
        phases: list[Any] = [TraceWork(self.config, batches, store, meter)]
        phases.append(work.Shuffling(whole, to_shuffle, store, meter))
        for stage, judging in judgings(whole).items():
            cut = judging.batches(batches)
            phases.append(Asker(judging, self.config, cut, store, meter))
            if stage == WRITTEN:
                phases.append(work.EditedAnswers(whole, batches, store, meter))
        return Phases(phases, needed=1)


def plan(config: FaithCotConfig) -> FaithPlan:
    """Plans a run: loads questions or chains, and names every unit of work.

    Raises:
        ConfigError: data that cannot be read, or holds no question.
        UserError: forms, given chains or labels that cannot be used.
    """
    labels = None
    if config.labels.path is not None:
        # Labels refer to a model's answer to an item, as the records of the run do.
        read = read_chains(Path(config.labels.path).expanduser(), "fine_cot", own_ids=False)
        labels = tuple(
            {
                "dataset": c.dataset,
                "item": c.id,
                "model": c.model,
                "labels": dict(c.labels),
                "step_labels": {name: list(of) for name, of in c.step_labels.items()},
            }
            for c in read.chains
        )
    units = units_of(config, plan_of_traces(config))
    return FaithPlan(config, units.pairs, units, labels, input_report=units.traces.input_report)
