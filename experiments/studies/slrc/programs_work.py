"""Workers of readers of chains in words, and of the probes that wait for their programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.engine.models.asking import Asker
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.traces.units import Item
from faithscope.experiments.engine.traces.work import TraceWork, written_for
from faithscope.experiments.engine.worker import Worker
from faithscope.experiments.studies.slrc import programs
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.stages import MENDED, PROGRAM
from faithscope.experiments.studies.slrc.units import ChainItem

Batches = Mapping[str, Sequence[Sequence[ChainItem]]]


class _Reader(Asker[ChainItem]):
    """Worker that asks readers; those behind APIs are held to a schema where their service can."""

    config: RunConfig

    def asked(self) -> Mapping[str, JudgeConfig]:
        assert self.config.programs is not None
        return dict.fromkeys(self.todo, self.config.programs)


class _Executed(TraceWork):
    """Worker that takes the probes that wait for programs."""

    config: RunConfig

    def do(self, model: str) -> None:
        lacking = [i for batch in self.batches[model] for i in batch if self.missing(i)]
        items = [i for i in lacking if self._is_ready(i)]
        if not items:
            return
        subject = self.load_subject(model)
        with written_for(self.config, subject, self.store):
            for some in self._at_once(subject, items):
                self._probe(subject, some)

    def _is_ready(self, item: Item) -> bool:
        waits = [s for s in item.units if s.partition(".")[0] in (PROGRAM, MENDED)]
        return all(self.index.is_done(item.key(s), item.units[s]) for s in waits)

    def more(self, item: Item) -> Mapping[str, Any]:
        assert isinstance(item, ChainItem)
        return {"programs": programs.written(self.config, self.index, item)}


def phases(config: RunConfig, batches: Batches, store: Store, meter: Meter) -> list[Worker[Any]]:
    """The phases of programs: asked, mended, executed."""
    asked = [programs.judging(config, stage) for stage in (PROGRAM, MENDED)]
    readers = [_Reader(of, config, of.batches(batches), store, meter) for of in asked]
    return [*readers, _Executed(config, batches, store, meter, programs.probes_of(config))]
