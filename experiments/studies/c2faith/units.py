"""The units of work of a C2-Faith run: every judgement, and every look inside; reads no weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from faithscope.experiments.config.judge import Reading
from faithscope.experiments.engine.models.judges import STAGES, decides
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.units import UnitIds, versions
from faithscope.experiments.studies.c2faith.benchmark.injection import (
    Injected,
    drawn_chains,
    inject,
    variants,
)
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.forms_of_config import (
    forms_of,
    injections_of,
    reference_forms,
)
from faithscope.experiments.studies.c2faith.inside import INTERNALS, not_inside
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.prompts_of_items import Condition, ask_of, cases
from faithscope.probes.broken_chain import BROKEN_STEP
from faithscope.probes.judge.form import Ask

INSIDE = "broken_step"
INJECTED = "+injected"
"""Suffix of the task name for asks with a text put into their chain."""


@dataclass(frozen=True)
class Judged(Planned):
    """One ask put to one judge."""

    model: str
    form: TaskForm
    ask: Ask
    of: CausalItem | CoverageItem
    condition: Condition | None
    """Condition of the chain; None for coverage."""
    units: dict[str, str]
    """Stage -> unit id: one for each way of reading the verdict."""
    injected: Injected | None = None
    """Text that was put into the chain; None for an ordinary ask."""

    @property
    def task(self) -> str:
        """Name of the form, with `INJECTED` behind it if a text was put into the chain."""
        return self.form.form.name + (INJECTED if self.injected else "")

    @property
    def item(self) -> str:
        return self.ask.id


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
        self.forms, self.kinds = forms_of(config), injections_of(config)
        self.references = {f.form.name: f for f in reference_forms(config, self.forms).values()}

    @cached_property
    def decided(self) -> dict[str, dict[str, Any]]:
        """Model -> the settings that decide all that it replies."""
        return {m: decides(m, self.config.judge, self.config.seed) for m in self.config.models}

    def items(self, benchmark: Benchmark) -> Iterator[Judged | Inside]:
        """Everything that is asked or read, in the order in which it is worked on."""
        c = self.config
        for model in c.models:
            judge_forms = self.forms if model in c.judge.model else {}
            asked = dict(judge_forms)
            if model == c.reference:
                asked |= self.references
            for form in asked.values():
                yield from self._judged(model, form, benchmark)
            if model in c.internals.model:
                # without stated marks, units keep the ids that they have
                unstated = {"marks"} if c.internals.marks is None else set()
                settings = c.internals.model_dump(mode="json", exclude=unstated)
                version = versions(measure=BROKEN_STEP)
                ids = UnitIds(**self.decided[model], settings=settings, **version)
                for item in benchmark.causal:
                    if not_inside(item):
                        continue
                    yield Inside(model, item, {INSIDE: ids.of(item=vars(item))})
            # last, so that ordinary asks are in the same batches as without injected ones
            for form in judge_forms.values():
                yield from self._injected(model, form, benchmark)

    def _judged(self, model: str, form: TaskForm, benchmark: Benchmark) -> Iterator[Judged]:
        ids = self._ids(model, form)
        for of, condition in cases(benchmark, form):
            ask = ask_of(of, form, condition)
            units = {STAGES[r]: ids[r].of(**_about(ask)) for r in ids}
            yield Judged(model, form, ask, of, condition, units)

    def _injected(self, model: str, form: TaskForm, benchmark: Benchmark) -> Iterator[Judged]:
        settings, seed, ids = self.config.injection, self.config.seed, self._ids(model, form)
        items = (*benchmark.causal, *benchmark.coverage)
        chains = drawn_chains((i.chain for i in items), settings.chains, seed)
        for kind, demand in variants(self.kinds, settings.demands):
            for of, condition in cases(benchmark, form):
                changed = inject(of, form, condition, kind, demand, seed)
                if of.chain not in chains or changed is None:
                    continue
                ask, injected = changed
                decides = _about(ask) | {"injected": asdict(injected)}
                units = {STAGES[r]: ids[r].of(**decides) for r in ids}
                yield Judged(model, form, ask, of, condition, units, injected)

    def _ids(self, model: str, form: TaskForm) -> dict[Reading, UnitIds]:
        return {
            r: UnitIds(**self.decided[model], reading=r, form=form.form.sha256)
            for r in self.config.judge.readings_of(model)
        }


def _about(ask: Ask) -> dict[str, Any]:
    return {"ask": ask.id, "about": {"values": dict(ask.values), "high": ask.high}}
