"""What models do in a run of C2-Faith: rewrite steps, judge every ask, read every chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from faithscope import interp
from faithscope.experiments.config.judge import JudgeConfig, Reading
from faithscope.experiments.engine.models.asking import Asker
from faithscope.experiments.engine.models.preparing import Preparing
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.worker import Records
from faithscope.experiments.studies.c2faith.benchmark.writing import STAGE as WRITING
from faithscope.experiments.studies.c2faith.benchmark.writing import (
    Rewrite,
    rewrite_record,
    writing_as,
)
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.inside import look_inside
from faithscope.experiments.studies.c2faith.judgements import judged_record
from faithscope.experiments.studies.c2faith.units import INSIDE, STAGES, Inside, Judged
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Ask, Reply, Writing


class C2Work(Asker[Judged | Inside]):
    """One worker's part of judging."""

    def __init__(
        self, config: C2FaithConfig, items: Sequence[Judged | Inside], store: Store, shard: Shard
    ) -> None:
        self.of_run = config
        readings: dict[str, Reading] = {stage: reading for reading, stage in STAGES.items()}
        judge = config.judge
        batches = {
            model: shard.mine([i for i in items if i.model == model], judge.batch_size)
            for model in config.models
        }
        super().__init__(config, batches, judge, readings, store, after_judging=(INSIDE,))

    def asks_of(self, item: Judged | Inside) -> Sequence[Ask | Writing]:
        assert isinstance(item, Judged)
        return (item.ask,)

    def records(
        self, model: str, item: Judged | Inside, reading: Reading, replies: Sequence[Reply]
    ) -> Records:
        assert isinstance(item, Judged)
        (reply,) = replies
        return [judged_record(item, reading, reply, self.config.seed)]

    def sub_batches(self, batch: Sequence[Judged | Inside]) -> list[list[Judged | Inside]]:
        """Asks with a text injected into their chains by themselves: they must not change the
        batches of ordinary ones."""
        parts: tuple[list[Judged | Inside], list[Judged | Inside]] = ([], [])
        for item in batch:
            parts[isinstance(item, Judged) and item.injected is not None].append(item)
        return [part for part in parts if part]

    def load_settings(self, name: str) -> JudgeConfig:
        if name in self.judge.model or name == self.of_run.reference:
            return self.judge
        # it is not asked to judge, and need not think as judges do
        return self.judge.model_copy(update={"thinking": self.of_run.internals.thinking})

    def loaded(self, model: interp.Model) -> None:
        layer = self.of_run.internals.layer
        if model.name in self.of_run.internals.model and (layer or 1) > model.n_layers:
            raise UserError(
                f"internals.layer: {layer} is none of {model.name}, which has {model.n_layers}; "
                "give one of 1 to that, or null for the middle one"
            )

    def after_judging(self, model: interp.Model) -> None:
        def look(item: Judged | Inside) -> Records:
            assert isinstance(item, Inside)
            return look_inside(model, item.of, self.of_run.internals)

        self.each(model, self.lacking(model.name, INSIDE), INSIDE, look)


class WritingWork(Preparing[Rewrite]):
    """The rewriting of steps, by one worker."""

    LEFT_OUT = "its chain"

    def __init__(
        self,
        config: C2FaithConfig,
        items: Sequence[Rewrite],
        given_up: Mapping[str, str],
        store: Store,
        shard: Shard,
    ) -> None:
        self.judges = dict.fromkeys(config.models, config.judge)
        how = writing_as(config)
        writer = str(config.perturb.writer)
        super().__init__(config, writer, items, WRITING, how, given_up, store, shard)

    def asked_later(self) -> Mapping[str, JudgeConfig]:
        return self.judges

    def asks_of(self, item: Rewrite) -> Sequence[Ask | Writing]:
        return (item.ask,)

    def records(
        self, model: str, item: Rewrite, reading: Reading, replies: Sequence[Reply]
    ) -> Records:
        (reply,) = replies
        return [rewrite_record(item, reply, self.config.seed)]
