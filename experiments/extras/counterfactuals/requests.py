"""Requests to the writer of r′ and its validator, the examples in them, and the worker that sends
them (RFEval, 3.2, B.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.models.judges import answered, decides, writing_as
from faithscope.experiments.engine.models.preparing import Preparing
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.extras.counterfactuals.construction import (
    generation,
    validation_ask,
)
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.prompts import RfForm, questions
from faithscope.experiments.studies.rfeval.records import about
from faithscope.experiments.studies.rfeval.subjects.programs import unavailable
from faithscope.experiments.studies.rfeval.units import Pair
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Ask, Reply, Writing
from faithscope.probes.record import Record

WRITING, VALIDATION = "rf_writing", "rf_validation"


@dataclass(frozen=True)
class Request(Pair):
    """A request to write one r′ (`of` has none yet), or to validate one."""

    ask: Writing | Ask


def writing_requests(
    config: RFEvalConfig,
    problems: Sequence[Item],
    request_words: Mapping[str, Any],
) -> Iterator[Request]:
    writer = str(config.counterfactual.writer)
    shown = "of_source" not in request_words
    examples = examples_of(config) if shown else lambda _: []
    how = writing_as(config.judge, config.counterfactual.temperature)
    ids = UnitIds(**decides(writer, how, config.seed))
    for item in problems:
        ask = generation(item, examples(item), request_words)
        told = {} if ask.system is None else {"system": ask.system}
        unit = ids.of(item=item.sha256, prompt=ask.prompt, **told)
        yield Request(writer, item, {WRITING: unit}, ask)


def validation_requests(
    config: RFEvalConfig, items: Iterable[Item], form: RfForm
) -> Iterator[Request]:
    validator = str(config.counterfactual.validator)
    ids = UnitIds(**decides(validator, config.judge, config.seed), form=form.form.sha256)
    for item in items:
        ask = validation_ask(item, form)
        unit = ids.of(item=item.sha256, values=dict(ask.values))
        yield Request(validator, item, {VALIDATION: unit}, ask)


def examples_of(config: RFEvalConfig) -> Callable[[Item], list[Item]]:
    """Finds an item's examples: the first other items of its source, then of its task; from the
    file of examples, or from the data, also past `data.limit`.

    So all items of a source have nearly the same examples: the paper has three hand-made ones for
    each data set. The returned function raises a ConfigError where there are too few.

    Raises:
        UserError: the file of examples, or the data, cannot be used.
    """
    c, d = config.counterfactual, config.data
    if not c.shots:
        return lambda item: []
    if c.examples is not None:
        path = Path(c.examples).expanduser()
        pool, _ = read_rfeval(path, key="counterfactual.examples")
        where = f"{path} has"
    else:
        pool, _ = read_rfeval(d.file, d.tasks or None, None, d.repository, bare=True)
        where = "the data has"
    words = questions(config.prompts_folder)
    of_source, of_task = defaultdict[tuple[str, str], list[Item]](list), defaultdict(list)
    for other in (o for o in pool if o.r_prime and o.explanation):
        of_source[other.task, other.source].append(posed := other.posed(words))
        of_task[other.task].append(posed)

    def examples(item: Item) -> list[Item]:
        elsewhere = (o for o in of_task[item.task] if o.source != item.source)
        candidates = chain(of_source[item.task, item.source], elsewhere)
        fit = (o for o in candidates if o.id != item.id and _problem(o) != _problem(item))
        first = list(islice(fit, c.shots))
        if len(first) < c.shots:
            raise ConfigError(
                [
                    f"counterfactual.shots: {c.shots} examples wanted for {item.id!r}, and "
                    f"{where} {len(first)} other items of task {item.task!r} with r_prime and "
                    "explanation; give a file of some as counterfactual.examples, or fewer shots"
                ]
            )
        return first

    return examples


def _problem(item: Item) -> tuple[str, str, tuple[str, ...]]:
    """What two items that are the same problem under different ids have in common."""
    return item.question, item.context, item.options


class BuildWork(Preparing[Request]):
    """One phase of building (writing or validation), as one worker does it."""

    LEFT_OUT = "its item"

    config: RFEvalConfig

    def check(self) -> None:
        super().check()
        tests = self.config.tests
        needed = tests.run == "required" and any(i.of.tests for i in self.items)
        if needed and (why := unavailable(tests)):
            raise UserError(f"tests.run is required, and code items cannot be run here: {why}")

    def asked_later(self) -> Mapping[str, JudgeConfig]:
        # a missing key must be noticed before the writing is paid for
        later = [*self.config.judge.model]
        if self.plan.stage == WRITING:
            later.append(str(self.config.counterfactual.validator))
        return dict.fromkeys(later, self.config.judge)

    def record(
        self, item: Request, prompt: ItemPrompt, judge: str, stage: str, reply: Reply
    ) -> Record:
        """Record of what writer or validator was asked, and of what came back, word for word."""
        writer, validator = (judge, None) if stage == WRITING else (None, judge)
        keys = about(item.of, None, stage, "", self.config.seed, validator)
        return keys | {"writer": writer} | answered(prompt.ask, reply)
