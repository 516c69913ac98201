"""Worker that makes the runs of a comparison one after the other; each run resumes by itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.engine.planfile import Planned, missing
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.store import Store
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
    """Runs every source that is not made yet, in order, since a later one may read an earlier
    one."""

    has_outputs = True

    def __init__(self, items: Sequence[Made], store: Store) -> None:
        self.items, self.store = items, store
        self.problems: list[str] = []
        self.stopped = ""
        self._failures: list[str] = []

    def go(self) -> None:
        for item in self.items:
            key = item.key(STAGE)
            if not missing(self.store.index, item):
                continue
            print(visible(f"source {item.item}: {item.config.run_dir}"), file=sys.stderr)
            ended = run(item.config)
            if ended.interrupted:
                raise KeyboardInterrupt
            self._failures += [f"source {item.item}: {failure}" for failure in ended.failures]
            self.problems += [f"source {item.item}: {problem}" for problem in ended.problems]
            if ended.stopped or ended.problems:
                # Later sources may need all of this run, so no further run is made.
                self.stopped = ended.stopped and f"source {item.item}: {ended.stopped}"
                self.has_outputs = False
                return
            about = head(
                dataset="", task=item.task, item=item.item, model=None, probe=STAGE, seed=None
            )
            record = about | {"config": config_digest(ended.run_dir), "failed": len(ended.failures)}
            failed = f"{len(ended.failures)} items failed" if ended.failures else None
            self.store.add(item.units[STAGE], key, [record] if not failed else [], failed)

    def failures(self) -> list[str]:
        return self._failures

    def done(self) -> str:
        done = sum(not missing(self.store.index, item) for item in self.items)
        return f"{done} of {len(self.items)} sources are made"
