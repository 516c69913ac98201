"""Models write traces, and probes measure them, item by item."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from faithscope import interp
from faithscope.experiments.config.api import API, ApiSection
from faithscope.experiments.data.traces import TraceSettings, make_traces, to_record, to_trace
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import Key, storable
from faithscope.experiments.engine.worker import Records, Worker
from faithscope.experiments.studies.slrc.api_work import ApiWork
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.probing import measure
from faithscope.experiments.studies.slrc.units import TRACE, Item
from faithscope.interp.errors import NoRoom
from faithscope.interp.memory import free
from faithscope.interventions import Trace
from faithscope.probes.record import record
from faithscope.probes.text_model import NO_ROOM


class TraceWork(Worker[Item]):
    """One worker's part of a run over traces: models in memory here; `ApiWork` has the others."""

    def __init__(
        self, config: RunConfig, batches: Mapping[str, list[list[Item]]], store: Store
    ) -> None:
        self.config = config
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
            settings = trace_settings(self.config)
            ApiWork(self, self.apis[model], self.config, settings).go(items)
            return
        held = self.load(model, self.config.model)
        for batch in self.batches[model]:
            self._generate(held, batch)
        for item in items:
            self._probe(held, item)
        del held
        free()

    def _generate(self, model: interp.Model, batch: list[Item]) -> None:
        lacking = [i for i in batch if TRACE in self.missing(i)]
        if not lacking:
            return
        self.begin(model.name, batch[0], TRACE)
        started, settings = time.perf_counter(), trace_settings(self.config)
        results: dict[str, Records | Exception] = {}

        def write(items: Sequence[Item]) -> None:
            questions = [(i.of, i.question) for i in items]
            traces = make_traces(
                model, questions, settings, on_done=lambda i, trace: self.meter.tick()
            )
            for item, trace in zip(items, traces, strict=True):
                results[item.units[TRACE]] = storable([to_record(trace)])

        def failed(item: Item, error: Exception) -> None:
            results[item.units[TRACE]] = error

        # the whole batch, though some may be stored: other company could change the tokens
        self.together(model, batch, write, failed, lambda items: items, fatal=())
        seconds = (time.perf_counter() - started) / len(batch)
        for item in lacking:
            self.keep(item, TRACE, results[item.units[TRACE]], seconds)

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
