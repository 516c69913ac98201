"""Asking of models about items, as judges or writers, here or through an API.

A unit may hold several asks; it is stored once all of them are answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from faithscope.experiments.config.api import API, SpendConfig
from faithscope.experiments.config.judge import JudgeConfig, Reading
from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.models.judges import answered, open_judge, writing_judge
from faithscope.experiments.engine.models.judging import NOT_ASKED, Judging
from faithscope.experiments.engine.planfile import Planned, is_left_out
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import API_REPLIES, Key, storable
from faithscope.experiments.engine.worker import Worker
from faithscope.probes.judge.api import ApiJudge
from faithscope.probes.judge.form import Judge, Reply, no_reply
from faithscope.probes.record import Record, head

if TYPE_CHECKING:
    from faithscope import interp

_AT_ONCE = 512
"""Number of items whose asks to a server, or to vLLM, are in memory together."""
Item = TypeVar("Item", bound=Planned)


class AskingConfig(Protocol):
    """The settings of a config besides those of judges."""

    @property
    def seed(self) -> int: ...
    @property
    def spend(self) -> SpendConfig: ...
    @property
    def token_budget(self) -> int | None: ...


class Asker(Worker[Item]):
    """One worker's part of asking models about items, as a `Judging` declares it."""

    def __init__(
        self,
        judging: Judging[Item],
        config: AskingConfig,
        batches: Mapping[str, Sequence[Sequence[Item]]],
        store: Store,
        meter: Meter | None = None,
        after_judging: Sequence[str] = (),
    ) -> None:
        """
        Args:
            batches: model -> this worker's items, in batches that are asked together.
            after_judging: stages in which a local judge's inside is read once it has judged.
        """
        stages = dict.fromkeys(s for model in batches for s in judging.stages[model])
        every = (*stages, *after_judging)
        super().__init__(batches, every, config.spend, config.token_budget, store, meter)
        self.config, self.judging, self.judge = config, judging, judging.how
        self.last_stages = tuple(after_judging)

    def stages_of(self, model: str) -> Sequence[str]:
        return (*self.judging.stages[model], *self.last_stages)

    def record(
        self, item: Item, prompt: ItemPrompt, judge: str, stage: str, reply: Reply
    ) -> Record:
        """The record of a model's reply that is stored."""
        return self.judging.record(item, prompt, judge, stage, reply)

    def asked_later(self) -> Mapping[str, JudgeConfig]:
        """Judges that a later phase will need, checked now so that a missing key is found before
        anything is paid for."""
        return {}

    def loaded(self, model: interp.Model) -> None:
        """Hook: checks a local model before it is asked anything.

        Raises:
            UserError: the model cannot do what the config asks of it.
        """
        return

    def sub_batches(self, batch: Sequence[Item]) -> Sequence[Sequence[Item]]:
        """Splits a batch into sub-batches that may share forward passes."""
        return [batch]

    def after_judging(self, model: interp.Model) -> None:
        """Hook: runs after a local model has answered all its prompts."""
        return

    def load_settings(self, name: str) -> JudgeConfig:
        """The settings by which a local model's weights are loaded."""
        return self.judge

    def asked(self) -> Mapping[str, JudgeConfig]:
        return {**self.asked_later(), **dict.fromkeys(self.todo, self.judge)}

    def do(self, model: str) -> None:
        readings: dict[str, Reading] = dict(self.judging.stages[model])
        if model.startswith(API):
            for stage in readings:
                if items := self._to_ask(model, stage):
                    self.begin(model, items[0], stage)
                    self._ask(self.apis[model], model, stage, items)
            return
        if self.judge.backend != "here":
            written = [stage for stage, reading in readings.items() if reading == "generated"]
            self._ask_elsewhere(model, [stage for stage in written if self.lacking(model, stage)])
            readings = {stage: r for stage, r in readings.items() if stage not in written}
            if not any(self.lacking(model, s) for s in self.stages_of(model) if s not in written):
                return
        loaded = self.load(model, self.load_settings(model))
        self.loaded(loaded)
        for stage, reading in readings.items():
            judge = open_judge(loaded, reading, self.judge, self.config.seed)
            for batch in self.batches[model]:
                # the whole batch, even if some units are stored: a batch of other items could
                # change a reply
                here = [i for i in batch if stage in i.units and self._is_asked(i, model, stage)]
                for part in self.sub_batches(here):
                    if any(stage in self.missing(i) for i in part):
                        self.begin(model, part[0], stage)
                        self._ask_together(loaded, judge, stage, part)
        self.after_judging(loaded)

    def _ask_elsewhere(self, model: str, stages: Sequence[str]) -> None:
        """Let servers, or vLLM, write the missing units of these stages; no weights are read here.

        Raises:
            UserError: the model, its server or vLLM is not available.
        """
        if not stages:
            return
        # loaded weights would share the device with vLLM
        self.weights.drop_others()
        from faithscope.experiments.engine.models.loading import open_backend

        language, backend = open_backend(self.judge, model, self.load_settings(model))
        try:
            about: dict[str, Any] = {f"replies_{k}": v for k, v in backend.describe().items()}
            self.store.note_model(model, about | {"cautions": list(language.cautions)})
            judge = writing_judge(language, self.judge, self.config.seed, backend)
            for stage in stages:
                self._ask_in_parts(judge, model, stage)
        finally:
            backend.close()

    def _ask_in_parts(self, judge: Judge, model: str, stage: str) -> None:
        """Ask a judge that makes its own batches about all items that lack a stage."""
        items = self._to_ask(model, stage)
        for at in range(0, len(items), _AT_ONCE):
            part = items[at : at + _AT_ONCE]
            self.begin(model, part[0], stage)
            self._ask(judge, model, stage, part)

    def _to_ask(self, model: str, stage: str) -> list[Item]:
        return [i for i in self.lacking(model, stage) if self._is_asked(i, model, stage)]

    def _is_asked(self, item: Item, model: str, stage: str) -> bool:
        """Whether an item can be asked about now: what it needs is stored and does not exclude it.
        An item that is not ready is asked about at another start."""
        ready = self.judging.is_ready(self.index, item, model, stage)
        return ready and not is_left_out(self.index, item, stage)

    def _ask_together(
        self,
        model: interp.Model,
        judge: Judge,
        stage: str,
        items: Sequence[Item],
    ) -> None:
        self.together(
            model,
            items,
            lambda part: self._ask(judge, model.name, stage, part),
            lambda item, error: self.keep(item, stage, error),
            lambda part: [i for i in part if stage in self.missing(i)],
        )

    def _key_of_reply(self, model: str, stage: str, item: Item, place: int) -> Key:
        """The key of one reply of an API model to a unit of several asks. The reply is stored as it
        comes, so that it is not paid for again if a run ends before the others are there."""
        return (API_REPLIES, model, item.task, f"{item.units[stage]}.{place}")

    def _ask(self, judge: Judge, model: str, stage: str, items: Sequence[Item]) -> None:
        by_ask: dict[str, tuple[Item, int]] = {}
        replies: dict[int, dict[int, Reply]] = {}
        asks_of: dict[int, Sequence[ItemPrompt]] = {}

        def store(item: Item) -> None:
            prompts, so_far = asks_of.pop(id(item)), replies.pop(id(item))
            of = (self.record(item, p, model, stage, so_far[i]) for i, p in enumerate(prompts))
            self.keep(item, stage, storable(list(of)))

        def asks_about(item: Item) -> list[Any]:
            prompts = asks_of[id(item)] = self.judging.asks(self.index, item, model, stage)
            so_far: dict[int, Reply] = {}
            replies[id(item)] = so_far
            asked = []
            for place, prompt in enumerate(prompts):
                key = self._key_of_reply(model, stage, item, place)
                if prompt.lacks:
                    so_far[place] = NOT_ASKED
                elif self.index.is_done(key, key[-1]):
                    so_far[place] = Reply.of_record(self.index.records(key)[0])
                else:
                    by_ask[prompt.ask.name] = (item, place)
                    asked.append(prompt.ask)
            if not asked and stage in self.missing(item):
                store(item)
            return asked

        def keep(ask: Any, reply: Reply) -> None:
            item, place = by_ask.pop(ask.name)
            so_far, asks = replies[id(item)], asks_of[id(item)]
            so_far[place] = reply
            whole = len(so_far) == len(asks)
            failed = (r for r in so_far.values() if r.outcome == "failed" and r is not NOT_ASKED)
            lost = next(failed, None)
            if model.startswith(API) and not no_reply(reply) and not (whole and lost is None):
                # store also the last reply if another was lost: the unit fails, and is asked again
                key = self._key_of_reply(model, stage, item, place)
                about = {"task": item.task, "item": item.item, "model": None, "judge": model}
                record = head(**about, dataset=item.task, probe=stage, seed=self.config.seed)
                self.store.add(key[-1], key, storable([record | answered(ask, reply)]))
            if not whole or stage not in self.missing(item):
                return
            if lost:
                self.keep(item, stage, RuntimeError(lost.problem))
                return
            store(item)

        everything = (ask for item in items for ask in asks_about(item))
        if (first := next(everything, None)) is None:
            return
        if isinstance(judge, ApiJudge):
            # made when a connection is free, so that few are in memory and no connection idles
            judge.ask_all(chain([first], everything), keep)
        else:
            judge.ask_all([first, *everything], keep)
