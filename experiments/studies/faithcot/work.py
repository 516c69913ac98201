"""Workers of a run of FaithCoT-Bench: answers to shuffled options and to edited chains, written
edits, and judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from faithscope import interp
from faithscope.experiments.config.api import API, ApiSection
from faithscope.experiments.config.judge import JudgeConfig, Reading
from faithscope.experiments.data.traces import to_trace
from faithscope.experiments.engine.models.asking import Asker, OneAsk
from faithscope.experiments.engine.models.judges import stage_of
from faithscope.experiments.engine.models.writing import Start, Unit
from faithscope.experiments.engine.planfile import cut_again
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.traces.units import TRACE, Item
from faithscope.experiments.engine.traces.work import ApiProbes, TraceWork
from faithscope.experiments.engine.worker import Records, Worker
from faithscope.experiments.studies.faithcot import judging
from faithscope.experiments.studies.faithcot.shuffling import SHUFFLED
from faithscope.experiments.studies.faithcot.units import (
    EDITED,
    WRITTEN,
    Batches,
    FaithUnits,
    Pair,
    reordered,
)
from faithscope.interp.generation import Generation
from faithscope.interp.language import Speaks
from faithscope.interp.prompts import Prompt
from faithscope.interventions import Step, Trace
from faithscope.probes.judge.form import Ask, Reply, Writing
from faithscope.probes.record import Record
from faithscope.probes.text_model import TextModel


class Shuffling(TraceWork):
    """Worker that asks the questions again with their options shuffled."""

    texts = (SHUFFLED,)

    def __init__(self, whole: FaithUnits, batches: Batches, store: Store, meter: Meter) -> None:
        super().__init__(whole.config, batches, store, meter)
        self.whole = whole
        self.stages = (SHUFFLED,)

    def label(self, item: Item, stage: str) -> str:
        return "option shuffling"

    def stages_of(self, model: str) -> Sequence[str]:
        return self.stages

    def do(self, model: str) -> None:
        if model.startswith(API):
            lacking = [i for batch in self.batches[model] for i in batch if self.missing(i)]
            self.write_by_api(model, lacking)
        else:
            self.write(model)

    def prompt(self, speaks: Speaks, unit: Unit[Item]) -> Prompt:
        return super().prompt(speaks, (self._asked(unit[0]), TRACE))

    def conversation(self, unit: Unit[Item]) -> Writing:
        return super().conversation((self._asked(unit[0]), unit[1]))

    def text_records(
        self, speaks: Speaks, start: Start[Item, Prompt], text: Generation, by: Mapping[str, str]
    ) -> Records:
        asked = replace(start, item=self._asked(start.item))
        return self._about(start.item, super().text_records(speaks, asked, text, by))

    def reply_records(self, unit: Unit[Item], writing: Writing, reply: Reply) -> Records:
        asked = (self._asked(unit[0]), unit[1])
        return self._about(unit[0], super().reply_records(asked, writing, reply))

    def _asked(self, item: Item) -> Item:
        return replace(item, question=reordered(item.question, self.whole.config).question)

    def _about(self, item: Item, records: Records) -> Records:
        """Trace records marked as this stage's, with the order of the options."""
        order = list(reordered(item.question, self.whole.config).order)
        return [record | {"probe": SHUFFLED, "order": order} for record in records]


class _OfTraces(Asker[Pair]):
    """Worker that asks models about stored traces; each model has one stage."""

    def __init__(
        self,
        whole: FaithUnits,
        stages: Mapping[str, str],
        batches: Batches,
        judge: JudgeConfig,
        store: Store,
        meter: Meter,
    ) -> None:
        """
        Args:
            stages: model that is asked -> its stage.
        """
        self.whole, self.of_model, self.seed = whole, dict(stages), whole.config.seed
        readings: dict[str, Reading] = dict.fromkeys(stages.values(), "generated")
        super().__init__(whole.config, batches, judge, readings, store, meter)

    def stages_of(self, model: str) -> Sequence[str]:
        return (self.of_model[model],)

    def ready(self, item: Pair) -> bool:
        return self.index.is_done(item.key(TRACE), item.units[TRACE])

    def trace(self, item: Pair) -> Trace:
        return to_trace(self.index.records(item.key(TRACE))[0])

    def sub_batches(self, batch: Sequence[Pair]) -> list[list[Pair]]:
        """Sub-batches without excluded traces, about which nothing is asked."""
        asked = [i for i in batch if self.index.excluded(i.key(TRACE)) is None]
        return [asked] if asked else []


