"""Workers of preparing plans, whose results another plan needs before its work can be sharded."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.models.asking import Asker
from faithscope.experiments.engine.models.judging import Judging
from faithscope.experiments.engine.plan import STARTS, PreparingPlan, given_up_on
from faithscope.experiments.engine.planfile import Planned, Shard, failures
from faithscope.experiments.engine.store import Store

Item = TypeVar("Item", bound=Planned)


class Preparing(Asker[Item]):
    """A worker that asks one model in one stage; every item has a single `ask`."""

    has_outputs = False
    LEFT_OUT: ClassVar[str] = "it"
    """Name in messages of what is left out if a request is given up."""

    def __init__(self, plan: PreparingPlan[Any, Item], store: Store, shard: Shard) -> None:
        self.plan = plan
        judging = Judging[Any](
            plan.how,
            plan.config.seed,
            {plan.model: {plan.stage: "generated"}},
            asks=lambda index, item, judge, stage: [ItemPrompt(item.ask)],
            about=lambda item: {},
        )
        super().__init__(judging, plan.config, plan.batches([plan.model], shard), store)

    def missing(self, item: Item) -> list[str]:
        return [] if item.item in self.plan.given_up else super().missing(item)

    def go(self) -> None:
        super().go()
        for item, reason in given_up_on(self.index, self.items).items():
            self.meter.say(f"left out: {item}: {reason}")

    def failures(self) -> list[str]:
        """Lines on failed requests that are asked again; items of those given up are left out."""
        given_up = given_up_on(self.index, self.items)
        return [
            f"{i.model} · {i.task} · {i.item}: {reason} (asked again when the run is started "
            f"again; after {STARTS} starts {self.LEFT_OUT} is left out)"
            for i in self.items
            for _, reason in failures(self.index, i)
            if i.item not in given_up
        ]
