"""Models asked for what another plan is made of, before the work can be shared out.

What never succeeds must not keep the rest from being planned: after some starts it is given up,
and what hangs on it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar

from faithscope.experiments.config.judge import JudgeConfig, Reading
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.asking import Asker, AskingConfig
from faithscope.experiments.engine.planfile import Planned, Shard, failures
from faithscope.experiments.engine.store import Store

Item = TypeVar("Item", bound=Planned)
STARTS = 3
"""Starts of a run in which something may fail before it is given up."""


def given_up_on(index: Index, items: Sequence[Planned]) -> dict[str, str]:
    """Id -> why, of those that are not asked again.

    Those that failed in `STARTS` starts of the run, once every other has been put, too: while the
    model cannot be reached, it is the same few that fail at every start.
    """
    if any(index.get(i.key(stage)) is None for i in items for stage in i.units):
        return {}
    return {
        i.item: f"failed in {STARTS} starts: {reason}"
        for i in items
        for stage, reason in failures(index, i)
        if index.times_failed(i.key(stage), i.units[stage]) >= STARTS
    }


class Preparing(Asker[Item]):
    """One worker that asks one model."""

    has_outputs = False
    LEFT_OUT: ClassVar[str] = "it"
    """What is left out where a request is given up."""

    def __init__(
        self,
        config: AskingConfig,
        model: str,
        items: Sequence[Item],
        stage: str,
        how: JudgeConfig,
        given_up: Mapping[str, str],
        store: Store,
        shard: Shard,
    ) -> None:
        """
        Args:
            how: how the model is held and asked.
            given_up: id -> why, of the items that are not asked any more.
        """
        self.given_up = given_up
        readings: dict[str, Reading] = {stage: "generated"}
        super().__init__(config, {model: shard.mine(items, how.batch_size)}, how, readings, store)

    def missing(self, item: Item) -> list[str]:
        return [] if item.item in self.given_up else super().missing(item)

    def go(self) -> None:
        super().go()
        for item, reason in given_up_on(self.index, self.items).items():
            self.meter.say(f"left out: {item}: {reason}")

    def failures(self) -> list[str]:
        """Those that are asked again; what hangs on the others is left out."""
        given_up = given_up_on(self.index, self.items)
        return [
            f"{i.model} · {i.task} · {i.item}: {reason} (asked again when the run is started "
            f"again; after {STARTS} starts {self.LEFT_OUT} is left out)"
            for i in self.items
            for _, reason in failures(self.index, i)
            if i.item not in given_up
        ]
