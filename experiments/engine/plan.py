"""Plans: everything that a run will do, made without reading weights.

`RunPlan` is the base of every study's plan and knows the config and the items. A study adds the
content of its items, the text of a dry run (`lines`), the files of questions and prompts that the
run folder keeps (`inputs`), and the worker that does the items (`work`).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine.folder import has_records
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns, total
from faithscope.experiments.engine.models.at_hand import gpus_of, models_of
from faithscope.experiments.engine.planfile import (
    Planned,
    Shard,
    StoredPlan,
    failures,
    is_finished,
)
from faithscope.experiments.engine.tallies.input_report import FILE as INPUT_REPORT
from faithscope.experiments.engine.tallies.input_report import InputReport
from faithscope.experiments.engine.tallies.reasons import WORDS
from faithscope.experiments.engine.tallies.tally import Tally, forecast_of
from faithscope.experiments.engine.units import Key
from faithscope.experiments.files import make_folder, remove, write_atomically

if TYPE_CHECKING:
    from faithscope.experiments.config.judge import JudgeConfig
    from faithscope.experiments.engine.store import Store

C = TypeVar("C", bound=FolderConfig)
Item = TypeVar("Item", bound=Planned)
BENCHMARK, PROMPTS = "benchmark", "prompts"
"""Folders below the run folder: the items of a benchmark, and the prompt forms."""


class Work(Protocol):
    """The work of one shard of a run: a `Worker`, or several in `Phases`."""

    problems: list[str]
    """A line per model that could not be used; the work of all others was done."""
    stopped: str
    """Why the work ended early though nothing is wrong (a spent budget); empty if it did not."""
    has_outputs: bool
    """Whether tables and a page can be made from the results."""

    def go(self) -> None:
        """Do everything that is missing."""
        ...

    def limit_to(self, doers: Literal["weights", "apis"]) -> None:
        """Leave out the models behind APIs, or those whose weights are here."""
        ...

    def failures(self) -> list[str]:
        """A line per unit that failed."""
        ...

    def done(self) -> str:
        """Progress in words: `3 of 10 items are done`."""
        ...


@dataclass(frozen=True)
class RunPlan(ABC, Generic[C, Item]):
    """Base of plans: all items of a run, in the order in which they are worked on."""

    config: C
    items: tuple[Item, ...]
    input_report: InputReport = field(default=InputReport(), kw_only=True)
    """Counts of the data that the run takes and of the data that it leaves out."""

    @property
    def prepares(self) -> str:
        """Clause that says what this plan prepares (`steps are rewritten by MODEL`), for a plan
        whose results are needed before the run itself can be planned; empty for an ordinary plan.

        One process carries out such a plan, before the work is sharded, and then plans again.
        """
        return ""

    @property
    @abstractmethod
    def batch_size(self) -> int:
        """Number of items that are worked on together; shards are made of whole batches."""

    @abstractmethod
    def lines(self, index: Index) -> Iterable[str]:
        """Lines of text on the work that is left, and on the API calls and tokens that it would
        use."""

    def inputs(self) -> Mapping[str, str | None]:
        """Path below the run folder -> content of the files of questions and prompts, which are
        written before any model is asked; None where no file of that path may be left."""
        return {}

    def known_exclusions(self) -> Mapping[Key, str]:
        """Key of a unit -> why it will measure nothing, as far as that is known without weights."""
        return {}

    def remedies(self) -> Mapping[str, str]:
        """Reason in `known_exclusions` -> config setting that would avoid it; a reason without such
        a setting may be left out."""
        return {}

    def readers(self) -> str:
        """Who wrote the given chains of this plan and who reads them, in words; empty where no
        model reads given chains."""
        return ""

    def forecast(self) -> Tally:
        """Tally of the items that can be measured, as far as is known before the run."""
        if self.prepares:
            return Tally(0, 0, 0, {}, input_report=self.input_report, ahead=True)
        study = study_of(self.config.model_dump(mode="json"))
        index = Index.of(self.config.run_dir)
        tally = forecast_of(self.items, index, study.stages(), self.known_exclusions())
        # a study's words for its own reasons are loaded only if needed, with all that it imports
        words = study.report().reasons if set(tally.reasons) - set(WORDS) else {}
        report, remedies = self.input_report, self.remedies()
        return replace(tally, unit=study.unit, input_report=report, remedies=remedies, words=words)

    @abstractmethod
    def work(self, store: Store, shard: Shard) -> Work:
        """The work of one shard."""

    @property
    def configs(self) -> Sequence[FolderConfig]:
        """The configs that are carried out: the run's own, or those of the runs that it makes."""
        return (self.config,)

    @property
    def alternates(self) -> bool:
        """Whether a model whose weights are here works on replies of a model behind an API, so that
        doing first all work of the one and then all of the other leaves some undone."""
        return False

    def gpus(self, model: str | None = None) -> int:
        """Number of GPUs of a process that does the items of one model, or of all models."""
        own = {item.model for item in self.items if item.model}
        done = own if model is None else {model}
        return max(
            (gpus_of(c, [*done, *(m for m in models_of(c) if m not in own)]) for c in self.configs),
            default=0,
        )

    def of(self, model: str) -> list[Item]:
        """The items of one model."""
        return [i for i in self.items if i.model == model]

    def batches(self, models: Iterable[str], shard: Shard) -> dict[str, list[list[Item]]]:
        """Model -> batches of its items that belong to a shard."""
        every = {model: self.of(model) for model in dict.fromkeys(i.model for i in self.items)}
        dealt = shard.deal(every, self.batch_size)
        return {model: dealt.get(model, []) for model in models}

    def stored(self) -> StoredPlan:
        """The part of the plan that is kept in the run folder."""
        return StoredPlan.of(self.items, self.batch_size)

    def summary(self) -> str:
        """The text that `faithscope run --dry-run` prints."""
        run_dir = self.config.run_dir
        return "\n".join([f"run folder  {run_dir}", *self.lines(Index.of(run_dir))])

    def table(
        self,
        index: Index,
        header: Sequence[str] = ("model", "task", "items", "left"),
        asks: Callable[[Item], int] = lambda item: 1,
    ) -> list[str]:
        """Lines of a table with the number of items, and of those left to do, by model and task.

        Args:
            index: the stored units.
            header: headings of the four columns.
            asks: weight of an item in the last column (its number of prompts, for example).
        """
        counts = Counter((i.model, i.task) for i in self.items)
        left: Counter[tuple[str, str]] = Counter()
        for item in self.items:
            if not is_finished(index, item):
                left[item.model, item.task] += asks(item)
        rows = [(*pair, n, left[pair]) for pair, n in counts.items()]
        return columns([header, *rows, total(rows)])

    def write_inputs(self, store: Store) -> None:
        """Write `inputs` and the input report into the run folder, before any model is asked."""
        with store.shared():
            for name, text in self._kept().items():
                path = store.run_dir / name
                if text is None:
                    remove(path)
                    continue
                of_form = path.parent.name == PROMPTS and has_records(store.run_dir)
                if of_form and _text(path) not in (None, text):
                    print(f"note: {path}: is another form now, and is asked again", file=sys.stderr)
                write_atomically(make_folder(path.parent) / path.name, text)

    def inputs_differ(self) -> bool:
        """Whether the inputs in the run folder differ from those that would be written now.

        A plan may read files that change outputs but no unit, so this can be true of a run whose
        units are all stored.
        """
        return any(_text(self.config.run_dir / name) != text for name, text in self._kept().items())

    def _kept(self) -> dict[str, str | None]:
        return {INPUT_REPORT: self.input_report.to_json(), **self.inputs()}


