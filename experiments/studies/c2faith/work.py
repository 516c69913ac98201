"""Work of models in a run of C2-Faith: rewriting steps, judging every ask, reading every chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from faithscope import interp
from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.models.asking import Asker
from faithscope.experiments.engine.models.judging import Judged
from faithscope.experiments.engine.models.preparing import Preparing
from faithscope.experiments.engine.worker import Records
from faithscope.experiments.studies.c2faith.benchmark.writing import Rewrite, rewrite_record
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.inside import look_inside
from faithscope.experiments.studies.c2faith.units import INSIDE, Inside
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Reply
from faithscope.probes.record import Record


class C2Work(Asker[Judged | Inside]):
    """One worker's share of the judging, and of reading chains inside models."""

    config: C2FaithConfig

    def sub_batches(self, batch: Sequence[Judged | Inside]) -> list[list[Judged | Inside]]:
        """Splits a batch so that varied asks have a forward pass of their own: they must not change
        the batches of ordinary asks."""
        parts: dict[str, list[Judged | Inside]] = {}
        for item in batch:
            parts.setdefault(item.task.partition("+")[2], []).append(item)
        return [parts[name] for name in sorted(parts)]

    def load_settings(self, name: str) -> JudgeConfig:
        if name in self.judge.model or name == self.config.reference:
            return self.judge
        # a model that is not asked to judge need not think as judges do
        return self.judge.model_copy(
            update=self.config.internals.model_dump(include={"thinking", "marks"})
        )

    def loaded(self, model: interp.Model) -> None:
        layer = self.config.internals.layer
        if model.name in self.config.internals.model and (layer or 1) > model.n_layers:
            raise UserError(
                f"internals.layer: {layer} is none of {model.name}, which has {model.n_layers}; "
                "give one of 1 to that, or null for the middle one"
            )

    def after_judging(self, model: interp.Model) -> None:
        def look(item: Judged | Inside) -> Records:
            assert isinstance(item, Inside)
            return look_inside(model, item.of, self.config.internals)

        self.each(model, self.lacking(model.name, INSIDE), INSIDE, look)


class WritingWork(Preparing[Rewrite]):
    """One worker's share of the rewriting of steps."""

    LEFT_OUT = "its chain"
    config: C2FaithConfig

    def asked_later(self) -> Mapping[str, JudgeConfig]:
        return dict.fromkeys(self.config.models, self.config.judge)

    def record(
        self, item: Rewrite, prompt: ItemPrompt, judge: str, stage: str, reply: Reply
    ) -> Record:
        return rewrite_record(item, reply, self.config.seed)
