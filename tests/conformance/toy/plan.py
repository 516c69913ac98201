from __future__ import annotations

from dataclasses import dataclass

from faithscope.experiments.config.api import API
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.plan import RunPlan
from faithscope.experiments.engine.planfile import Planned, Shard
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
class ToyPlan(RunPlan[ToyConfig, Number]):
    @property
    def batch_size(self) -> int:
        return self.config.judge.batch_size

    def lines(self, index: Index) -> list[str]:
        judge = self.config.judge
        asks = {model: [item.ask for item in self.of(model)] for model in judge.model}
        return spending_lines(asks, judge, self.config.spend)

    def work(self, store: Store, shard: Shard):
        from toy.work import ToyWork

        judge = self.config.judge
        how = (judge, {"word": "generated"}, store)
        return ToyWork(
            self.config, self.batches(judge.model, shard), *how, after_judging=["length"]
        )


def plan(config: ToyConfig) -> ToyPlan:
    def number(model: str, n: int) -> Number:
        stages = ("word",) if model.startswith(API) else ("word", "length")
        return Number(model, n, {s: UnitIds(stage=s, model=model).of(n=n) for s in stages})

    return ToyPlan(config, tuple(number(m, n) for m in config.judge.model for n in range(config.n)))
