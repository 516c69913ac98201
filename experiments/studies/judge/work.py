"""Worker of a judge run: puts every ask of a form about a chain to the judges."""

from __future__ import annotations

from collections.abc import Sequence

from faithscope.experiments.engine.models.asking import Asker, OneAsk
from faithscope.experiments.engine.models.judges import STAGES, judged
from faithscope.experiments.studies.judge.units import Judging
from faithscope.probes.judge.form import Ask, Reply
from faithscope.probes.record import Record, head


class JudgeWork(Asker[Judging]):
    """Worker that puts asks to judges and turns their replies into records."""

    def asks(self, item: Judging) -> Sequence[tuple[int | None, Ask]]:
        return item.asks

    def record(self, asked: OneAsk[Judging], reply: Reply) -> Record:
        """Record of one judgement. A step that localisation names is stored as its index in the
        chain's steps, -1 for none."""
        item, said = asked.item, judged(asked.ask, reply)
        verdict = said["verdict"]
        if item.form.judged.names_a_step and verdict is not None and verdict >= 0:
            said["verdict"] = item.of.places[verdict]
        about = head(
            dataset=item.of.dataset,
            task=item.form.task,
            item=item.of.id,
            model=item.of.model or None,
            judge=item.model,
            probe=STAGES[asked.reading],
            variant=item.task,
            seed=self.config.seed,
        )
        return about | {"step": asked.about} | said
