"""What is done with the judges: every pair of outputs, both in one unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from faithscope.experiments.config.judge import Reading
from faithscope.experiments.engine.models.asking import Asker
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import storable
from faithscope.experiments.engine.worker import Records
from faithscope.experiments.studies.rfeval.asks import CONDITIONS, Condition, output_ask
from faithscope.experiments.studies.rfeval.records import (
    about,
    judged_record,
    outputs_of,
    records_of,
)
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.units import (
    JUDGED,
    Batches,
    Pair,
    RfUnits,
    judged_stage,
    sub_batches,
)
from faithscope.probes.judge.form import Ask, Reply, Writing


class RfJudging(Asker[Pair]):
    """One worker's part of it, a judge at a time."""

    def __init__(self, whole: RfUnits, batches: Batches, store: Store, meter: Meter) -> None:
        self.whole = whole
        last = [*batches][-1:]
        judges = sorted(whole.config.judge.model, key=lambda judge: judge not in last)
        self.of_judge = {judge: judged_stage(judge) for judge in judges}
        readings: dict[str, Reading] = dict.fromkeys(self.of_judge.values(), "generated")
        cut = sub_batches(batches, whole.config.judge.batch_size)
        super().__init__(
            whole.config, dict.fromkeys(judges, cut), whole.config.judge, readings, store, meter
        )

    def stages_of(self, model: str) -> Sequence[str]:
        return (self.of_judge[model],)

    def ready(self, item: Pair) -> bool:
        return records_of(self.index, item) is not None

    def asks_of(self, item: Pair) -> Sequence[Ask | Writing]:
        return [ask for _, ask in self._asks(item)]

    def records(
        self, model: str, item: Pair, reading: Reading, replies: Sequence[Reply]
    ) -> Records:
        made = []
        for (condition, ask), reply in zip(self._asks(item), replies, strict=True):
            of = about(item.of, item.model, JUDGED, ask.form.name, self.config.seed, model)
            made.append(judged_record(of, condition, ask, reply))
        return storable(made)

    def _asks(self, item: Pair) -> list[tuple[Condition, Ask]]:
        """None where one of the outputs cannot be judged: the pair then counts for nothing."""
        outputs = outputs_of(self.index, item, self.whole.config.paper_compat)
        if outputs is None or not all(output.usable for output in outputs.values()):
            return []
        return [(c, asked_of(self.whole, item, c, outputs[c])) for c in CONDITIONS]


def asked_of(whole: RfUnits, pair: Pair, condition: Condition, output: Output) -> Ask:
    """The ask about one output; its id tells the models apart, too."""
    made = output_ask(
        pair.of, condition, output, whole.forms[condition], whole.words, whole.config.naming
    )
    return replace(made, id=f"{pair.model} {made.id}")