def below(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    """Files of a folder by their paths below the run folder: `folder/name` -> content."""
    return {f"{folder}/{name}": text for name, text in files.items()}


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


STARTS = 3
"""Number of starts of a run in which an item of a `PreparingPlan` may fail before it is given
up."""


@dataclass(frozen=True)
class PreparingPlan(RunPlan[C, Item]):
    """Plan of what one model writes, in one stage, before the run itself can be planned.

    An item that never succeeds must not keep the rest from being planned: after `STARTS` failed
    starts it is given up, and what depends on it is left out of the run.
    """

    given_up: Mapping[str, str]
    """Id of an item that is not tried again -> reason (`given_up_on`)."""

    @property
    @abstractmethod
    def how(self) -> JudgeConfig:
        """The settings for loading and asking the model."""

    @property
    def model(self) -> str:
        """The model that writes."""
        return self.items[0].model

    @property
    def stage(self) -> str:
        """The single stage of the plan's items."""
        (stage,) = self.items[0].units
        return stage

    @property
    def batch_size(self) -> int:
        return self.how.batch_size

    def left(self, index: Index) -> list[Item]:
        """The items that are still pending."""
        return still_asked(index, self.items, self.given_up)


def still_asked(index: Index, items: Iterable[Item], given_up: Mapping[str, str]) -> list[Item]:
    """The pending items of a `PreparingPlan`: those that are neither finished nor given up."""
    return [i for i in items if i.item not in given_up and not is_finished(index, i)]


def given_up_on(index: Index, items: Sequence[Planned]) -> dict[str, str]:
    """Id of an item that is not tried again -> reason.

    An item is given up when it has failed in `STARTS` starts of the run. None is given up before
    all items have been tried, since the same few fail at every start while a model cannot be
    reached.
    """
    if any(index.get(i.key(stage)) is None for i in items for stage in i.units):
        return {}
    return {
        i.item: f"failed in {STARTS} starts: {reason}"
        for i in items
        for stage, reason in failures(index, i)
        if index.times_failed(i.key(stage), i.units[stage]) >= STARTS
    }
