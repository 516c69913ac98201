"""Work through a plan of C2-Faith: have steps rewritten, put every ask to every judge, read every
chain from inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faithscope import interp
from faithscope.experiments.config.judge import JudgeConfig, Reading
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.preparing import Preparing
from faithscope.experiments.engine.store import Store, storable
from faithscope.experiments.engine.worker import Records, Worker
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.inside import look_inside
from faithscope.experiments.studies.c2faith.plan import INSIDE, STAGES, C2Plan, Judged
from faithscope.experiments.studies.c2faith.records import judged_record
from faithscope.experiments.studies.c2faith.writing import STAGE as WRITING
from faithscope.experiments.studies.c2faith.writing import (
    Rewrite,
    WritingPlan,
    rewrite_record,
    writing_as,
)
from faithscope.interp.errors import UserError
from faithscope.interp.memory import within_memory
from faithscope.probes.judge.form import Ask, Reply, Writing


class C2Work(Worker):
    """One worker's part of judging."""

    config: C2FaithConfig

    def __init__(self, whole: C2Plan, store: Store, shard: Shard) -> None:
        config = whole.config
        stages: dict[str, Reading | None] = {s: r for r, s in STAGES.items()}
        stages[INSIDE] = None
        batches = _batches(whole.items, config.models, config.judge, shard)
        super().__init__(config, batches, config.judge, stages, store)

    def asks_of(self, item: Judged) -> Sequence[Ask | Writing]:
        return (item.ask,)

    def records(
        self, model: str, item: Judged, reading: Reading, replies: Sequence[Reply]
    ) -> Records:
        (reply,) = replies
        return [judged_record(item, reading, reply, self.config.seed)]

    def companies(self, batch: Sequence[Judged]) -> list[list[Judged]]:
        """Asks with something in their chains by themselves, or they would change the company of
        ordinary ones."""
        parts: tuple[list[Judged], list[Judged]] = ([], [])
        for item in batch:
            parts[item.injected is not None].append(item)
        return [part for part in parts if part]

    def held(self, name: str) -> JudgeConfig:
        if name in self.judge.model or name == self.config.reference:
            return self.judge
        # it is not asked to judge, and need not think as judges do
        return self.judge.model_copy(update={"thinking": self.config.internals.thinking})

    def loaded(self, model: interp.Model) -> None:
        layer = self.config.internals.layer
        if model.name in self.config.internals.model and (layer or 1) > model.n_layers:
            raise UserError(
                f"internals.layer: {layer} is none of {model.name}, which has {model.n_layers}; "
                "give one of 1 to that, or null for the middle one"
            )

    def besides(self, model: interp.Model) -> None:
        for item in self._lacking(model.name, INSIDE):
            self._begin(item.model, INSIDE)
            try:
                made = within_memory(
                    model,
                    lambda item=item: storable(look_inside(model, item.of, self.config.internals)),
                    self._on_less(model.name),
                )
            except Exception as error:
                self._keep(item, INSIDE, [], error)
            else:
                self._keep(item, INSIDE, made, None)


class WritingWork(Preparing):
    """The rewriting of steps, by one worker."""

    config: C2FaithConfig
    LEFT_OUT = "its chain"

    def __init__(self, whole: WritingPlan, store: Store, shard: Shard) -> None:
        config = whole.config
        writer, how = str(config.perturb.writer), writing_as(config)
        super().__init__(config, writer, whole.items, WRITING, how, whole.given_up, store, shard)

    def asked_later(self) -> dict[str, JudgeConfig]:
        # a key that is missing must not be found out after the writing is paid for
        return dict.fromkeys(self.config.models, self.config.judge)

    def asks_of(self, item: Rewrite) -> Sequence[Ask | Writing]:
        return (item.ask,)

    def records(
        self, model: str, item: Rewrite, reading: Reading, replies: Sequence[Reply]
    ) -> Records:
        (reply,) = replies
        return [rewrite_record(item, reply, self.config.seed)]


def _batches(
    items: Sequence[Any], models: Sequence[str], judge: JudgeConfig, shard: Shard
) -> dict[str, list[list[Any]]]:
    of = {m: [i for i in items if i.model == m] for m in models}
    return {m: shard.mine(mine, judge.batch_size) for m, mine in of.items()}
