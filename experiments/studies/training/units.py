"""The units of a training run: what is trained, and what is measured after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from faithscope.experiments.data.tasks import Task
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.studies.training.stages import STAGES
from faithscope.interventions.trace import Question

ADAPTERS = "adapters"
"""Folder, below the run folder, of the finished adapters."""


@dataclass(frozen=True)
class Adapter(Planned):
    """One adapter: a model trained by one method with one seed; or the model before training."""

    model: str
    method: str
    seed: int
    units: dict[str, str]
    asked: tuple[tuple[Task, Question], ...]
    """The questions that it is trained on."""
    stages = STAGES

    @property
    def task(self) -> str:
        return self.method

    @property
    def item(self) -> str:
        return str(self.seed)

    def folder(self, run_dir: Path) -> Path:
        """Folder of the finished adapter, which `faithscope.load` opens."""
        name = self.model.rpartition("/")[2].replace(":", "-")
        return run_dir / ADAPTERS / name / f"{self.method}-{self.seed}"
