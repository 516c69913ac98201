"""Worker that makes the runs of a comparison one after the other; each run resumes by itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.engine.planfile import Planned, Shard, is_whole, missing
from faithscope.experiments.engine.run import plan, run
from faithscope.experiments.engine.store import Store, read_failures
from faithscope.experiments.files import StoreError
from faithscope.experiments.studies.compare.config import Source
from faithscope.experiments.studies.compare.reading import config_digest
from faithscope.interp.plain import visible
from faithscope.probes.record import head

STAGE, TASK = "source", "sources"


@dataclass(frozen=True)
class Made(Planned):
    """One run that the comparison makes itself."""

    source: Source
    config: FolderConfig
    units: dict[str, str]
    model: str = ""
    task: str = TASK

    @property
    def item(self) -> str:
        return self.source.title


class SourceWork:
    """Makes every source that is not made yet, in order, since a later one may read an earlier one.

    One of several shards does its shard of each source. A source that reads an earlier one needs
    all of its traces: until every shard has done its own, the work stops there.
    """

    has_outputs = True

    def __init__(self, items: Sequence[Made], store: Store, shard: Shard) -> None:
        self.items, self.store, self.shard = items, store, shard
        self.problems: list[str] = []
        self.stopped = ""
        self._failures: list[str] = []

    def go(self) -> None:
        left: set[str] = set()
        for item in self.items:
            if not missing(self.store.index, item):
                continue
            if unmade := sorted(item.source.reads & left):
                self.stopped = (
                    f"source {item.item}: reads all of {', '.join(unmade)}, of which other shards "
                    "have still to do theirs; run this shard again after them"
                )
                left.add(item.item)
                continue
            if not self._made(item):
                if self.stopped or self.problems:
                    # Later sources may need all of this run, so no further run is made.
                    self.has_outputs = False
                    return
                left.add(item.item)

    def _made(self, item: Made) -> bool:
        """Make a source, or this shard of it; returns whether all of it is there now."""
        print(visible(f"source {item.item}: {item.config.run_dir}"), file=sys.stderr)
        if not self.shard.is_all and (prepares := plan(item.config).prepares):
            raise StoreError(
                f"source {item.item}: {prepares} by one process, before the work is shared out; "
                "run this comparison without --shard"
            )
        ended = run(item.config, self.shard, self.store.mixed)
        if ended.interrupted:
            raise KeyboardInterrupt
        self._failures += [f"source {item.item}: {failure}" for failure in ended.failures]
        self.problems += [f"source {item.item}: {problem}" for problem in ended.problems]
        if ended.stopped or ended.problems:
            self.stopped = ended.stopped and f"source {item.item}: {ended.stopped}"
            return False
        if not self.shard.is_all and not is_whole(ended.run_dir):
            return False
        n_failed = len(read_failures(ended.run_dir))
        about = head(dataset="", task=item.task, item=item.item, model=None, probe=STAGE, seed=None)
        record = about | {"config": config_digest(ended.run_dir), "failed": n_failed}
        failed = f"{n_failed} items failed" if n_failed else None
        self.store.add(item.units[STAGE], item.key(STAGE), [] if failed else [record], failed)
        return True

    def limit_to(self, doers: Literal["weights", "apis"]) -> None:
        """Does nothing: every source is made for the shard, which says it."""

    def failures(self) -> list[str]:
        return self._failures

    def done(self) -> str:
        done = sum(not missing(self.store.index, item) for item in self.items)
        return f"{done} of {len(self.items)} sources are made"
