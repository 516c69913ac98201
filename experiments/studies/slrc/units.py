"""One question that one model is asked in a run over traces, and what decides its units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from faithscope.experiments.config.api import DECIDES, DECIDES_API
from faithscope.experiments.data.tasks import Task
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.interventions.trace import Question
from faithscope.probes import PROBES

TRACE = "trace"
"""The stage in which the reasoning is written; the others are probes by name."""


@dataclass(frozen=True)
class Item(Planned):
    """One question that one model is asked."""

    model: str
    of: Task
    question: Question
    units: dict[str, str]

    @property
    def task(self) -> str:
        return self.of.name

    @property
    def item(self) -> str:
        return self.question.id

    @property
    def probes(self) -> tuple[str, ...]:
        """In the order in which they are taken."""
        return tuple(stage for stage in self.units if stage != TRACE)

    @property
    def runs_on_excluded(self) -> tuple[str, ...]:
        return tuple(name for name in self.probes if PROBES[name].on_excluded)


def api_decides(config: RunConfig) -> dict[str, Any]:
    """What of a config decides the replies of a model behind an API."""
    values = config.api.model_dump(mode="json")
    names = (*DECIDES, *DECIDES_API, "steps_from")
    return {name: values[name] for name in names} | {"seed": config.seed}
