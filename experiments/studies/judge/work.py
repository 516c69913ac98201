"""What judges do: they answer every ask of a form about a chain."""

from __future__ import annotations

from collections.abc import Sequence

from faithscope.experiments.config.judge import Reading
from faithscope.experiments.engine.models.asking import Asker
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.worker import Records
from faithscope.experiments.studies.judge.config import JudgeStudyConfig
from faithscope.experiments.studies.judge.units import READINGS, Judging, judged_record
from faithscope.probes.judge.form import Ask, Reply, Writing


class JudgeWork(Asker[Judging]):
    """One worker's part of judging."""

    def __init__(
        self, config: JudgeStudyConfig, items: Sequence[Judging], store: Store, shard: Shard
    ) -> None:
        judge = config.judge
        batches = {
            model: shard.mine([i for i in items if i.model == model], judge.batch_size)
            for model in judge.model
        }
        super().__init__(config, batches, judge, READINGS, store)

    def asks_of(self, item: Judging) -> Sequence[Ask | Writing]:
        return [ask for _, ask in item.asks]

    def records(
        self, model: str, item: Judging, reading: Reading, replies: Sequence[Reply]
    ) -> Records:
        return [
            judged_record(item, step, ask, reading, reply, self.config.seed)
            for (step, ask), reply in zip(item.asks, replies, strict=True)
        ]