def _judges_batches(whole: FaithUnits, batches: Batches, judges: Sequence[str]) -> Batches:
    assert whole.config.judge is not None
    cut = cut_again(batches, whole.config.judge.batch_size)
    return dict.fromkeys(judges, cut)


class Judging(_OfTraces):
    """Worker that puts one form to every judge."""

    def __init__(
        self, whole: FaithUnits, base: str, batches: Batches, store: Store, meter: Meter
    ) -> None:
        self.base, judges = base, whole.config.judges
        assert whole.config.judge is not None
        stages = {judge: stage_of(base, judge) for judge in judges}
        cut = _judges_batches(whole, batches, judges)
        super().__init__(whole, stages, cut, whole.config.judge, store, meter)

    def asks(self, item: Pair) -> list[tuple[tuple[Trace, int | None], Ask]]:
        trace = self.trace(item)
        asks = judging.asks_of(item, trace, self.whole.forms[self.base], self.base)
        return [((trace, step), ask) for step, ask in asks]

    def record(self, asked: OneAsk[Pair], reply: Reply) -> Record:
        trace, step = asked.about
        return judging.judged_record(
            trace, asked.model, self.base, step, asked.ask, reply, self.seed
        )


class EditWriting(_OfTraces):
    """Worker that has the judge model write edited steps."""

    def __init__(self, whole: FaithUnits, batches: Batches, store: Store, meter: Meter) -> None:
        writer = str(whole.config.writer)
        assert whole.config.judge is not None
        cut = _judges_batches(whole, batches, [writer])
        # An edited step is plain text, whatever format verdicts are requested in.
        how = whole.config.judge.model_copy(update={"structured": "prompt"})
        super().__init__(whole, {writer: WRITTEN}, cut, how, store, meter)

    def asks(self, item: Pair) -> list[tuple[tuple[Trace, str, Step], Writing]]:
        trace = self.trace(item)
        wanted = judging.writings(item, trace, self.whole.config.edits.steps, self.seed)
        return [((trace, edit, step), writing) for edit, step, writing in wanted]

    def record(self, asked: OneAsk[Pair], reply: Reply) -> Record:
        trace, edit, step = asked.about
        model, writing = asked.model, asked.ask
        return judging.written_record(trace, model, edit, step, writing, reply, self.seed)


class EditedAnswers(Worker[Item]):
    """Worker that collects the subject's answers after edited chains."""

    def __init__(self, whole: FaithUnits, batches: Batches, store: Store, meter: Meter) -> None:
        c = whole.config
        super().__init__(batches, (EDITED,), c.spend, c.token_budget, store, meter)
        self.config = c

    def asked(self) -> Mapping[str, ApiSection]:
        return dict.fromkeys(self.todo, self.config.api)

    def do(self, model: str) -> None:
        ready = [
            item
            for item in self.lacking(model, EDITED)
            if self.index.is_done(item.key(WRITTEN), item.units[WRITTEN])
        ]
        if not ready:
            return
        if model.startswith(API):
            _EditedOverApi(self, self.apis[model], self.config).take_all(ready)
            return
        subject = self.load(model, self.config.model)
        self.each(
            subject, ready, EDITED, lambda item: self.answers(subject, item, self.trace(item))
        )

    def trace(self, item: Item) -> Trace:
        return to_trace(self.index.records(item.key(TRACE))[0])

    def answers(self, model: interp.Model | TextModel, item: Item, trace: Trace) -> Records:
        written = self.index.records(item.key(WRITTEN))
        return judging.edited_answers(model, item.of, trace, written, self.config.seed)


class _EditedOverApi(ApiProbes):
    """Answers of an API model after edited chains; a request that a probe also makes is sent
    once."""

    def measure(self, model: TextModel, item: Item, name: str, trace: Trace) -> Records:
        assert isinstance(self.work, EditedAnswers)
        return self.work.answers(model, item, trace)
