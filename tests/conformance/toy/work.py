from __future__ import annotations

from faithscope.experiments.engine.models.asking import Asker
from faithscope.experiments.engine.models.judges import replied
from faithscope.experiments.engine.worker import Records
from faithscope.probes.record import head
from toy.plan import Number


class ToyWork(Asker[Number]):
    """Two stages: what a model writes about a number, and how long that is."""

    def asks(self, item):
        return [(None, item.ask)]

    def record(self, asked, reply):
        return _head(asked.item, "word") | replied(reply)

    def after_judging(self, model):
        def length(item: Number) -> Records:
            (record,) = self.index.records(item.key("word"))
            return [_head(item, "length") | {"length": len(record["text"])}]

        items = [i for i in self.lacking(model.name, "length") if "word" not in self.missing(i)]
        self.each(model, items, "length", length)


def _head(item: Number, stage: str) -> dict[str, object]:
    about = {"dataset": "numbers", "task": item.task, "item": item.item, "model": item.model}
    return head(**about, probe=stage, seed=0)
