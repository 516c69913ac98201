"""The worker of a training run: trains adapters one after the other, and measures them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from faithscope import interp
from faithscope.experiments.analysis.wording import planted_variant
from faithscope.experiments.config.api import ApiSection, SpendConfig
from faithscope.experiments.engine.planfile import missing
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import storable
from faithscope.experiments.engine.worker import Records, Worker
from faithscope.experiments.studies.training.battery import measured
from faithscope.experiments.studies.training.config import TrainConfig
from faithscope.experiments.studies.training.loop import Training
from faithscope.experiments.studies.training.measuring import records, run_of
from faithscope.experiments.studies.training.objectives import OBJECTIVES
from faithscope.experiments.studies.training.stages import BATTERY, MEASURING, TRAINING
from faithscope.experiments.studies.training.units import Adapter
from faithscope.interp.errors import UserError
from faithscope.probes.record import head

STATES = "training"
"""Folder, below the run folder, of the states of trainings that are not finished."""


class TrainWork(Worker[Adapter]):
    """Trains and measures the adapters of one shard."""

    def __init__(
        self,
        config: TrainConfig,
        batches: Mapping[str, Sequence[Sequence[Adapter]]],
        store: Store,
    ) -> None:
        super().__init__(batches, (TRAINING, BATTERY), SpendConfig(), config.token_budget, store)
        self.config = config

    def asked(self) -> Mapping[str, ApiSection]:
        return {}

    def go(self) -> None:
        super().go()
        # the runs that measure load models of their own and show their own progress
        for item in self.items:
            lacking = missing(self.index, item)
            if MEASURING in lacking and TRAINING not in lacking and not self.stopped:
                self._measure_by_run(item)

    def label(self, item: Adapter, stage: str) -> str:
        return f"{item.method} · {stage}"

    def weight(self, stage: str) -> int:
        return self.config.updates if stage == TRAINING else 1

    def do(self, model: str) -> None:
        for item in (item for batch in self.batches[model] for item in batch):
            for stage, work in ((TRAINING, self._train), (BATTERY, self._measure)):
                lacking = self.missing(item)
                # a training that failed leaves no adapter to measure
                if stage in lacking and (stage == TRAINING or TRAINING not in lacking):
                    self.begin(model, item, stage)
                    self.keep(item, stage, self._done(item, work))

    def _done(self, item: Adapter, work: Any) -> Records | Exception:
        try:
            return storable(work(item))
        except UserError:
            # the model or its data cannot be used: the other adapters of it cannot be made either
            raise
        except Exception as error:
            return error

    def _train(self, item: Adapter) -> Records:
        # an adapter changes the model in place, so each begins with weights that are loaded anew
        self.weights.drop_others()
        model = self.load(item.model, self.config.model)
        states = self.store.run_dir / STATES / item.units[TRAINING]
        objective = OBJECTIVES[item.method]
        training = Training(model, item.asked, self.config, objective, item.seed, states)
        n = self.config.updates

        def on_step(row: Mapping[str, Any]) -> None:
            # the last step is counted when the adapter is stored
            if row["step"] + 1 < n:
                self.advance(item, TRAINING)

        rows = training.run(on_step)
        training.policy.save(item.folder(self.store.run_dir))
        self.weights.drop_others()
        shutil.rmtree(states, ignore_errors=True)
        return [_head(item, TRAINING) | row for row in rows]

    def _measure(self, item: Adapter) -> Records:
        settings = self.config.model
        model = interp.load(self._name(item), dtype=settings.dtype, device=settings.device)
        variant = planted_variant(item.model)
        assert variant is not None
        return [_head(item, BATTERY) | measured(model, variant, self.config.measured_on)]

    def _measure_by_run(self, item: Adapter) -> None:
        """Measure a model or adapter by a run of its own, which resumes by itself."""
        unit, key = item.units[MEASURING], item.key(MEASURING)
        title = f"{item.folder(self.store.run_dir).parent.name}-{item.method}-{item.seed}"
        try:
            config = run_of(self.config, self._name(item), f"{title}.{unit[:6]}")
            ended = run(config, mixed=self.store.mixed)
        except UserError as error:
            self.problems.append(f"measuring {title}: {error}")
            return
        if ended.interrupted:
            raise KeyboardInterrupt
        if ended.stopped or ended.problems:
            self.stopped = ended.stopped
            self.problems += ended.problems
            return
        failed = None
        if ended.tally is not None and ended.tally.nothing_measured:
            failed = f"nothing is measured: {ended.tally.lines()[0]}"
        elif ended.failures and not self.index.failed(key, unit):
            # an item that fails again is left out: it must not cost all others
            failed = f"failed items: {len(ended.failures)}, first {ended.failures[0]}"
        trained_on = {question.text for _, question in item.asked}
        measured = [] if failed else [*records(ended.run_dir, trained_on)]
        self.store.add(unit, key, [_head(item, MEASURING) | of for of in measured], failed)

    def _name(self, item: Adapter) -> str:
        """Name by which `faithscope.load` opens an adapter, or the model before training."""
        trained = TRAINING in item.units
        return str(item.folder(self.store.run_dir).resolve()) if trained else item.model


def _head(item: Adapter, stage: str) -> dict[str, Any]:
    task = item.asked[0][0].name
    return head(
        dataset=item.asked[0][1].dataset,
        task=task,
        item=item.item,
        model=item.model,
        probe=stage,
        variant=item.method,
        seed=item.seed,
    )
