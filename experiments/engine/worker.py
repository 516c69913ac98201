"""`Worker`: the base of all workers, which do one shard of a run, model by model.

The base has what every stage of every study needs: it halves the token budget when memory runs out,
retries the items of a failed batch one by one, stops at a failed device or a spent budget, shows
progress, and stores each unit as it ends. Stored units are never redone. What a stage measures is
in the study's subclass.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from faithscope.experiments.config.api import API, ApiSection, SpendConfig
from faithscope.experiments.engine.memory_kills import n_kills
from faithscope.experiments.engine.models.judges import checked_apis
from faithscope.experiments.engine.models.weights import Weights, WeightSettings
from faithscope.experiments.engine.planfile import Planned, failures, is_finished, missing
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.provenance import check_same
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import storable, why_failed
from faithscope.interp.backends import BackendLost
from faithscope.interp.errors import UserError
from faithscope.probes.judge.spend import BudgetSpent

if TYPE_CHECKING:
    from faithscope import interp
    from faithscope.probes.judge.api import ApiJudge

Records = list[dict[str, Any]]
Item = TypeVar("Item", bound=Planned)
T = TypeVar("T")


class Worker(ABC, Generic[Item]):
    """Base of workers: does the items of one shard of a run, or of one phase of it."""

    has_outputs = True
    """Whether tables and a page can be made from the results."""

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
            batches: model -> this worker's items, in batches that may share forward passes.
            stages: names of the stages, in the order in which a model does them.
            spend: limits on API calls.
            token_budget: maximum number of tokens whose keys and values are held at once; None
                chooses it for the device.
            store: the run folder, opened for this worker.
            meter: the progress meter; None makes one.
        """
        self.batches = batches
        self.stages = tuple(stages)
        # an item may stand in the batches of several judges
        self.items = list({id(i): i for of in batches.values() for b in of for i in b}.values())
        self.spend, self.token_budget = spend, token_budget
        self.store, self.index = store, store.index
        self.meter = meter or Meter()
        self.weights = Weights()
        """The loaded models, which workers of one process may share."""
        self.shares_weights = False
        """Whether the last model stays loaded at the end, for a worker that goes on with it."""
        self.problems: list[str] = []
        """A line per model that could not be used."""
        self.stopped = ""
        """Why the work ended early though nothing is wrong (a spent budget)."""
        self.apis: dict[str, ApiJudge] = {}
        self._handles: dict[tuple[str, str], int] = {}
        self._model = ""
        """Name of the model that is at work."""
        self._last = 0.0
        """Time at which the last unit was stored, or its stage begun."""

    @abstractmethod
    def do(self, model: str) -> None:
        """Do everything that is missing of one model."""

    @abstractmethod
    def asked(self) -> Mapping[str, ApiSection]:
        """Model -> its API settings, for every model that has pending work and may be behind an
        API."""

    def label(self, item: Item, stage: str) -> str:
        """Name of a stage of an item on the progress bar."""
        return stage.partition(".")[0].replace("_", " ")

    def weight(self, stage: str) -> int:
        """Number of progress units that a stage of one item is; its subclass advances the meter by
        all but the last one."""
        return 1

    def stages_of(self, model: str) -> Sequence[str]:
        """The stages that one model does."""
        return self.stages

    def missing(self, item: Item) -> list[str]:
        """The stages of an item that this worker still has to do."""
        return [stage for stage in missing(self.index, item) if stage in self.stages]

    def lacking(self, model: str, stage: str) -> list[Item]:
        """The items of a model that still lack a stage, in order."""
        return [i for batch in self.batches[model] for i in batch if stage in self.missing(i)]

    @property
    def todo(self) -> list[str]:
        """The models with pending work."""
        return [m for m in self.batches if any(self.lacking(m, s) for s in self.stages_of(m))]

    def limit_to(self, doers: Literal["weights", "apis"]) -> None:
        """Leave out the models behind APIs, or those whose weights are here."""
        self.batches = {
            model: batches if model.startswith(API) == (doers == "apis") else []
            for model, batches in self.batches.items()
        }

    def go(self) -> None:
        """Do everything that is missing, model by model.

        A model that cannot be used is noted in `problems`, a spent budget in `stopped`; the models
        after it are still done.

        Raises:
            UserError: `check` fails, before anything is done; or no model could be used.
        """
        self.check()
        self.announce()
        models = self.todo
        with self.meter:
            for model in models:
                if not model.startswith(API):
                    self.weights.drop_others(model)
                try:
                    self.do(model)
                except BudgetSpent as spent:
                    # models here cost nothing, so the loop goes on
                    self.stopped += f"{'; ' if self.stopped else ''}{spent}"
                    self.store.note(str(spent))
                except UserError as error:
                    # a model that cannot be used must not end a long run of the others
                    if len(models) == 1:
                        raise
                    self.problems.append(str(error))
                    self.meter.say(f"left out: {error}")
        if not self.shares_weights:
            self.weights.drop_others()
        if self.problems and len(self.problems) == len(models):
            raise UserError("\n".join(dict.fromkeys(self.problems)))

    def check(self) -> None:
        """Check that every API model with pending work can be asked.

        Raises:
            UserError: a model lacks its key, package, address or price; one line per model.
        """
        self.apis = checked_apis(self.asked(), self.spend, self.store)

    def announce(self) -> None:
        """Announce all pending units to the meter; later calls do nothing."""
        if self._handles:
            return
        for line in self.index.losses():
            self.meter.say(line)
        for model in self.todo:
            short, tiny = model.rpartition("/")[2], model.startswith("planted:")
            for stage in self.stages_of(model):
                lacking = self.lacking(model, stage)
                seconds = max((i.declared(stage).seconds for i in lacking), default=0.0)
                for label, n in Counter(self.label(i, stage) for i in lacking).items():
                    n *= self.weight(stage)
                    handle = self.meter.expect(f"{short} · {label}", n, seconds, tiny)
                    self._handles[model, label] = handle

    def begin(self, model: str, item: Item, stage: str) -> None:
        """Tell the meter which stage of which item a model does next."""
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
        """Store the records of one stage of an item, or the error in their place.

        Args:
            result: the records, or the exception that was raised.
            seconds: time that the stage took; None takes the time since the last unit was stored.

        Raises:
            UserError: `result` shows that the device has failed and takes no more work, or is the
                loss of the backend, which is no fault of the item: nothing is stored.
        """
        if isinstance(result, BackendLost):
            raise result
        failed = None
        if isinstance(result, Exception):
            failed = why_failed(result)
            self.meter.say(f"failed: {item.task} · {item.item} · {stage}: {failed}")
        seconds = self.since_last() if seconds is None else seconds
        self._last = time.perf_counter()
        records = [] if isinstance(result, Exception) else result
        self.store.add(item.units[stage], item.key(stage), records, failed, seconds)
        self.advance(item, stage, seconds)
        torch = sys.modules.get("torch")  # without it no device was at work
        if torch is not None and isinstance(result, torch.AcceleratorError):
            raise UserError(
                f"{self._model}: the device failed and takes no more work ({failed}); "
                "run again: it goes on from here"
            )

    def since_last(self) -> float:
        """Seconds since the last unit was stored, or since `begin`."""
        return time.perf_counter() - self._last

    def advance(self, item: Item, stage: str, seconds: float | None = None) -> None:
        """Tell the meter that a stage of an item has ended."""
        handle = self._handles.get((self._model, self.label(item, stage)))
        if handle is not None:
            self.meter.at(handle)
            self.meter.advance(seconds=seconds)

    def load(
        self, name: str, settings: WeightSettings, trust_remote_code: bool = False
    ) -> interp.Model:
        """Load a model, or return it if it is loaded with these settings.

        Raises:
            UserError: the model cannot be loaded, its chat template lacks what the config asks for,
                or it would finish items that were begun on another device, dtype or library version
                (`provenance.check_same`).
        """

        from faithscope.experiments.engine.models.loading import load_for_run

        def read() -> interp.Model:
            return load_for_run(
                name, settings, self.token_budget, self.meter, self.store, trust_remote_code
            )

        model = self.weights.of(name, settings, trust_remote_code, self._smaller_after_kills(read))
        if not self.store.mixed:
            check_same(self.store.run_dir, self.index, self.items, name, self.store.session)
        # fails at once where the config asks for thinking and the chat template cannot set it
        model.prompt("?", thinking=settings.thinking)
        return model

    def _smaller_after_kills(self, read: Callable[[], interp.Model]) -> Callable[[], interp.Model]:
        """`read` with a token budget that is halved for every time that the machine killed this
        worker for lack of memory."""

        from faithscope.interp.memory import shrink

        def smaller() -> interp.Model:
            model = read()
            if kills := n_kills(self.store.run_dir, self.store.worker):
                shrink(model, kills)
                times = "once" if kills == 1 else f"{kills} times"
                line = (
                    f"{model.name}: this worker was killed {times} for lack of memory; it starts "
                    f"with a token budget of {model.token_budget}"
                )
                self.meter.say(line)
                self.store.note(line)
            return model

        return smaller

    def fitting(self, model: interp.Model, work: Callable[[], T]) -> T:
        """The result of `work`, which is repeated with half the token budget whenever memory runs
        out."""

        from faithscope.interp.memory import within_memory

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
        """Do a batch in shared forward passes; if that fails, do its items one by one, so that one
        bad item does not fail the others.

        Args:
            work: does the given items together.
            failed: called with an item that fails alone, and its error.
            left: selects those of the given items that are not stored yet.
            fatal: errors that mean that the model cannot be used, which are raised.
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
        """Measure items one by one, and store each as it ends."""
        for item in items:
            self.begin(model.name, item, stage)
            self.keep(item, stage, self.result(model, lambda item=item: measure(item)))

    def result(self, model: interp.Model, measure: Callable[[], Records]) -> Records | Exception:
        """The records that `measure` returns, or the exception that it raised."""
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
        """Progress in words: `3 of 10 items are done`."""
        finished = sum(is_finished(self.index, i) for i in self.items)
        return f"{finished} of {len(self.items)} items are done"
