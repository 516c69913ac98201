"""One worker's part of a run: models one after the other, and what holds whatever they do.

Here are the loops that every stage of every study needs: a batch that does not fit in memory, one
bad item in it, a device that fails, a spent budget, progress, and storing each unit as it ends.
What is stored is never done again. What a stage does stands with its study.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch

from faithscope import interp
from faithscope.experiments.config.api import ApiSection, SpendConfig
from faithscope.experiments.engine.models.account import budget_of
from faithscope.experiments.engine.models.judges import checked_apis
from faithscope.experiments.engine.models.loading import Weights, WeightSettings, load_for_run
from faithscope.experiments.engine.planfile import Planned, failures, is_finished, missing
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.provenance import check_same
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import storable, why_failed
from faithscope.interp.errors import UserError
from faithscope.interp.memory import within_memory
from faithscope.probes.judge.spend import BudgetSpent

if TYPE_CHECKING:
    from faithscope.probes.judge.api import ApiJudge

Records = list[dict[str, Any]]
Item = TypeVar("Item", bound=Planned)
T = TypeVar("T")


class Worker(ABC, Generic[Item]):
    """One worker's part of a run, or of one phase of it."""

    has_outputs = True
    """Whether there are tables and a page to be made of what it does."""

    def __init__(
        self,
        batches: Mapping[str, Sequence[Sequence[Item]]],
        stages: Sequence[str],
        spend: SpendConfig,
        token_budget: int | None,
        store: Store,
        meter: Meter | None = None,
    ) -> None:
        """
        Args:
            batches: model -> this worker's items, by batches that may share forward passes.
            stages: in the order in which a model does them.
            token_budget: most tokens whose keys and values are held at once; None suits the
                device.
        """
        self.batches = batches
        self.stages = tuple(stages)
        # several judges are asked about the same items
        self.items = list({id(i): i for of in batches.values() for b in of for i in b}.values())
        self.spend, self.token_budget = spend, token_budget
        self.store, self.index = store, store.index
        self.meter = meter or Meter()
        self.weights = Weights()
        """What is loaded; workers of one process may share it."""
        self.shares_weights = False
        """Whether what is loaded at the end is left for a worker that goes on with it."""
        self.problems: list[str] = []
        """A line per model that could not be used."""
        self.stopped = ""
        """Why it ended before all was done, though nothing is wrong."""
        self.apis: dict[str, ApiJudge] = {}
        self._handles: dict[tuple[str, str], int] = {}
        self._model = ""
        """Which model is at work."""
        self._last = 0.0
        """When the last unit was stored."""

    @abstractmethod
    def do(self, model: str) -> None:
        """Do everything that is missing of one model."""

    @abstractmethod
    def asked(self) -> Mapping[str, ApiSection]:
        """How each model is asked that may be behind an API and still has something to do."""

    def label(self, item: Item, stage: str) -> str:
        """What the progress bar calls a stage of an item."""
        return stage.partition(".")[0].replace("_", " ")

    def stages_of(self, model: str) -> Sequence[str]:
        """The stages that one model does."""
        return self.stages

    def missing(self, item: Item) -> list[str]:
        """The stages of an item that are still to be done here."""
        return [stage for stage in missing(self.index, item) if stage in self.stages]

    def lacking(self, model: str, stage: str) -> list[Item]:
        """The items of a model that still lack a stage, in order."""
        return [i for batch in self.batches[model] for i in batch if stage in self.missing(i)]

    @property
    def todo(self) -> list[str]:
        """The models that still have something to do."""
        return [m for m in self.batches if any(self.lacking(m, s) for s in self.stages_of(m))]

    def go(self) -> None:
        """Do all that is missing, model by model, none at the cost of another: one that cannot be
        used goes into `problems`, a spent budget into `stopped`, and those after it are done.

        Raises:
            UserError: as `check`, before anything is done; or no model could be used.
        """
        self.check()
        self.announce()
        models = self.todo
        with self.meter:
            for model in models:
                self.weights.drop_others(model)
                try:
                    self.do(model)
                except BudgetSpent as spent:
                    # models here cost nothing: they go on
                    self.stopped += f"{'; ' if self.stopped else ''}{spent}"
                    self.store.note(f"{spent} (unanswered: {spent.unanswered})")
                except UserError as error:
                    # a model that cannot be used must not cost the night of the others
                    if len(models) == 1:
                        raise
                    self.problems.append(str(error))
                    self.meter.say(f"left out: {error}")
        if not self.shares_weights:
            self.weights.drop_others()
        if self.problems and len(self.problems) == len(models):
            raise UserError("\n".join(dict.fromkeys(self.problems)))

    def check(self) -> None:
        """See that every model behind an API can be asked.

        Raises:
            UserError: one lacks its key, package, address or price; a line for each.
        """
        asked = self.asked()
        self.budget = budget_of(self.spend, self.store, asked)
        self.apis = checked_apis(asked, self.budget)

    def announce(self) -> None:
        """Tell the meter what is to come, once."""
        if self._handles:
            return
        for line in self.index.losses():
            self.meter.say(line)
        for model in self.todo:
            short, tiny = model.rpartition("/")[2], model.startswith("planted:")
            for stage in self.stages_of(model):
                labels = Counter(self.label(i, stage) for i in self.lacking(model, stage))
                for label, n in labels.items():
                    handle = self.meter.expect(f"{short} · {label}", n, stage, tiny)
                    self._handles[model, label] = handle

    def begin(self, model: str, item: Item, stage: str) -> None:
        """Say what a model does next."""
        self._model = model
        handle = self._handles.get((model, self.label(item, stage)))
        if handle is not None:
            self.meter.begin(handle)
        self._last = time.perf_counter()

    def keep(
        self,
        item: Item,
        stage: str,
        result: Records | Exception,
        seconds: float | None = None,
    ) -> None:
        """Store what a stage of an item gave, or why it gave nothing.

        Args:
            seconds: that it took; None for those since the last unit was stored.

        Raises:
            UserError: the device has failed and takes no more work.
        """
        failed = None
        if isinstance(result, Exception):
            failed = why_failed(result)
            self.meter.say(f"failed: {item.task} · {item.item} · {stage}: {failed}")
        if seconds is None:
            seconds = self.since_last()
        self._last = time.perf_counter()
        records = [] if isinstance(result, Exception) else result
        self.store.add(item.units[stage], item.key(stage), records, failed, seconds)
        self.advance(item, stage, seconds)
        if isinstance(result, torch.AcceleratorError):
            raise UserError(
                f"{self._model}: the device failed and takes no more work ({failed}); "
                "run again: it goes on from here"
            )

    def since_last(self) -> float:
        """Seconds since the last unit was stored, or its stage begun."""
        return time.perf_counter() - self._last

    def advance(self, item: Item, stage: str, seconds: float | None = None) -> None:
        """Tell the meter that a stage of an item is done with."""
        handle = self._handles.get((self._model, self.label(item, stage)))
        if handle is not None:
            self.meter.at(handle)
            self.meter.advance(seconds=seconds)

    def load(
        self, name: str, settings: WeightSettings, trust_remote_code: bool = False
    ) -> interp.Model:
        """The model, as the run holds its weights: read once for all that is done with it.

        Raises:
            UserError: it cannot be loaded, lacks what the config asks of its template, or would
                finish items that were begun otherwise (`provenance.check_same`).
        """

        def read() -> interp.Model:
            return load_for_run(
                name, settings, self.token_budget, self.meter, self.store, trust_remote_code
            )

        model = self.weights.of(name, settings, trust_remote_code, read)
        if not self.store.mixed:
            check_same(self.store.run_dir, self.index, self.items, name, self.store.session)
        # says so at once where the config asks of its template what that cannot give
        model.prompt("?", thinking=settings.thinking)
        return model

    def fitting(self, model: interp.Model, work: Callable[[], T]) -> T:
        """What `work` gives, done with half the token budget as often as memory runs out."""

        def on_less(budget: int) -> None:
            line = f"{model.name}: out of memory; goes on with a token budget of {budget}"
            self.meter.say(line)
            self.store.note(line)

        return within_memory(model, work, on_less)

    def together(
        self,
        model: interp.Model,
        items: Sequence[T],
        work: Callable[[Sequence[T]], None],
        failed: Callable[[T, Exception], None],
        left: Callable[[Sequence[T]], Sequence[T]],
        fatal: type[Exception] | tuple[type[Exception], ...] = UserError,
    ) -> None:
        """Do a batch in shared forward passes; where that fails, one by one: one bad item must
        not take the others along.

        Args:
            failed: told of the one that fails by itself.
            left: of some, those that are not stored yet.
            fatal: errors that say that the model itself cannot be used.
        """
        try:
            self.fitting(model, lambda: work(items))
        except fatal:
            raise
        except Exception as error:
            if len(items) == 1:
                failed(items[0], error)
                return
            for one in left(items):
                self.together(model, [one], work, failed, left, fatal)

    def each(
        self,
        model: interp.Model,
        items: Iterable[Item],
        stage: str,
        measure: Callable[[Item], Records],
    ) -> None:
        """Measure items one by one, and store each."""
        for item in items:
            self.begin(model.name, item, stage)
            self.keep(item, stage, self.result(model, lambda item=item: measure(item)))

    def result(self, model: interp.Model, measure: Callable[[], Records]) -> Records | Exception:
        """What measuring gives, or the error in its place."""
        try:
            return self.fitting(model, lambda: storable(measure()))
        except Exception as error:
            return error

    def failures(self) -> list[str]:
        """A line per unit that failed: what, where, why."""
        return [
            f"{i.model} · {i.task} · {i.item} · {stage}: {reason}"
            for i in self.items
            for stage, reason in failures(self.index, i)
        ]

    def done(self) -> str:
        """How far it is, in words."""
        finished = sum(is_finished(self.index, i) for i in self.items)
        return f"{finished} of {len(self.items)} items are done"
