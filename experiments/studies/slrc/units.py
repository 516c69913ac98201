"""Items of a run: a question that one model is asked, or whose given chain it reads, and a given
chain that no model reads, which only judges are asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.traces.units import Item
from faithscope.experiments.studies.slrc.judges.chains import JudgedChain
from faithscope.experiments.studies.slrc.stages import STAGES
from faithscope.probes import PROBES


@dataclass(frozen=True)
class ChainItem(Item):
    """An item of a run over traces with the units of judges, beside those of trace and probes."""

    stages = STAGES

    @classmethod
    def made_of(cls, item: Item) -> ChainItem:
        """The item of a plan of traces, which has the units of its trace and probes."""
        return cls(**vars(item))

    @property
    def probes(self) -> tuple[str, ...]:
        return tuple(stage for stage in self.units if stage in PROBES)

    def with_units(self, units: Mapping[str, str]) -> ChainItem:
        """The item with further units."""
        return replace(self, units={**self.units, **units})


@dataclass(frozen=True)
class UnreadChain(Planned):
    """A given chain that is judged as it stands in its file."""

    chain: JudgedChain
    units: dict[str, str]
    model: str = ""
    stages = STAGES

    @property
    def task(self) -> str:
        return self.chain.dataset

    @property
    def item(self) -> str:
        return self.chain.id
