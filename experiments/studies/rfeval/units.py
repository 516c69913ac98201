"""The units of work of an RFEval run: outputs, tests, readings and judgements; reads no weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from faithscope.experiments.config.api import API
from faithscope.experiments.config.judge import Reading
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.models.judges import check_stages, decides, stage_of
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.units import UnitIds, versions
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.items import CONDITIONS, Condition, Item
from faithscope.experiments.studies.rfeval.judging.stepwise import KINDS, Kind
from faithscope.experiments.studies.rfeval.prompts import RfForm, judge_forms, questions
from faithscope.experiments.studies.rfeval.subjects.parsing import PARTS
from faithscope.experiments.studies.rfeval.subjects.subjects import Subject, subjects_of

OUTPUTS: dict[Condition, str] = {"baseline": "rf_baseline", "intervened": "rf_intervened"}
"""The stages in which the two outputs of an item are written."""
TESTS = "rf_tests"
LOG_PROBS = "rf_log_probs"
INSIDE = "rf_inside"
VERSIONS = {TESTS: 3, LOG_PROBS: 2, INSIDE: 5}
"""Versions of how the stages measure; see `probes.probe.Probe.version`."""
JUDGED = "rf_judged"
"""Stage of the judgements of whole outputs; `judged_stage` appends the judge."""
STEPS: dict[Reading, str] = {"generated": "rf_steps", "scored": "rf_steps_scored"}
"""Stage of the step-by-step judgements, per reading; `steps_stage` appends the judge."""


@dataclass(frozen=True)
class Pair(Planned):
    """One item put to one model, and all that is done about it."""

    model: str
    of: Item
    units: dict[str, str]

    @property
    def task(self) -> str:
        return self.of.task

    @property
    def item(self) -> str:
        return self.of.id


Batches = Mapping[str, Sequence[Sequence[Pair]]]
"""Model -> one worker's pairs, by batches."""


@dataclass(frozen=True)
class RfUnits:
    """Every pair of a run, and what its models and judges are asked with."""

    config: RFEvalConfig
    items: tuple[Item, ...]
    subjects: Mapping[str, Subject]
    forms: Mapping[Condition, RfForm]
    step_forms: Mapping[Kind, RfForm]
    """Forms of the judgements step by step."""
    words: Mapping[str, str]
    """Words in which the models are asked, by task; the items are posed in them."""
    pairs: tuple[Pair, ...] = ()

    def of(self, model: str) -> list[Pair]:
        return [p for p in self.pairs if p.model == model]


def units_of(config: RFEvalConfig, items: Sequence[Item]) -> RfUnits:
    """Everything that is asked about some items in a run.

    Raises:
        ConfigError: two judges of one stage.
        UserError: prompts or model files that cannot be used.
    """
    folder = config.prompts_folder
    forms, words = judge_forms(folder), questions(folder)
    whole = RfUnits(
        config,
        tuple(item.posed(words, config.naming) for item in items),
        subjects_of(config),
        {condition: forms[f"rf_{condition}"] for condition in CONDITIONS},
        {kind: forms[f"rf_{kind}"] for kind in KINDS},
        words,
    )
    return replace(whole, pairs=tuple(_Names(whole).pairs()))


def judged_stage(judge: str) -> str:
    """Names the stage in which a judge reads outputs; it differs for every judge of a run."""
    return stage_of(JUDGED, judge)


def steps_stage(judge: str, reading: Reading) -> str:
    """Names the stage in which a judge reads steps, by how its verdicts are read."""
    return stage_of(STEPS[reading], judge)


def first_of_tasks(items: Iterable[Item], n: int | None) -> set[str]:
    """Ids of the first `n` items of each task; of all items if `n` is None."""
    ids_of_task: dict[str, list[str]] = {}
    for item in items:
        ids_of_task.setdefault(item.task, []).append(item.id)
    return {i for ids in ids_of_task.values() for i in ids[:n]}


class _Names:
    """Names the units of a run: the id is a hash of all that decides the result."""

    def __init__(self, whole: RfUnits) -> None:
        self.whole, self.config = whole, whole.config
        config = self.config
        shared = {"schema": SCHEMA, "seed": config.seed}
        self.outputs = {
            name: UnitIds(**shared, **s.decides(config.generate.batch_size))
            for name, s in whole.subjects.items()
        }
        self.others = UnitIds(**shared, **versions(parts=PARTS))
        forms = whole.forms.values()
        self.judges = {judge: self._judged(judge, forms) for judge in config.judge.model}
        check_stages(self.judges)
        how = {"most_steps": config.per_step.most_steps}
        self.by_step: dict[tuple[str, Reading], UnitIds] = {
            (judge, reading): self._judged(judge, whole.step_forms.values(), reading=reading, **how)
            for judge in config.per_step.judge
            for reading in config.readings_by_step(judge)
        }

    def _judged(self, judge: str, forms: Iterable[RfForm], **how: Any) -> UnitIds:
        return UnitIds(
            **decides(judge, self.config.judge, self.config.seed),
            **versions(parts=PARTS),
            forms=[form.sha256 for form in forms],
            naming=self.config.naming,
            paper_compat=self.config.paper_compat,
            **how,
        )

    def pairs(self) -> Iterator[Pair]:
        stepwise = first_of_tasks(self.whole.items, self.config.per_step.items)
        for model in self.whole.subjects:
            for item in self.whole.items:
                yield Pair(model, item, dict(self._units(model, item, item.id in stepwise)))

    def _units(self, model: str, item: Item, by_step: bool) -> Iterator[tuple[str, str]]:
        c, subjects = self.config, self.whole.subjects
        output_units = {}
        for condition, stage in OUTPUTS.items():
            about = {"item": item.sha256, "asked": item.asked, "condition": condition}
            output_units[condition] = self.outputs[model].of(**about)
            yield stage, output_units[condition]
        if item.tests is not None and c.tests.run != "never":
            limits = c.tests.model_dump(mode="json", exclude={"run"})
            yield TESTS, self._other(TESTS, output_units, limits=limits)
        if c.log_probs and item.options and not model.startswith(API):
            how = {"naming": c.naming, "dtype": subjects[model].dtype}
            yield LOG_PROBS, self._other(LOG_PROBS, output_units, **how)
        if model in c.inside.model:
            inside_settings = c.inside.model_dump(mode="json", exclude={"model"})
            how = {"naming": c.naming, "dtype": subjects[model].dtype, "inside": inside_settings}
            yield INSIDE, self._other(INSIDE, output_units, **how)
        judged = {
            j: ids.of(outputs=output_units, item=item.sha256) for j, ids in self.judges.items()
        }
        for judge, unit in judged.items():
            yield judged_stage(judge), unit
        for (judge, reading), ids in self.by_step.items() if by_step else ():
            # which pairs are asked about depends on how they were judged whole
            yield steps_stage(judge, reading), ids.of(outputs=output_units, judged=judged[judge])

    def _other(self, stage: str, outputs: Mapping[str, str], **how: Any) -> str:
        version = versions(measure=VERSIONS[stage])
        return self.others.of(stage=stage, outputs=outputs, **version, **how)
