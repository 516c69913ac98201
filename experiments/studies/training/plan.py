"""The plan of a training run: an adapter per model, method and seed; reads no weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.data.answers import ANSWERS
from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.data.tasks import Task, get_task
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.fingerprint import fingerprint
from faithscope.experiments.engine.plan import RunPlan
from faithscope.experiments.engine.planfile import is_finished
from faithscope.experiments.engine.tallies.input_report import InputReport, Truncation
from faithscope.experiments.engine.traces.config import fits
from faithscope.experiments.engine.traces.plan import questions_of
from faithscope.experiments.engine.units import UnitIds, versions
from faithscope.experiments.studies.training.config import START, TrainConfig
from faithscope.experiments.studies.training.measuring import planned
from faithscope.experiments.studies.training.stages import BATTERY, MEASURING, TRAINING
from faithscope.experiments.studies.training.units import Adapter
from faithscope.interventions.segment import SEGMENTATION
from faithscope.interventions.trace import Question

if TYPE_CHECKING:
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.store import Store
    from faithscope.experiments.studies.training.work import TrainWork

PLANTED = "planted:"
VERSION = 3
"""Raised when a change gives other adapters from the same config."""


@dataclass(frozen=True)
class TrainPlan(RunPlan[TrainConfig, Adapter]):
    """Every adapter of a run, in working order."""

    measuring: tuple[str, ...] = ()
    """A line per model: what measures it before training, and its adapters."""

    @property
    def batch_size(self) -> int:
        return 1

    def lines(self, index: Index) -> Iterator[str]:
        config, s = self.config, self.config.sampling
        yield f"methods     {', '.join(config.methods)}"
        yield (
            f"each        {config.updates} steps of {s.questions} questions with {s.group} "
            f"rollouts of at most {s.max_new_tokens} tokens"
        )
        yield from (f"measured    {line}" for line in self.measuring)
        yield ""
        header = ("model", "method", "adapters", "steps left")

        def steps(item: Adapter) -> int:
            return config.updates if TRAINING in item.units else 0

        yield from self.table(index, header, steps)
        left = sum(TRAINING in i.units and not is_finished(index, i) for i in self.items)
        rollouts = left * s.questions * s.group * config.updates
        yield ""
        yield f"at most {rollouts:,} rollouts and {rollouts * s.max_new_tokens:,} tokens"

    def work(self, store: Store, shard: Shard) -> TrainWork:
        # The module imports torch, which a dry run does without.
        from faithscope.experiments.studies.training.work import TrainWork

        return TrainWork(self.config, self.batches(self.config.model.name, shard), store)


def plan(config: TrainConfig) -> TrainPlan:
    """Plans a training run: loads the questions and names every adapter.

    Raises:
        ConfigError: data cannot be read; or there is nothing to train or to measure.
    """
    cuts: list[Truncation] = []
    questions, groups = questions_of(config, cuts)
    items: list[Adapter] = []
    measuring = []
    for model in config.model.name:
        asked = [(get_task(t), q) for t, of in questions.items() if fits(model, t) for q in of]
        digest = None
        if config.measure is not None:
            digest, line = planned(config, model, [q.text for _, q in asked])
            measuring.append(line)
        items += _adapters(config, model, asked, digest)
    if not items:
        raise ConfigError(
            [
                f"methods: {START} alone measures planted models, and none of "
                f"{', '.join(config.model.name)} is one; name an objective"
            ]
        )
    report = InputReport(tuple(cuts), notes=groups.notes, groups=groups.of)
    return TrainPlan(config, tuple(items), tuple(measuring), input_report=report)


def _adapters(
    config: TrainConfig, model: str, asked: list[tuple[Task, Question]], measured: str | None
) -> Iterator[Adapter]:
    """Yields the adapters of one model. The model before training stands once for every seed.

    Args:
        measured: digest of the plan of the run that measures the model and its adapters.
    """
    plant = PLANTS.get(model.removeprefix(PLANTED)) if model.startswith(PLANTED) else None
    if plant is not None and plant.follows == "named":
        plant = None  # its battery is another
    weights = fingerprint(model, config.model.revision)
    decides = config.model_dump(
        include={"updates", "sampling", "adapter", "optimizer", "rewards", "bound", "seed", "steps"}
    )
    del decides["optimizer"]["tokens"]
    held = config.model.model_dump(exclude={"name"})
    shared: dict[str, Any] = {"model": model, "weights": weights, "held": held}
    shared |= versions(training=VERSION, answers=ANSWERS, steps=SEGMENTATION)
    of_training = UnitIds(**shared, **decides, questions=[q.decides for _, q in asked])
    before = [START] if measured and START not in config.methods else []
    for method in (*before, *config.methods):
        for seed in config.seeds[:1] if method == START else config.seeds:
            units = {}
            if method != START:
                units[TRAINING] = of_training.of(method=method, seed=seed)
            if plant is not None:
                trained = units.get(TRAINING)
                ids = UnitIds(**shared)
                units[BATTERY] = ids.of(battery=plant.name, n=config.measured_on, of=trained)
            if measured is not None:
                ids = UnitIds(model=model, weights=weights, held=held)
                units[MEASURING] = ids.of(measured=measured, of=units.get(TRAINING))
            if units:
                yield Adapter(model, method, seed, units, tuple(asked))
