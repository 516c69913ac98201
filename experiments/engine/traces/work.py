"""Workers of a run over traces: models write traces, and probes measure them, item by item.

Replies of API models are stored one by one as they come, also those for probes: whatever ends a
run, stored replies are not asked again. A probe of an API model is taken once all its replies are
there.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from faithscope import interp
from faithscope.experiments.config.api import API, ApiSection
from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.data.api_traces import (
    reply_record,
    trace_of_reply,
    trace_record,
)
from faithscope.experiments.data.given.encode import given_trace
from faithscope.experiments.data.traces import (
    THINKING_TOKENS,
    TraceSettings,
    prompt_of,
    to_record,
    to_trace,
    trace_of,
    usual_tokens,
)
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.models.loading import StartedLate, written_by
from faithscope.experiments.engine.models.writing import HowWritten, Start, TextWorker, Unit
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.traces import writers
from faithscope.experiments.engine.traces.config import TracesConfig
from faithscope.experiments.engine.traces.units import TRACE, Item, api_decides, measure
from faithscope.experiments.engine.units import API_REPLIES, Key, UnitIds, storable
from faithscope.experiments.engine.worker import Records, Worker
from faithscope.interp.errors import NoRoom, UserError
from faithscope.interp.generation import Generation
from faithscope.interp.prompts import Prompt
from faithscope.interp.side_by_side import side_by_side
from faithscope.interventions import Trace
from faithscope.probes.judge.form import Reply, Writing, no_reply
from faithscope.probes.judge.spend import BudgetSpent
from faithscope.probes.probe import PROBES, OtherChain
from faithscope.probes.record import record
from faithscope.probes.screening import Screen
from faithscope.probes.settings import ModelFacts
from faithscope.probes.text_model import NO_ROOM, Message, TextModel, Unanswered

if TYPE_CHECKING:
    from faithscope.interp.language import Speaks
    from faithscope.probes.judge.api import ApiJudge

ITEMS_AT_ONCE = 8
"""Number of items whose probes run side by side on an accelerator."""
AT_ONCE = 8
"""Number of items per API connection that are worked on together, so that no connection idles."""


class TraceWork(TextWorker[Item, Prompt]):
    """One worker's part of a run over traces; `ApiProbes` takes probes of API models."""

    texts = (TRACE,)

    def __init__(
        self,
        config: TracesConfig,
        batches: Mapping[str, Sequence[Sequence[Item]]],
        store: Store,
        meter: Meter | None = None,
        stages: Sequence[str] | None = None,
    ) -> None:
        """
        Args:
            stages: the stages that this worker does; None is the trace and every probe.
        """
        self.config, self.settings = config, trace_settings(config)
        stages = (TRACE, *config.probes) if stages is None else stages
        super().__init__(batches, stages, config.spend, config.token_budget, store, meter)
        self._announced: set[Key] = set()
        """Units that the progress meter was told to expect."""
        self._of_task: dict[tuple[str, str], tuple[list[Item], dict[str, int]]] = {}
        """Model and task -> their items in order, and the place of each by its name."""

    def label(self, item: Item, stage: str) -> str:
        return "traces" if stage == TRACE else f"{item.task} · {stage}"

    def stages_of(self, model: str) -> Sequence[str]:
        return [s for s in (TRACE, *self.config.of(model).probes) if s in self.stages]

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
        if self.config.traces.path is not None:
            self._do_given(model, items)
            return
        if model.startswith(API):
            probes = ApiProbes(self, self.apis[model], self.config)
            probes.take_all(items, lambda together: self.write_by_api(model, together))
            return
        # vLLM writes traces and what probes need in one start, beside the model that is measured
        choice = writers.choice_for(self.config)
        beside = choice.probes and choice.backend == "vllm"
        subject = None if beside else self.write(model)
        subject = subject or self.load_subject(model)
        self._check_fit(subject, items)
        with written_for(self.config, subject, self.store):
            if beside:
                self.write(model, subject)
            for some in self._at_once(subject, items):
                self._probe(subject, some)

    def _do_given(self, model: str, items: Sequence[Item]) -> None:
        """Encode given chains for a model, and probe them."""
        if model.startswith(API):
            reader = TextModel(model, lambda message: None)
            for item in items:
                self._encode(reader, item)
            ApiProbes(self, self.apis[model], self.config).take_all(items)
            return
        subject = self.load_subject(model)
        self._check_fit(subject, items)
        with written_for(self.config, subject, self.store):
            for some in self._at_once(subject, items):
                for item in some:
                    self._encode(subject, item)
                self._probe(subject, some)

    def more(self, item: Item) -> Mapping[str, Any]:
        """Hook: what the probes of an item take besides model, trace, words and settings."""
        return {}

    def _others(self, item: Item) -> Iterator[OtherChain]:
        """The chains of the same model and task that are there and about other questions: those
        after the item, then those from the first on."""
        key = (item.model, item.task)
        if key not in self._of_task:
            of = [i for batch in self.batches[item.model] for i in batch if i.task == item.task]
            self._of_task[key] = of, {i.item: n for n, i in enumerate(of)}
        same, places = self._of_task[key]
        at = places[item.item]
        for other in (*same[at + 1 :], *same[:at]):
            if other.question.text == item.question.text:
                continue
            if other.given is not None:
                if (text := other.given.chain.reasoning).strip():
                    yield OtherChain(other.item, other.given.prompt, text, other.given.answer)
            elif self.index.is_done(other.key(TRACE), other.units[TRACE]):
                stored = self.index.records(other.key(TRACE))[0]
                if not stored["excluded"]:
                    trace, asked = to_trace(stored), other.of.cot_prompt(other.question)
                    yield OtherChain(other.item, asked, trace.reasoning_text, trace.answer)

    def _check_fit(self, model: interp.Model, items: Sequence[Item]) -> None:
        """
        Raises:
            UserError: the settings of a probe that is still to be measured do not fit the model.
        """
        for probe in dict.fromkeys(p for i in items for p in i.probes if p in self.missing(i)):
            if problem := self.config.settings(probe).misfit_with(ModelFacts.of(model)):
                raise UserError(f"{probe}.{problem}")

    def _encode(self, reader: interp.Model | TextModel, item: Item) -> None:
        if TRACE not in self.missing(item):
            return
        assert item.given is not None, item
        self.begin(reader.name, item, TRACE)
        try:
            trace = given_trace(reader, item.given, self.settings)
            self.keep(item, TRACE, storable([to_record(trace)]))
        except Exception as error:
            # a chain that this model cannot encode must not cost the others
            self.keep(item, TRACE, error)

    def backend(self) -> BackendSection:
        return writers.writing(self.config)

    def how_written(self, model: str) -> HowWritten:
        g = self.config.generation
        return HowWritten(
            self.config.model,
            g.max_new_tokens or THINKING_TOKENS,
            self.config.seed,
            g.temperature,
            g.top_p,
            vllm=writers.options(self.config),
        )

    def most_tokens(self, how: HowWritten, prompt: Prompt) -> int:
        return self.config.generation.max_new_tokens or usual_tokens(prompt)

    def prompt(self, speaks: Speaks, unit: Unit[Item]) -> Prompt:
        item, _ = unit
        return prompt_of(speaks, item.of, item.question, self.settings.thinking)

    def seed_of(self, unit: Unit[Item], of_place: int) -> int:
        """The seed of a text; samples of one question have different ones wherever they stand."""
        question = unit[0].question
        if question.sample is None:
            return of_place
        text = f"sample\n{self.config.seed}\n{question.task}\n{question.id}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1

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

    def _at_once(self, model: interp.Model, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        """The items whose probes run side by side: two groups on an accelerator, which take
        turns."""
        n = self._group(model) * (1 if model.device.type == "cpu" else 2)
        for start in range(0, len(items), n):
            yield items[start : start + n]

    def _group(self, model: interp.Model) -> int:
        """Most items whose probes share packs."""
        return self.config.items_at_once or (1 if model.device.type == "cpu" else ITEMS_AT_ONCE)

    def _probe(self, model: interp.Model, items: Sequence[Item]) -> None:
        """Take the missing probes of some items."""
        units: list[tuple[Item, str, Trace]] = []
        screens: dict[int, Screen] = {}
        for item in items:
            if not self.index.is_done(item.key(TRACE), item.units[TRACE]):
                continue
            trace, lacking = None, self.missing(item)
            for name in item.probes:
                if name in lacking:
                    trace = trace or to_trace(self.index.records(item.key(TRACE))[0])
                    units.append((item, name, trace))
                else:
                    # the item's trace turned out to be excluded
                    self.begin(model.name, item, name)
                    self.advance(item, name)
        if self.config.items_at_once is None and model.device.type == "cpu":
            packs = [[unit] for unit in units]
        else:
            apart = [name for name, probe in PROBES.items() if probe.alone]
            packs = [[unit for unit in units if unit[1] not in apart]]
            packs += [[unit] for unit in units if unit[1] in apart]
        first = {id(item) for item in items[: self._group(model)]}
        for pack in filter(None, packs):
            self._take(model, pack, screens, first)

    def _take(
        self,
        model: interp.Model,
        units: Sequence[tuple[Item, str, Trace]],
        screens: dict[int, Screen],
        first: Container[int] = (),
    ) -> None:
        """Measure probes side by side, and store each as it ends.

        Args:
            screens: as for `measure`; the traces of all units live as long.
            first: ids of the items of the first of two groups.
        """
        self.begin(model.name, *units[0][:2])
        left, seconds, since = [*units], 0.0, time.perf_counter()

        def job(unit: tuple[Item, str, Trace]) -> Callable[[interp.Model], Records]:
            item, name, trace = unit
            more = self.more(item)
            if name in PROBES and (wanted := PROBES[name].takes_others):
                more = {**more, "others": list(islice(self._others(item), wanted))}
            return lambda m: storable(measure(name, m, item.of, trace, self.config, screens, more))

        def keep(ended: Iterable[tuple[tuple[Item, str, Trace], Records | Exception]]) -> None:
            nonlocal seconds, since
            # all that are left have shared the packs since then
            now = time.perf_counter()
            seconds, since = seconds + (now - since) / len(left), now
            for (item, name, trace), result in ended:
                if not isinstance(result, Exception):
                    result = with_writer(model, result)
                if isinstance(result, NoRoom):
                    seed = self.config.seed
                    result = storable([record(trace, name, "", seed, excluded=NO_ROOM)])
                self.begin(model.name, item, name)
                self.keep(item, name, result, seconds)
                left.remove((item, name, trace))
            self.meter.tick()

        def work(units: Sequence[tuple[Item, str, Trace]]) -> None:
            now = [unit for unit in units if unit in left]
            second, jobs = sum(id(item) in first for item, *_ in now), [job(unit) for unit in now]
            side_by_side(model, jobs, second, lambda of: keep((now[i], r) for i, r in of.items()))

        self.together(model, units, work, lambda *one: keep([one]), lambda _: [*left])


def written_for(
    config: TracesConfig, model: interp.Model, store: Store
) -> AbstractContextManager[None]:
    """A context in which the texts that probes of a model need are written as `generation` says.

    Raises:
        UserError: the backend is not available.
    """
    section = writers.writing(config)
    if not section.probes or section.backend == "here":
        return nullcontext()
    return written_by(section, model, config.model, store, writers.room_beside(config, model))


def with_writer(model: interp.Model, records: Records) -> Records:
    """Records with `texts_by`, the software that wrote texts (but for calls with edits) in the
    model's place; unchanged where none has written any."""
    writer = model.writer
    if writer is None or (isinstance(writer, StartedLate) and not writer.has_started):
        return records
    by = writer.describe()
    name = " ".join(filter(None, (by["backend"], by.get("vllm"))))
    return [record | {"texts_by": name} for record in records]


def trace_settings(config: TracesConfig) -> TraceSettings:
    """The settings by which a run's traces are made."""
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
        groups=steps.groups,
        conclusion=steps.conclusion,
    )


