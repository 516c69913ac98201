"""Judging as data: a study declares which judges are asked what about its items.

Unit ids, asking and resuming, what is stored, the calls of a dry run and the items that wait for
other stages follow from the declaration (`Judging`); `asking.Asker` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from faithscope.experiments.config.judge import JudgeConfig, Reading
from faithscope.experiments.engine.forms import TaskForm
from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.judges import READINGS, STAGES, answered, decides
from faithscope.experiments.engine.planfile import Planned, cut_again, missing
from faithscope.experiments.engine.units import UnitIds
from faithscope.probes.judge.form import Ask, Reply, Writing
from faithscope.probes.record import Record, head

Item = TypeVar("Item", bound=Planned)
Stages = Mapping[str, Mapping[str, Reading]]
"""Judge -> its stages, each with the reading of its verdicts."""


@dataclass(frozen=True)
class Judging(Generic[Item]):
    """Declaration of what one or several judges are asked about items, all by the same settings."""

    how: JudgeConfig
    seed: int
    stages: Stages
    asks: Callable[[Index, Item, str, str], Sequence[ItemPrompt]]
    """Maps the stored units, an item, a judge and a stage to everything that the judge is asked
    about the item in that stage; nothing for an item that the judge is not to see, whose unit is
    then empty."""
    about: Callable[[Item], Mapping[str, Any]]
    """Maps an item to what its records are about: dataset, task, item and model."""
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Judge -> stages of an item that must be stored before it is asked about, besides those that
    the item's own stages declare."""
    keeps_prompts: bool = True
    """Whether records hold the prompts; if not, they can be filled in again from the forms."""

    def batches(self, of: Mapping[str, Sequence[Sequence[Item]]]) -> dict[str, list[list[Item]]]:
        """Judge -> batches of the items that have a stage of this judge, for items that belong to a
        subject model each.

        Args:
            of: subject model -> batches of its items.
        """
        cut = cut_again(of, self.how.batch_size)
        of_judges = {
            judge: [[item for item in batch if stages.keys() & item.units] for batch in cut]
            for judge, stages in self.stages.items()
        }
        return {judge: [b for b in batches if b] for judge, batches in of_judges.items()}

    def is_ready(self, index: Index, item: Item, judge: str, stage: str) -> bool:
        """Whether everything that the asks about an item are made of is stored."""
        needed = (*item.needs(stage), *self.needs.get(judge, ()))
        return all(index.is_done(item.key(s), item.units[s]) for s in needed if s in item.units)

    def pending(
        self, index: Index, of: Mapping[str, Iterable[Item]], reading: Reading = "generated"
    ) -> dict[str, list[Ask | Writing]]:
        """Judge -> everything that it has still to be asked, for a dry run.

        Args:
            of: judge -> items that it is asked about.
            reading: reading of the verdicts; asks of the others are left out.
        """
        return {
            judge: [
                prompt.ask
                for item in items
                for stage in missing(index, item)
                if self.stages[judge].get(stage) == reading
                for prompt in self.asks(index, item, judge, stage)
                if not prompt.lacks
            ]
            for judge, items in of.items()
        }

    def record(
        self, item: Item, prompt: ItemPrompt, judge: str, stage: str, reply: Reply
    ) -> Record:
        """The stored record of a judge's reply; its `verdict` is None if the reply is malformed."""
        name = prompt.ask.form.name if isinstance(prompt.ask, Ask) else ""
        probe = stage.partition(".")[0]
        keys = head(**self.about(item), judge=judge, probe=probe, variant=name, seed=self.seed)
        return keys | judged_record(prompt, reply, self.keeps_prompts)


NOT_ASKED = Reply("failed")
"""Stands for the reply to a prompt that lacks a place (`ItemPrompt.lacks`), and is not put."""


def judged_record(prompt: ItemPrompt, reply: Reply, keeps_prompts: bool = True) -> dict[str, Any]:
    """The fields of a record that say what was asked and replied. A verdict that names a step is
    the step's index in the chain; it is None if the reply is malformed. The outcome of a prompt
    that was not put, since it lacks a place, is `no_PLACE`."""
    if prompt.lacks:
        form = prompt.ask.form.sha256
        blank = {"system": None, "asked": "", "verdict": None, "form_sha256": form}
        said = blank | reply.to_record() | {"outcome": f"no_{prompt.lacks}"}
        return dict(prompt.about) | said
    said = answered(prompt.ask, reply, keeps_prompts)
    if prompt.places is not None and (named := said["verdict"]) is not None and named >= 0:
        said["verdict"] = prompt.places[named]
    return dict(prompt.about) | said


@dataclass(frozen=True)
class Case:
    """An item in the words of one form, as any judge may be asked about it."""

    form: TaskForm
    task: str
    """Name in the keys of units: that of the form, or of the form with a change to the item."""
    item: str
    """Id in the keys of units, unique among the cases of one task."""
    of: Any
    """The item that the case is made of, as the study has it."""
    about: Mapping[str, Any]
    """What records of the case are about: dataset, task, item and model."""
    asks: tuple[ItemPrompt, ...]
    decides: Mapping[str, Any]
    """Everything that determines a judge's replies, besides the judge and the form."""


@dataclass(frozen=True)
class Judged(Planned):
    """A case that is put to one judge, in a unit for each reading of the verdict."""

    model: str
    """Name of the judge."""
    case: Case
    units: dict[str, str]

    @property
    def task(self) -> str:
        return self.case.task

    @property
    def item(self) -> str:
        return self.case.item


def put_to(judge: str, how: JudgeConfig, seed: int, cases: Iterable[Case]) -> Iterator[Judged]:
    """The given cases as units of one judge."""
    settings, ids = decides(judge, how, seed), dict[str, dict[str, UnitIds]]()
    for case in cases:
        form = case.form.form
        if form.name not in ids:
            ids[form.name] = {
                STAGES[reading]: UnitIds(**settings, reading=reading, form=form.sha256)
                for reading in how.readings_of(judge)
            }
        units = {stage: of.of(**case.decides) for stage, of in ids[form.name].items()}
        yield Judged(judge, case, units)


def of_cases(how: JudgeConfig, seed: int, judges: Iterable[str]) -> Judging[Any]:
    """The declaration for items that are `Judged` cases."""
    return Judging(
        how,
        seed,
        dict.fromkeys(judges, READINGS),
        asks=lambda index, item, judge, stage: item.case.asks,
        about=lambda item: item.case.about,
    )
