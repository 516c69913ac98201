"""Workers for detectors: answers to shuffled options, and to chains that a judge edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from faithscope import interp
from faithscope.experiments.config.api import API, ApiSection
from faithscope.experiments.data.traces import to_trace
from faithscope.experiments.engine.models.writing import Start, Unit
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.traces.units import TRACE, Item
from faithscope.experiments.engine.traces.work import (
    ApiProbes,
    TraceWork,
    with_writer,
    written_for,
)
from faithscope.experiments.engine.worker import Records, Worker
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.detectors.edits import edited_answers
from faithscope.experiments.studies.slrc.detectors.units import reordered
from faithscope.experiments.studies.slrc.stages import EDITED, SHUFFLED, WRITTEN
from faithscope.interp.generation import Generation
from faithscope.interp.language import Speaks
from faithscope.interp.prompts import Prompt
from faithscope.interventions import Trace
from faithscope.probes.judge.form import Reply, Writing
from faithscope.probes.text_model import TextModel

Batches = Mapping[str, Sequence[Sequence[Item]]]
"""Model -> batches of the items that one worker handles."""


class Shuffling(TraceWork):
    """Worker that asks the questions again with their options shuffled."""

    texts = (SHUFFLED,)

    def __init__(
        self,
        config: RunConfig,
        batches: Mapping[str, Sequence[Sequence[Item]]],
        store: Store,
        meter: Meter,
    ) -> None:
        super().__init__(config, batches, store, meter)
        self.config: RunConfig = config
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
        return replace(item, question=reordered(item.question, self.config).question)

    def _about(self, item: Item, records: Records) -> Records:
        """Trace records marked as this stage's, with the order of the options."""
        order = list(reordered(item.question, self.config).order)
        return [record | {"probe": SHUFFLED, "order": order} for record in records]


class EditedAnswers(Worker[Item]):
    """Worker that collects the subject's answers after edited chains."""

    def __init__(
        self,
        config: RunConfig,
        batches: Mapping[str, Sequence[Sequence[Item]]],
        store: Store,
        meter: Meter,
    ) -> None:
        spend, budget = config.spend, config.token_budget
        super().__init__(batches, (EDITED,), spend, budget, store, meter)
        self.config = config

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
        trace = lambda item: to_trace(self.index.records(item.key(TRACE))[0])  # noqa: E731
        with written_for(self.config, subject, self.store):
            self.each(subject, ready, EDITED, lambda item: self.answers(subject, item, trace(item)))

    def answers(self, model: interp.Model | TextModel, item: Item, trace: Trace) -> Records:
        written = self.index.records(item.key(WRITTEN))
        records = edited_answers(model, item.of, trace, written, self.config.seed)
        return records if isinstance(model, TextModel) else with_writer(model, records)


class _EditedOverApi(ApiProbes):
    """Answers of an API model after edited chains; a request that a probe also makes is sent
    once."""

    def measure(self, model: TextModel, item: Item, name: str, trace: Trace) -> Records:
        assert isinstance(self.work, EditedAnswers)
        return self.work.answers(model, item, trace)
