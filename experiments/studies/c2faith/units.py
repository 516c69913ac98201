"""The units of work of a C2-Faith run: every judgement, and every look inside; reads no weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from faithscope.experiments.config.study import addition_to
from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.models.judges import decides
from faithscope.experiments.engine.models.judging import Case, Judged, put_to
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.units import UnitIds, versions
from faithscope.experiments.studies.c2faith.additions import varying
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.forms_of_config import forms_of, reference_forms
from faithscope.experiments.studies.c2faith.inside import DATASET, INTERNALS, not_inside
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.prompts_of_items import Condition, ask_of, cases
from faithscope.probes.broken_chain import BROKEN_STEP
from faithscope.probes.judge.form import Ask

INSIDE = "broken_step"


@dataclass(frozen=True)
class Varied:
    """How an ask differs from an ordinary one of the run."""

    name: str
    """Name of the variation (`additions.C2Addition`)."""
    by: Mapping[str, Any]
    """What was varied, as fields of its records; `twin` is the id of the ordinary ask."""


def case(
    form: TaskForm,
    of: CausalItem | CoverageItem,
    condition: Condition | None,
    ask: Ask,
    varied: Varied | None = None,
) -> Case:
    """An item in the words of a form.

    Args:
        condition: condition of the chain; None for coverage.
        varied: what was varied; None for an ordinary ask.
    """
    shown = {"values": dict(ask.values), "high": ask.high}
    decides: dict[str, Any] = {"ask": ask.id, "about": shown}
    about = {"ask": ask.id, "chain": of.chain, "condition": condition}
    if isinstance(of, CausalItem):
        about |= {"target": of.target, "n_steps": len(of.steps)}
    else:
        about |= {"level": of.level, "n_middle": of.n_middle, "n_removed": len(of.removed)}
    name = form.form.name
    if varied is not None:
        about |= {**varied.by, "varied": varied.name}
        decides |= {varied.name: dict(varied.by)}
        name += f"+{varied.name}"
    keys = {"dataset": DATASET, "task": form.task, "item": of.id, "model": None}
    return Case(form, name, ask.id, of, keys, (ItemPrompt(ask, about),), decides)


def ordinary_cases(benchmark: Benchmark, form: TaskForm) -> Iterator[Case]:
    """Every item that a form is asked of, in every condition."""
    for of, condition in cases(benchmark, form):
        yield case(form, of, condition, ask_of(of, form, condition))


@dataclass(frozen=True)
class Inside(Planned):
    """One chain read, broken and as it was, by a model whose internals are recorded."""

    model: str
    of: CausalItem
    units: dict[str, str]
    task: str = INTERNALS

    @property
    def item(self) -> str:
        return self.of.id


class Units:
    """Names the units of a run: the id is a hash of all that decides the result."""

    def __init__(self, config: C2FaithConfig) -> None:
        self.config = config
        self.forms = forms_of(config)
        if config.injection.kinds:
            addition_to("c2faith", "injection", "injection.kinds")
        self.variations = [addition.cases(config) for addition in varying().values()]
        self.references = {f.form.name: f for f in reference_forms(config, self.forms).values()}

    def items(self, benchmark: Benchmark) -> Iterator[Judged | Inside]:
        """Everything that is asked or read, in the order in which it is worked on."""
        c = self.config
        for model in c.models:
            judge_forms = self.forms if model in c.judge.model else {}
            asked = dict(judge_forms)
            if model == c.reference:
                asked |= self.references
            ordinary = (x for form in asked.values() for x in ordinary_cases(benchmark, form))
            yield from put_to(model, c.judge, c.seed, ordinary)
            if model in c.internals.model:
                # without stated marks, units keep the ids that they have
                unstated = {"marks"} if c.internals.marks is None else set()
                settings = c.internals.model_dump(mode="json", exclude=unstated)
                version = versions(measure=BROKEN_STEP)
                decided = decides(model, c.judge, c.seed)
                ids = UnitIds(**decided, settings=settings, **version)
                for item in benchmark.causal:
                    if not_inside(item):
                        continue
                    yield Inside(model, item, {INSIDE: ids.of(item=vars(item))})
            # last, so that ordinary asks are in the same batches as without varied ones
            for varied in self.variations:
                asks = (x for form in judge_forms.values() for x in varied(form, benchmark))
                yield from put_to(model, c.judge, c.seed, asks)
