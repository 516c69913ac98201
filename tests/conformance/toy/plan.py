from __future__ import annotations

from dataclasses import dataclass

from faithscope.experiments.config.api import API
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.planfile import Planned, Shard, StoredPlan
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import UnitIds
from faithscope.probes.judge.form import Writing
from toy.config import ToyConfig


@dataclass(frozen=True)
class Number(Planned):
    """One number put to one model."""

    model: str
    n: int
    units: dict[str, str]
    task: str = "numbers"

    @property
    def item(self) -> str:
        return str(self.n)

    @property
    def ask(self) -> Writing:
        return Writing(self.item, f"How many are {self.n}?")


@dataclass(frozen=True)
class ToyPlan:
    config: ToyConfig
    items: tuple[Number, ...]
    prepares = ""

    def of(self, model: str) -> list[Number]:
        return [item for item in self.items if item.model == model]

    def stored(self) -> StoredPlan:
        return StoredPlan.of(self.items, self.config.judge.batch_size)

    def summary(self) -> str:
        judge = self.config.judge
        asks = {model: [item.ask for item in self.of(model)] for model in judge.model}
        return "\n".join(spending_lines(asks, judge, self.config.spend))

    def write_inputs(self, store: Store) -> None:
        return

    def work(self, store: Store, shard: Shard):
        from toy.work import ToyWork

        judge = self.config.judge
        batches = {m: shard.mine(self.of(m), judge.batch_size) for m in judge.model}
        return ToyWork(self.config, batches, judge, {"word": "generated"}, store, None, ["length"])


def plan(config: ToyConfig) -> ToyPlan:
    def number(model: str, n: int) -> Number:
        stages = ("word",) if model.startswith(API) else ("word", "length")
        return Number(model, n, {s: UnitIds(stage=s, model=model).of(n=n) for s in stages})

    return ToyPlan(config, tuple(number(m, n) for m in config.judge.model for n in range(config.n)))
