"""An item of a run as planned: what one model does about one question, stage by stage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from faithscope.experiments.engine.planfile import StoredItem, StoredPlan
from faithscope.experiments.engine.units import Key


class Planned(ABC):
    """What one model does about one question; its subclasses are frozen dataclasses."""

    model: str
    task: str
    units: dict[str, str]
    """Stage -> unit id, the trace first where there is one."""

    @property
    def runs_on_excluded(self) -> tuple[str, ...]:
        """Stages that run where the trace is excluded, too."""
        return ()

    @property
    @abstractmethod
    def item(self) -> str:
        """Its id, unique among those of one model and task."""

    def key(self, stage: str) -> Key:
        return (stage, self.model, self.task, self.item)


def stored(items: Sequence[Planned], batch_size: int) -> StoredPlan:
    """What of a plan is kept in the run folder."""
    kept = (StoredItem(i.model, i.task, i.item, i.units, i.runs_on_excluded) for i in items)
    return StoredPlan(batch_size, tuple(kept))
