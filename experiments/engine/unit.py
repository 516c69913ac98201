"""What all units of a benchmark run are, whoever is asked what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from faithscope.experiments.engine.planfile import StoredItem, StoredPlan
from faithscope.experiments.engine.units import Key


class Planned(ABC):
    """Something that one model is asked; its subclasses are frozen dataclasses."""

    model: str
    task: str
    units: dict[str, str]
    """Stage -> unit id."""

    @property
    def anyway(self) -> tuple[str, ...]:
        """None: there are no traces here that could be excluded."""
        return ()

    @property
    @abstractmethod
    def item(self) -> str:
        """Its id, unique among those of one model and task."""

    def key(self, stage: str) -> Key:
        return (stage, self.model, self.task, self.item)


def stored(items: Sequence[Planned], batch_size: int) -> StoredPlan:
    """What of a plan is kept in the run folder."""
    kept = (StoredItem(i.model, i.task, i.item, i.units, i.anyway) for i in items)
    return StoredPlan(batch_size, tuple(kept))
