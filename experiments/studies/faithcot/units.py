"""The units of work of FaithCoT-Bench for one model and one question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

import yaml

from faithscope.experiments.config.base import expanded
from faithscope.experiments.config.study import Stage, by_name
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.forms import trace_forms
from faithscope.experiments.engine.models.judges import check_stages, decides, stage_of
from faithscope.experiments.engine.traces.plan import TracePlan
from faithscope.experiments.engine.traces.stages import STAGES as TRACE_STAGES
from faithscope.experiments.engine.traces.stages import TRACE
from faithscope.experiments.engine.traces.units import Item
from faithscope.experiments.engine.units import UnitIds, versions
from faithscope.experiments.studies.faithcot.config import FaithCotConfig
from faithscope.experiments.studies.faithcot.shuffling import SHUFFLED, Shuffled, shuffled
from faithscope.interventions.trace import Question
from faithscope.probes import PROBES
from faithscope.probes.judge.form import Form

WRITTEN = "written_edits"
EDITED = "edited_answers"
STEP_JUDGE, FAITHFUL_JUDGE = "step_judge", "faithful_judge"
JUDGES = (STEP_JUDGE, FAITHFUL_JUDGE)
"""Stages of judges, to which the judge's name is appended (`stage_of`); also the names of their
forms."""
VERSIONS = {SHUFFLED: 1, EDITED: 2}
"""Stage -> version of its records, raised when their meaning changes
(`probes.probe.Probe.version`)."""
STAGES = {
    **TRACE_STAGES,
    **by_name(
        # The question is asked again whether or not the trace is usable.
        Stage(SHUFFLED),
        Stage(WRITTEN, (TRACE,), measures=False),
        Stage(EDITED, (TRACE,)),
        *(Stage(form, (TRACE,)) for form in JUDGES),
    ),
}
EDITS = ("mistake", "paraphrase", "distortion")
"""Kinds of edit that a judge writes for a step: a mistake, a paraphrase, a distorted meaning."""


@dataclass(frozen=True)
class Pair(Item):
    """An item with the units of this study, beside those of its trace and probes."""

    stages = STAGES

    @property
    def probes(self) -> tuple[str, ...]:
        return tuple(stage for stage in self.units if stage in PROBES)


Batches = Mapping[str, Sequence[Sequence[Pair]]]
"""Model -> batches of the pairs that one worker handles."""


@dataclass(frozen=True)
class FaithUnits:
    """All pairs of a run, and the forms that judges are asked with."""

    config: FaithCotConfig
    traces: TracePlan
    forms: Mapping[str, Form]
    pairs: tuple[Pair, ...]

    def of(self, model: str) -> list[Pair]:
        return [p for p in self.pairs if p.model == model]


@cache
def edit_prompts() -> Mapping[str, str]:
    """Kind of edit -> prompt for the judge model that writes it."""
    file = resources.files("faithscope.experiments.studies.faithcot").joinpath("prompts.yaml")
    return yaml.safe_load(file.read_text("utf-8"))


def shown_question(question: Question) -> str:
    """Text of a question for judges and writers of edits, with lettered options."""
    labels, options = question.labels or (), question.options or ()
    if question.kind != "choice":
        return question.text
    listed = (f"{a}. {text}" for a, text in zip(labels, options, strict=True))
    return "\n".join((question.text, *listed))


def reordered(question: Question, config: FaithCotConfig) -> Shuffled:
    """The question with shuffled options, as the run asks it again."""
    return shuffled(question, config.seed, config.detectors.paper_compat)


def units_of(config: FaithCotConfig, traces: TracePlan) -> FaithUnits:
    """All units of a run, built from its plan of traces.

    Raises:
        ConfigError: two judges of one stage.
        UserError: forms that cannot be used.
    """
    forms = trace_forms(expanded(config.prompts))
    check_stages(config.judges)
    names = _Names(config, {name: forms[name].form for name in JUDGES})
    pairs = tuple(
        Pair(
            **{f.name: getattr(item, f.name) for f in fields(item) if f.name != "units"},
            units={**item.units, **dict(names.of(item))},
        )
        for item in traces.items
    )
    return FaithUnits(config, traces, names.forms, pairs)


class _Names:
    """Builds the ids of units, each a hash of everything that decides the unit's result."""

    def __init__(self, config: FaithCotConfig, forms: Mapping[str, Form]) -> None:
        self.config, self.forms = config, forms
        self.shared = UnitIds(schema=SCHEMA, seed=config.seed)
        self.judged = {
            (form, judge): self._judge(judge, form=forms[form].sha256)
            for judge in config.judges
            for form in JUDGES
        }
        if config.writer is not None:
            self.written = self._judge(
                config.writer, prompts=dict(edit_prompts()), steps=config.edits.steps
            )

    def _judge(self, judge: str, **how: Any) -> UnitIds:
        assert self.config.judge is not None
        return UnitIds(**decides(judge, self.config.judge, self.config.seed), **how)

    def of(self, item: Item) -> Iterator[tuple[str, str]]:
        trace = item.units[TRACE]
        if self._shuffles(item):
            asked = item.of.cot_prompt(reordered(item.question, self.config).question)
            yield SHUFFLED, self._other(SHUFFLED, trace=trace, asked=asked)
        if self.config.writer is not None:
            written = self.written.of(trace=trace)
            yield WRITTEN, written
            of_task = {
                "cue": item.of.answer_cue,
                "reprompt": item.of.necessity_prompt(item.question, "\0"),
                **self.config.generation.decides_of_probes(),
            }
            yield EDITED, self._other(EDITED, trace=trace, written=written, **of_task)
        for (form, judge), ids in self.judged.items():
            yield stage_of(form, judge), ids.of(trace=trace)

    def _shuffles(self, item: Item) -> bool:
        given = item.given
        # If the chain was written for another prompt, the answer could change for that reason, too.
        asked = given and given.chain.prompt in (None, item.of.cot_prompt(item.question))
        may = given is None or (asked and self.config.detectors.shuffle_given)
        return item.question.kind == "choice" and bool(may)

    def _other(self, stage: str, **decides: Any) -> str:
        return self.shared.of(stage=stage, **versions(measure=VERSIONS[stage]), **decides)
