from __future__ import annotations

from dataclasses import dataclass

from faithscope.experiments.engine.planfile import Shard, StoredPlan
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.unit import Planned, stored
from faithscope.experiments.engine.units import UnitIds
from toy.config import ToyConfig


@dataclass(frozen=True)
class Number(Planned):
    """One number put to the model."""

    model: str
    n: int
    units: dict[str, str]
    task: str = "numbers"

    @property
    def item(self) -> str:
        return str(self.n)


@dataclass(frozen=True)
class ToyPlan:
    config: ToyConfig
    items: tuple[Number, ...]
    prepares = ""

    def stored(self) -> StoredPlan:
        return stored(self.items, 2)

    def summary(self) -> str:
        return f"numbers {len(self.items)}"

    def write_inputs(self, store: Store) -> None:
        return

    def work(self, store: Store, shard: Shard):
        from toy.work import ToyWork

        return ToyWork(self.config, {self.config.model: shard.mine(self.items, 2)}, store)


def plan(config: ToyConfig) -> ToyPlan:
    ids = {stage: UnitIds(stage=stage, model=config.model) for stage in ("word", "length")}
    numbers = range(config.n)
    return ToyPlan(
        config,
        tuple(Number(config.model, n, {s: i.of(n=n) for s, i in ids.items()}) for n in numbers),
    )
