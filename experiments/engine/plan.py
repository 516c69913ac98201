"""What there is to do in a run: the base of every study's plan. It is made without reading weights.

A plan knows its config and its items; a study adds what its items are about, what is to be told of
them before anyone is asked (`lines`), what is kept of them (`inputs`), and who does them (`work`).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine.folder import has_records
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns, total
from faithscope.experiments.engine.planfile import (
    Planned,
    Shard,
    StoredPlan,
    failures,
    is_finished,
)
from faithscope.experiments.engine.tallies.intake import FILE as INTAKE
from faithscope.experiments.engine.tallies.intake import Intake
from faithscope.experiments.engine.tallies.tally import Tally, tally_of
from faithscope.experiments.engine.units import Key
from faithscope.experiments.files import make_folder, write_atomically

if TYPE_CHECKING:
    from faithscope.experiments.config.judge import JudgeConfig
    from faithscope.experiments.engine.store import Store

C = TypeVar("C", bound=FolderConfig)
Item = TypeVar("Item", bound=Planned)
BENCHMARK, PROMPTS = "benchmark", "prompts"
"""Below the run folder: what models are asked about; and the forms, as a folder of prompts."""


class Work(Protocol):
    """One worker's part of a run."""

    problems: list[str]
    """A line per model that could not be used; the others were."""
    stopped: str
    """Why it ended before all was done, though nothing is wrong: a spent budget."""
    has_outputs: bool
    """Whether there are tables and a page to be made of it."""

    def go(self) -> None:
        """Do all that is missing."""
        ...

    def failures(self) -> list[str]: ...

    def done(self) -> str:
        """How far it is, in words."""
        ...


@dataclass(frozen=True)
class RunPlan(ABC, Generic[C, Item]):
    """Everything that is done in a run, in the order in which it is worked on."""

    config: C
    items: tuple[Item, ...]
    intake: Intake = field(default=Intake(), kw_only=True)
    """What is taken of the data, and what is not."""

    @property
    def prepares(self) -> str:
        """What it makes, in words, where that is only what another plan is made of: one process
        does it, before the work can be shared out, and plans anew. Else empty."""
        return ""

    @property
    @abstractmethod
    def batch_size(self) -> int:
        """Items that are worked on together; parts of a run are cut from whole batches."""

    @abstractmethod
    def lines(self, index: Index) -> Iterable[str]:
        """What a run would do of what is not stored yet, and what asking APIs for it would use."""

    def inputs(self) -> Mapping[str, str | None]:
        """Path below the run folder -> content, in order, of what is kept there of what is asked,
        before anyone is; None where a file of that name must not be there."""
        return {}

    def foreseen(self) -> Mapping[Key, str]:
        """Unit -> why it will measure nothing, as far as that is known without weights."""
        return {}

    def remedies(self) -> Mapping[str, str]:
        """Reason of `foreseen` -> what to set, where the items tell that; empty where nothing
        helps."""
        return {}

    def forecast(self) -> Tally:
        """How many items can be measured, as far as is known before the run."""
        if self.prepares:
            return Tally(0, 0, 0, {}, intake=self.intake, ahead=True)
        stages = study_of(self.config.model_dump(mode="json")).stages()
        index = Index.of(self.config.run_dir)
        tally = tally_of(self.items, index, stages, self.foreseen())
        return replace(tally, intake=self.intake, remedies=self.remedies())

    @abstractmethod
    def work(self, store: Store, shard: Shard) -> Work:
        """One worker's part of it."""

    def of(self, model: str) -> list[Item]:
        """The items of a model."""
        return [i for i in self.items if i.model == model]

    def batches(self, models: Iterable[str], shard: Shard) -> dict[str, list[list[Item]]]:
        """Model -> its items that are one worker's, by batches."""
        return {model: shard.mine(self.of(model), self.batch_size) for model in models}

    def stored(self) -> StoredPlan:
        """What of it is kept in the run folder."""
        return StoredPlan.of(self.items, self.batch_size)

    def summary(self) -> str:
        """What a run would do, for `--dry-run`."""
        run_dir = self.config.run_dir
        return "\n".join([f"run folder  {run_dir}", *self.lines(Index.of(run_dir))])

    def table(
        self,
        index: Index,
        header: Sequence[str] = ("model", "task", "items", "left"),
        asks: Callable[[Item], int] = lambda item: 1,
    ) -> list[str]:
        """Its items, and what is left of them, by model and task.

        Args:
            asks: how much an item counts that is left.
        """
        counts = Counter((i.model, i.task) for i in self.items)
        left: Counter[tuple[str, str]] = Counter()
        for item in self.items:
            if not is_finished(index, item):
                left[item.model, item.task] += asks(item)
        rows = [(*pair, n, left[pair]) for pair, n in counts.items()]
        return columns([header, *rows, total(rows)])

    def write_inputs(self, store: Store) -> None:
        """Put into the run folder what is asked, before anyone is."""
        with store.shared():
            for name, text in self._kept().items():
                path = store.run_dir / name
                if text is None:
                    path.unlink(missing_ok=True)
                    continue
                of_form = path.parent.name == PROMPTS and has_records(store.run_dir)
                if of_form and _text(path) not in (None, text):
                    print(f"note: {path}: is another form now, and is asked again", file=sys.stderr)
                write_atomically(make_folder(path.parent) / path.name, text)

    def inputs_differ(self) -> bool:
        """Whether other inputs would be kept now than lie in the run folder: a plan may read files
        that decide no unit and yet are in the outputs."""
        return any(_text(self.config.run_dir / name) != text for name, text in self._kept().items())

    def _kept(self) -> dict[str, str | None]:
        return {INTAKE: self.intake.to_json(), **self.inputs()}


def below(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    """Files of a folder, by their paths below the run folder."""
    return {f"{folder}/{name}": text for name, text in files.items()}


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


STARTS = 3
"""Starts of a run in which something may fail before it is given up."""


@dataclass(frozen=True)
class PreparingPlan(RunPlan[C, Item]):
    """What one model is still asked for, in one stage, before another plan can be made of it.

    What never succeeds must not keep the rest from being planned: after some starts it is given up,
    and what hangs on it is left out.
    """

    given_up: Mapping[str, str]
    """Id -> why, of the items that are not asked again (`given_up_on`)."""

    @property
    @abstractmethod
    def how(self) -> JudgeConfig:
        """How the model is held and asked."""

    @property
    def model(self) -> str:
        """Who is asked."""
        return self.items[0].model

    @property
    def stage(self) -> str:
        """The one stage of its items."""
        (stage,) = self.items[0].units
        return stage

    @property
    def batch_size(self) -> int:
        return self.how.batch_size

    def left(self, index: Index) -> list[Item]:
        """The items that are still asked for."""
        return still_asked(index, self.items, self.given_up)


def still_asked(index: Index, items: Iterable[Item], given_up: Mapping[str, str]) -> list[Item]:
    """Of items of a `PreparingPlan` those that are neither stored nor given up."""
    return [i for i in items if i.item not in given_up and not is_finished(index, i)]


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
