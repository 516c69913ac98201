"""Models write traces, and probes measure them, item by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from faithscope import interp
from faithscope.experiments.config.api import API, ApiSection
from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.data.api_traces import trace_of_reply, trace_record
from faithscope.experiments.data.traces import TraceSettings, to_record, to_trace, trace_of
from faithscope.experiments.engine.models.writing import HowWritten, Start, TextWorker, Unit
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import Key, storable
from faithscope.experiments.engine.worker import Records
from faithscope.experiments.studies.slrc.api_work import ApiProbes
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.units import TRACE, Item, measure
from faithscope.interp.errors import NoRoom
from faithscope.interp.generation import Generation
from faithscope.interp.prompts import Prompt
from faithscope.interventions import Trace
from faithscope.probes.judge.form import Reply, Writing
from faithscope.probes.record import record
from faithscope.probes.text_model import NO_ROOM, TextModel

if TYPE_CHECKING:
    from faithscope.interp.language import Speaks

AT_ONCE = 8
"""Items for each connection to an API that are worked on together, so that none waits for the
others."""


class TraceWork(TextWorker[Item, Prompt]):
    """One worker's part of a run over traces; `ApiProbes` takes probes of models behind APIs."""

    texts = (TRACE,)

    def __init__(
        self, config: RunConfig, batches: Mapping[str, list[list[Item]]], store: Store
    ) -> None:
        self.config, self.settings = config, trace_settings(config)
        stages = (TRACE, *config.probes)
        super().__init__(batches, stages, config.spend, config.token_budget, store)
        self._announced: set[Key] = set()
        """Units that the meter expects."""

    def label(self, item: Item, stage: str) -> str:
        return "traces" if stage == TRACE else f"{item.task} · {stage}"

    def stages_of(self, model: str) -> Sequence[str]:
        return (TRACE, *self.config.of(model).probes)

    def asked(self) -> Mapping[str, ApiSection]:
        return {model: self.config.api for model in self.todo}

    def announce(self) -> None:
        super().announce()
        self._announced = {i.key(s) for i in self.items for s in self.missing(i)}

    def advance(self, item: Item, stage: str, seconds: float | None = None) -> None:
        if item.key(stage) in self._announced:
            super().advance(item, stage, seconds)

    def do(self, model: str) -> None:
        items = [i for batch in self.batches[model] for i in batch if self.missing(i)]
        if model.startswith(API):
            probes = ApiProbes(self, self.apis[model], self.config)
            at_once = AT_ONCE * self.config.api.max_connections
            for start in range(0, len(items), at_once):
                together = items[start : start + at_once]
                self.write_by_api(model, together)
                probes.take(together)
            return
        held = self.write(model)
        held = held or self.load_subject(model)
        for item in items:
            self._probe(held, item)

    def backend(self) -> BackendSection:
        return self.config.generation

    def how_written(self, model: str) -> HowWritten:
        g = self.config.generation
        return HowWritten(
            self.config.model, g.max_new_tokens, self.config.seed, g.temperature, g.top_p
        )

    def prompt(self, speaks: Speaks, unit: Unit[Item]) -> Prompt:
        item, _ = unit
        message = item.of.cot_prompt(item.question)
        return speaks.prompt(message, thinking=self.settings.thinking)

    def text_records(
        self, speaks: Speaks, start: Start[Item, Prompt], text: Generation, by: Mapping[str, str]
    ) -> Records:
        item = start.item
        settings = replace(self.settings, max_new_tokens=start.max_new_tokens)
        trace = trace_of(speaks, item.of, item.question, start.prompt, text, settings, by)
        return [to_record(trace)]

    def conversation(self, unit: Unit[Item]) -> Writing:
        item, stage = unit
        return Writing(item.units[stage], item.of.cot_prompt(item.question))

    def reply_records(self, unit: Unit[Item], writing: Writing, reply: Reply) -> Records:
        item, _ = unit
        model, api = TextModel(item.model, lambda message: None), self.config.api
        trace = trace_of_reply(model, item.of, item.question, reply, self.settings, api)
        return [trace_record(trace, reply)]

    def _probe(self, model: interp.Model, item: Item) -> None:
        if not self.index.is_done(item.key(TRACE), item.units[TRACE]):
            return
        trace = None
        lacking = self.missing(item)
        for name in item.probes:
            self.begin(model.name, item, name)
            if name in lacking:
                trace = trace or to_trace(self.index.records(item.key(TRACE))[0])
                self.keep(item, name, self._measured(model, name, item, trace))
            else:
                # its trace turned out to be excluded
                self.advance(item, name)

    def _measured(
        self, model: interp.Model, name: str, item: Item, trace: Trace
    ) -> Records | Exception:
        result = self.result(model, lambda: measure(name, model, item.of, trace, self.config))
        if isinstance(result, NoRoom):
            return storable([record(trace, name, "", self.config.seed, excluded=NO_ROOM)])
        return result


def trace_settings(config: RunConfig) -> TraceSettings:
    """How a run's traces are made."""
    g, steps = config.generation, config.steps
    return TraceSettings(
        max_new_tokens=g.max_new_tokens,
        temperature=g.temperature,
        top_p=g.top_p,
        seed=config.seed,
        batch_size=g.batch_size,
        thinking=config.model.thinking,
        segmentation=steps.segmentation,
        min_step_chars=steps.min_chars,
        conclusion=steps.conclusion,
    )
