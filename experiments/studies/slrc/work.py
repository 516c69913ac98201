"""Work through a plan over traces: generate, probe.

One model is in memory at a time. What is stored is never made again, so a run that was
stopped, however hard, goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from faithscope import interp
from faithscope.experiments.config import RunConfig
from faithscope.experiments.data.traces import TraceSettings, make_traces, to_record, to_trace
from faithscope.experiments.engine.judges import checked_apis
from faithscope.experiments.engine.loading import load_for_run
from faithscope.experiments.engine.models_in_turn import in_turn
from faithscope.experiments.engine.planfile import Shard, failures, is_finished, missing
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.spending import budget_of
from faithscope.experiments.engine.store import Key, Store, storable
from faithscope.experiments.engine.units import why_failed
from faithscope.experiments.studies.slrc.api_work import ApiWork
from faithscope.experiments.studies.slrc.plan import Item, Plan
from faithscope.experiments.studies.slrc.probing import measure
from faithscope.interp.errors import NoRoom, UserError
from faithscope.interp.memory import free, within_memory
from faithscope.interventions import Trace
from faithscope.probes.record import record
from faithscope.probes.text_model import NO_ROOM

Records = list[dict[str, Any]]


class TraceWork:
    """One worker's part of a run over traces: models in memory here; `ApiWork` has the others."""

    def __init__(self, whole: Plan, store: Store, shard: Shard) -> None:
        self.config = whole.config
        self.store = store
        self.index = store.index
        batch = self.config.generation.batch_size
        self.batches = {m: shard.mine(whole.of(m), batch) for m in self.config.model.name}
        self.items = [i for b in self.batches.values() for batch in b for i in batch]
        self.meter = Meter()
        self.problems: list[str] = []
        self.stopped = ""
        self.has_outputs = True
        self._handles: dict[tuple[str, str, str], int] = {}
        self._announced: set[Key] = set()
        """Units that the meter expects."""

    def go(self) -> None:
        todo = {m: [i for b in batches for i in b] for m, batches in self.batches.items()}
        todo = {
            m: items
            for m, items in todo.items()
            if not all(is_finished(self.index, i) for i in items)
        }
        self._announce(todo)
        budget = budget_of(self.config.spend, self.store, todo)
        apis = checked_apis(dict.fromkeys(todo, self.config.api), budget)

        def do(name: str) -> None:
            if name in apis:
                ApiWork(self, apis[name], trace_settings(self.config)).go(todo[name])
            else:
                self._all_of(name, todo[name])

        in_turn(self, list(todo), do, self.meter, self.store)

    def _all_of(self, name: str, items: list[Item]) -> None:
        """Everything of one model here."""
        model = load_for_run(
            name, self.config.model, self.config.token_budget, self.meter, self.store
        )
        for batch in self.batches[name]:
            self._generate(model, batch)
        for item in items:
            self._probe(model, item)
        del model
        free()

    def failures(self) -> list[str]:
        return [
            f"{i.model} · {i.task.name} · {i.question.id} · {stage}: {reason}"
            for i in self.items
            for stage, reason in failures(self.index, i)
        ]

    def done(self) -> str:
        finished = sum(is_finished(self.index, i) for i in self.items)
        return f"{finished} of {len(self.items)} items are done"

    def _announce(self, todo: dict[str, list[Item]]) -> None:
        for model, items in todo.items():
            short = model.rpartition("/")[2]
            tiny = model.startswith("planted:")
            new = [i for i in items if not self.index.is_done(i.key("trace"), i.trace)]
            label = f"{short} · traces"
            self._handles[model, "", "trace"] = self.meter.expect(label, len(new), "trace", tiny)
            for task in dict.fromkeys(i.task.name for i in items):
                for probe in self.config.of(model).probes:
                    left = [
                        i for i in items if i.task.name == task and probe in missing(self.index, i)
                    ]
                    self._announced |= {i.key(probe) for i in left}
                    self._handles[model, task, probe] = self.meter.expect(
                        f"{short} · {task} · {probe}", len(left), probe, tiny
                    )

    def _generate(self, model: interp.Model, batch: list[Item]) -> None:
        missing = [i for i in batch if not self.index.is_done(i.key("trace"), i.trace)]
        if not missing:
            return
        self.begin(model.name, "", "trace")
        started = time.perf_counter()
        # the whole batch, though some may be stored: other company could change the tokens
        found = self._traces(model, batch)
        seconds = (time.perf_counter() - started) / len(batch)
        for item, made in zip(batch, found, strict=True):
            if item in missing:
                self.keep(item, "trace", item.trace, made, seconds)
        self.meter.advance(len(missing))

    def _traces(self, model: interp.Model, batch: list[Item]) -> list[Records | Exception]:
        try:
            settings = trace_settings(self.config)
            asked = [(i.task, i.question) for i in batch]

            def work() -> list[Trace]:
                return make_traces(
                    model, asked, settings, on_done=lambda i, trace: self.meter.tick()
                )

            traces = within_memory(model, work, self._on_less(model))
            return [storable([to_record(t)]) for t in traces]
        except Exception as error:
            if len(batch) == 1:
                return [error]
        # one bad item must not take its batch with it: ask one at a time to find it
        return [found for item in batch for found in self._traces(model, [item])]

    def _probe(self, model: interp.Model, item: Item) -> None:
        if not self.index.is_done(item.key("trace"), item.trace):
            return
        trace = None
        lacking = missing(self.index, item)
        for name in item.probes:
            self.begin(model.name, item.task.name, name)
            if name in lacking:
                trace = trace or to_trace(self.index.records(item.key("trace"))[0])
                started = time.perf_counter()
                made: Records | Exception
                try:
                    made = self._measure(model, name, item, trace)
                except Exception as error:
                    made = error
                self.keep(item, name, item.probes[name], made, time.perf_counter() - started)
            self.advance(item, name)

    def _measure(self, model: interp.Model, name: str, item: Item, trace: Trace) -> Records:
        def work() -> Records:
            return storable(measure(name, model, item.task, trace, self.config))

        try:
            return within_memory(model, work, self._on_less(model))
        except NoRoom:
            return storable([record(trace, name, "", self.config.seed, excluded=NO_ROOM)])

    def _on_less(self, model: interp.Model) -> Callable[[int], None]:
        def note(budget: int) -> None:
            line = f"{model.name}: out of memory; goes on with a token budget of {budget}"
            self.meter.say(line)
            self.store.note(line)

        return note

    def begin(self, model: str, task: str, stage: str) -> None:
        """Say what is worked on; a trace's `task` is "", as batches hold several."""
        self.meter.begin(self._handles[model, task, stage])

    def advance(self, item: Item, probe: str, seconds: float | None = None) -> None:
        """One probe of an item is done with; `seconds` as for `Meter.advance`."""
        if item.key(probe) in self._announced:
            self.meter.advance(seconds=seconds)

    def keep(
        self, item: Item, stage: str, unit: str, made: Records | Exception, seconds: float
    ) -> None:
        """Store what was made of one stage of an item, or why nothing was."""
        failed = None
        if isinstance(made, Exception):
            failed = why_failed(made)
            self.meter.say(f"failed: {item.task.name} · {item.question.id} · {stage}: {failed}")
        records = [] if isinstance(made, Exception) else made
        self.store.add(unit, item.key(stage), records, failed, seconds)
        if isinstance(made, torch.AcceleratorError):
            raise UserError(
                f"{item.model}: the device failed and takes no more work ({failed}); "
                "run again: it goes on from here"
            )


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