MIXED = 4
"""Number of items whose messages are asked in turn."""


class ApiProbes:
    """Probes of one API model: everything that it is asked about its traces."""

    def __init__(self, work: Worker[Item], writer: ApiJudge, config: TracesConfig) -> None:
        """
        Args:
            work: worker that stores the records.
        """
        self.work = work
        self.writer = writer
        self.name = name = API + writer.name
        self.config = config.of(name)
        self.ids = UnitIds(schema=SCHEMA, model=name, api=api_decides(config))
        self.failed: dict[str, str] = {}
        """Unit of a missing reply -> why there is none."""
        self.done: set[Key] = set()
        """Units of probes that were taken, or failed, since this start."""

    def take_all(
        self, items: Sequence[Item], write: Callable[[Sequence[Item]], None] = lambda items: None
    ) -> None:
        """Call `write` and then `take`, for a few items at a time.

        Raises:
            BudgetSpent, UserError: as for `ApiJudge.ask_all`; replies so far are stored.
        """
        at_once = AT_ONCE * self.config.api.max_connections
        for start in range(0, len(items), at_once):
            together = items[start : start + at_once]
            write(together)
            self.take(together)

    def take(self, items: Sequence[Item]) -> None:
        """Take all probes whose replies are there, ask for the messages of the others, and repeat.

        Raises:
            BudgetSpent, UserError: as for `ApiJudge.ask_all`; replies so far are stored.
        """
        share = 0.0
        while True:
            wanted, waiting = self._take_ready(items, share)
            if not wanted:
                return
            self.work.begin(self.name, *waiting[0])
            began = time.perf_counter()
            try:
                self._fetch(wanted)
            except (BudgetSpent, UserError, KeyboardInterrupt):
                # probes that are complete by now need not wait for the next start
                self._take_ready(items, (time.perf_counter() - began) / len(waiting))
                raise
            share = (time.perf_counter() - began) / len(waiting)

    def _fetch(self, wanted: dict[str, tuple[Item, Message]]) -> None:
        """Ask the messages `wanted` (unit -> item and message), and store the replies."""

        def keep(writing: Writing, reply: Reply) -> None:
            unit = writing.id
            item, message = wanted[unit]
            if problem := no_reply(reply):
                self.failed[unit] = problem
                return
            record = reply_record(self.name, item.question, message, reply, self.config.seed)
            self.work.store.add(unit, _key(item, unit), storable([record]))
            self.work.meter.tick()

        asked = [(unit, wanted[unit][1]) for unit in _mixed({u: i for u, (i, _) in wanted.items()})]
        self.writer.ask_all([Writing(unit, m.user, m.system, m.before) for unit, m in asked], keep)

    def _take_ready(
        self, items: Sequence[Item], share: float
    ) -> tuple[dict[str, tuple[Item, Message]], list[tuple[Item, str]]]:
        """Take every probe whose replies are all there.

        Args:
            share: seconds per probe that its replies took.

        Returns:
            Unit -> item and message still to be asked, and the (item, probe) that need them.
        """
        wanted: dict[str, tuple[Item, Message]] = {}
        waiting = []
        for item in items:
            if not self.work.index.is_done(item.key(TRACE), item.units[TRACE]):
                continue
            lacking = [n for n in self.work.missing(item) if item.key(n) not in self.done]
            if not lacking:
                continue
            trace = to_trace(self.work.index.records(item.key(TRACE))[0])
            for name in lacking:
                records = self._measured(item, name, trace)
                if isinstance(records, dict):
                    wanted |= records
                    waiting.append((item, name))
                    continue
                self.done.add(item.key(name))
                self.work.begin(self.name, item, name)
                self.work.keep(item, name, records, share)
        return wanted, waiting

    def _measured(
        self, item: Item, name: str, trace: Trace
    ) -> dict[str, tuple[Item, Message]] | list[dict[str, Any]] | Exception:
        """The records of a probe; or unit -> message to be asked first; or the error."""
        model = self._model(item)
        try:
            return storable(self.measure(model, item, name, trace))
        except Unanswered as unanswered:
            units = {self._unit(item, m): (item, m) for m in unanswered.messages}
        except Exception as error:
            return error
        lost = [self.failed[unit] for unit in units if unit in self.failed]
        return RuntimeError(f"{len(lost)} of its replies failed: {lost[0]}") if lost else units

    def measure(self, model: TextModel, item: Item, name: str, trace: Trace) -> Records:
        """The records of a stage of a trace; a study whose stages are no probes overrides this.

        Raises:
            Unanswered: the API model has still to be asked.
        """
        return measure(name, model, item.of, trace, self.config)

    def _model(self, item: Item) -> TextModel:
        return TextModel(self.name, self._finder(item))

    def _finder(self, item: Item) -> Callable[[Message], Reply | None]:
        index = self.work.index

        def find(message: Message) -> Reply | None:
            unit = self._unit(item, message)
            key = _key(item, unit)
            return Reply.of_record(index.records(key)[0]) if index.is_done(key, unit) else None

        return find

    def _unit(self, item: Item, message: Message) -> str:
        return self.ids.of(task=item.task, item=item.item, asked=message.decides)


def _key(item: Item, unit: str) -> Key:
    return (API_REPLIES, item.model, item.task, f"{item.item} {unit[:12]}")


def _mixed(of: Mapping[str, Item]) -> list[str]:
    """Units in the order of their items, with those of a few items interleaved: an item whose
    messages all fail is then not taken for a server that is down."""
    n = Counter(item.units[TRACE] for item in of.values())
    groups = max(1, len(n) // MIXED)
    group = {trace: i * groups // len(n) for i, trace in enumerate(n)}
    turns: Counter[str] = Counter()
    place = {}
    for unit, item in of.items():
        trace = item.units[TRACE]
        place[unit] = (group[trace], (turns[trace] + 0.5) / n[trace])
        turns[trace] += 1
    return sorted(place, key=lambda unit: place[unit])
