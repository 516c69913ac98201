"""The units of a training run: what is trained, and what is measured after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from faithscope.experiments.config.study import Stage, by_name
from faithscope.experiments.data.tasks import Task
from faithscope.experiments.engine.planfile import Planned
from faithscope.interventions.trace import Question

TRAINING, BATTERY, MEASURING = "training", "battery", "measured"
STAGES = by_name(
    Stage(TRAINING), Stage(BATTERY, needs=(TRAINING,)), Stage(MEASURING, needs=(TRAINING,))
)
"""Stages of a training run: the training itself, the battery of edits of planted models, and the
run that measures the model or its adapter."""
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
