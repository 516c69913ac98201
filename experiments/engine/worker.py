"""Models asked about items: batches, storing, the budget, a judge that fails.

One model is in memory at a time. What is stored is never asked again. A unit may hold several
asks: it is stored once all of them are answered.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from faithscope import interp
from faithscope.experiments.config.api import API, SpendConfig
from faithscope.experiments.config.judge import JudgeConfig, Reading
from faithscope.experiments.engine.judges import checked_apis, open_judge
from faithscope.experiments.engine.loading import load_for_run
from faithscope.experiments.engine.models_in_turn import in_turn
from faithscope.experiments.engine.planfile import failures, missing
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.spending import budget_of
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.unit import Planned
from faithscope.experiments.engine.units import why_failed
from faithscope.interp.errors import UserError
from faithscope.interp.memory import free, within_memory
from faithscope.probes.judge.form import Ask, Judge, Reply, Writer, Writing

Records = list[dict[str, Any]]
_AT_ONCE = 512
"""Items whose asks to an API are in memory together."""


class Asking(Protocol):
    """What a config says besides how judges are asked."""

    @property
    def seed(self) -> int: ...
    @property
    def spend(self) -> SpendConfig: ...
    @property
    def token_budget(self) -> int | None: ...


def _name(ask: Ask | Writing) -> tuple[str, str]:
    """Different for every ask of a run."""
    return ("" if isinstance(ask, Writing) else ask.form.name, ask.id)


class Worker(ABC):
    """One worker's part of asking models, whatever it is they are asked."""

    has_outputs = True

    def __init__(
        self,
        config: Asking,
        batches: Mapping[str, list[list[Any]]],
        judge: JudgeConfig,
        stages: Mapping[str, Reading | None],
        store: Store,
        meter: Meter | None = None,
    ) -> None:
        """
        Args:
            batches: model -> this worker's items, by batches that are asked together.
            stages: stage -> how its verdicts are read; None where no judge is asked.
        """
        self.config = config
        self.judge = judge
        self.stages = stages
        self.store = store
        self.index = store.index
        self.batches = batches
        self.items = [i for b in batches.values() for batch in b for i in batch]
        self.meter = meter or Meter()
        self.problems: list[str] = []
        self.stopped = ""
        self._handles: dict[tuple[str, str], int] = {}
        self._last = 0.0
        """When the last unit was stored."""

    def go(self) -> None:
        """Do all that is missing; where the budget is spent, what costs nothing.

        Raises:
            UserError: a judge behind an API lacks its key, package, address or price: before
                anyone is asked, a line for each.
        """
        self.check()
        self.announce()
        in_turn(self, self.todo, self._all_of, self.meter, self.store)

    @property
    def todo(self) -> list[str]:
        """The models that are still to be asked something."""
        return [m for m in self.batches if self._left(m)]

    def check(self) -> None:
        """See that every model behind an API can be asked; `go` begins with it.

        Raises:
            UserError: see `go`.
        """
        self._apis = self._checked(self.todo)

    def announce(self) -> None:
        """Tell the meter what is to come; `go` does so, where it was not done before."""
        if not self._handles:
            for model in self.todo:
                self._announce(model)

    def lacks(self, item: Planned) -> list[str]:
        """The stages of an item that are still to be done."""
        return missing(self.index, item)

    def stages_of(self, model: str) -> Mapping[str, Reading | None]:
        """The stages in which a model is asked; all, where each item is of the model it is put
        to."""
        return self.stages

    def asked_later(self) -> dict[str, JudgeConfig]:
        """Who is asked by what is planned once this is done, and how."""
        return {}

    def loaded(self, model: interp.Model) -> None:
        """Look at a model here before it is asked anything.

        Raises:
            UserError: it cannot do what the config asks of it.
        """
        return

    def failures(self) -> list[str]:
        return [
            f"{i.model} · {i.task} · {i.item} · {stage}: {reason}"
            for i in self.items
            for stage, reason in failures(self.index, i)
        ]

    def done(self) -> str:
        finished = sum(not self.lacks(i) for i in self.items)
        return f"{finished} of {len(self.items)} items are done"

    @abstractmethod
    def asks_of(self, item: Any) -> Sequence[Ask | Writing]:
        """What is asked about an item; nothing where there is nothing to ask, and the unit is then
        stored empty."""

    @abstractmethod
    def records(self, model: str, item: Any, reading: Reading, replies: Sequence[Reply]) -> Records:
        """What is stored of a model's replies, in the order of the asks."""

    def companies(self, batch: Sequence[Any]) -> list[list[Any]]:
        """What of a batch is asked together."""
        return [list(batch)]

    def besides(self, model: interp.Model) -> None:
        """What is done with a model here once it has been asked everything."""
        return

    def held(self, name: str) -> JudgeConfig:
        """How the weights of a model here are held, and what its template must be able to."""
        return self.judge

    def ready(self, item: Any) -> bool:
        """Whether what is asked about is there; what is not is left for another start."""
        return True

    def _left(self, model: str) -> list[Any]:
        items = [i for batch in self.batches[model] for i in batch]
        return [i for i in items if any(s in self.stages_of(model) for s in self.lacks(i))]

    def _checked(self, todo: Sequence[str]) -> dict[str, Judge]:
        """Those of `todo` that are behind an API, each found fit to be asked."""
        here = dict.fromkeys(todo, self.judge)
        everyone = self.asked_later() | here
        self.budget = budget_of(self.config.spend, self.store, everyone)
        found = checked_apis(everyone, self.budget)
        return {name: judge for name, judge in found.items() if name in here}

    def _announce(self, model: str) -> None:
        short = model.rpartition("/")[2]
        for stage in self.stages_of(model):
            n = sum(stage in self.lacks(i) for i in self._left(model))
            label = f"{short} · {stage.partition('.')[0].replace('_', ' ')}"
            tiny = model.startswith("planted:")
            self._handles[model, stage] = self.meter.expect(label, n, stage, tiny)

    def _all_of(self, name: str) -> None:
        stages = self.stages_of(name)
        readings: dict[str, Reading] = {s: r for s, r in stages.items() if r is not None}
        if name.startswith(API):
            for stage, reading in readings.items():
                self._begin(name, stage)
                asked = [i for i in self._lacking(name, stage) if self.ready(i)]
                for at in range(0, len(asked), _AT_ONCE):
                    self._ask(self._apis[name], name, stage, reading, asked[at : at + _AT_ONCE])
            return
        held = self.held(name)
        model = load_for_run(name, held, self.config.token_budget, self.meter, self.store)
        self.loaded(model)
        for stage, reading in readings.items():
            judge = open_judge(model, reading, self.judge, self.config.seed)
            for batch in self.batches[name]:
                # the whole batch, though some may be stored: other company could change a reply
                here = [i for i in batch if stage in i.units and self.ready(i)]
                for mine in self.companies(here):
                    if any(stage in self.lacks(i) for i in mine):
                        self._begin(name, stage)
                        self._ask_together(model, judge, stage, reading, mine)
        self.besides(model)
        del model
        free()

    def _lacking(self, name: str, stage: str) -> list[Any]:
        return [i for i in self._left(name) if stage in self.lacks(i)]

    def _ask_together(
        self, model: interp.Model, judge: Judge, stage: str, reading: Reading, items: Sequence[Any]
    ) -> None:
        try:
            within_memory(
                model,
                lambda: self._ask(judge, model.name, stage, reading, items),
                self._on_less(model.name),
            )
        except UserError:
            raise
        except Exception as error:
            if len(items) == 1:
                self._keep(items[0], stage, [], error)
                return
            # one bad item must not take its batch with it
            for item in items:
                if stage in self.lacks(item):
                    self._ask_together(model, judge, stage, reading, [item])

    def _ask(
        self, judge: Judge, model: str, stage: str, reading: Reading, items: Sequence[Any]
    ) -> None:
        by_ask: dict[tuple[str, str], tuple[Any, int]] = {}
        replies: dict[int, dict[int, Reply]] = {id(i): {} for i in items}
        wanted: dict[int, int] = {}
        everything: list[Ask | Writing] = []
        for item in items:
            asks = self.asks_of(item)
            everything += asks
            wanted[id(item)] = len(asks)
            by_ask |= {_name(ask): (item, place) for place, ask in enumerate(asks)}
            if not asks and stage in self.lacks(item):
                self._keep(item, stage, [], None)

        def keep(ask: Any, reply: Reply) -> None:
            item, place = by_ask[_name(ask)]
            so_far = replies[id(item)]
            so_far[place] = reply
            if len(so_far) < wanted[id(item)] or stage not in self.lacks(item):
                return
            inorder = [so_far[i] for i in range(len(so_far))]
            lost = next((r for r in inorder if r.outcome == "failed"), None)
            failed = RuntimeError(lost.problem) if lost else None
            made = [] if failed else self.records(model, item, reading, inorder)
            self._keep(item, stage, made, failed)

        if writings := [a for a in everything if isinstance(a, Writing)]:
            assert isinstance(judge, Writer), judge.name
            judge.write_all(writings, keep)
        if judged := [a for a in everything if isinstance(a, Ask)]:
            judge.ask_all(judged, keep)

    def _begin(self, model: str, stage: str) -> None:
        self.meter.begin(self._handles[model, stage])
        self._last = time.perf_counter()

    def _keep(self, item: Planned, stage: str, records: Records, error: Exception | None) -> None:
        failed = None
        if error is not None:
            failed = why_failed(error)
            self.meter.say(f"failed: {item.task} · {item.item} · {stage}: {failed}")
        now = time.perf_counter()
        self.store.add(item.units[stage], item.key(stage), records, failed, now - self._last)
        self._last = now
        self.meter.advance()
        if isinstance(error, torch.AcceleratorError):
            raise UserError(
                f"{item.model}: the device failed and takes no more work ({failed}); "
                "run again: it goes on from here"
            )

    def _on_less(self, name: str) -> Callable[[int], None]:
        def note(budget: int) -> None:
            line = f"{name}: out of memory; goes on with a token budget of {budget}"
            self.meter.say(line)
            self.store.note(line)

        return note
