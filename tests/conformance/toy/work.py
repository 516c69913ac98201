from __future__ import annotations

import torch

from faithscope.experiments.engine.worker import Records, Worker
from faithscope.probes.record import head
from toy.plan import Number


class ToyWork(Worker[Number]):
    """Two stages: the likeliest next token, and how long it is."""

    def __init__(self, config, batches, store) -> None:
        self.config = config
        super().__init__(batches, ("word", "length"), config.spend, config.token_budget, store)

    def asked(self):
        return {}

    def do(self, model: str) -> None:
        held = self.load(model, _HELD)

        def word(item: Number) -> Records:
            if item.n == self.config.fails_at:
                raise ValueError("no word for it")
            logits = held.hf(torch.tensor([[item.n]])).logits
            return [about(item, "word") | {"word": held.decode([int(logits[0, -1].argmax())])}]

        def length(item: Number) -> Records:
            (record,) = self.index.records(item.key("word"))
            return [about(item, "length") | {"length": len(record["word"])}]

        self.each(held, self.lacking(model, "word"), "word", word)
        done = [i for i in self.lacking(model, "length") if "word" not in self.missing(i)]
        self.each(held, done, "length", length)


class _HELD:
    dtype, device = "float32", "cpu"
    revision = quantize = device_map = thinking = None


def about(item: Number, stage: str) -> dict[str, object]:
    about = {"dataset": "numbers", "task": item.task, "item": item.item, "model": item.model}
    return head(**about, probe=stage, seed=0)
