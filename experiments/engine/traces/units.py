"""Items of a run over traces (a question that one model is asked), and what decides their units.

This module connects probes with tasks, config and traces, of which probes know nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.api import API, DECIDES, DECIDES_API
from faithscope.experiments.data.asking import asking_for
from faithscope.experiments.data.given.question_of_chain import QuestionOfChain
from faithscope.experiments.data.tasks import Task
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.traces.config import TracesConfig
from faithscope.experiments.engine.traces.stages import STAGES, TRACE
from faithscope.interventions.trace import AnswerKind, Question
from faithscope.probes import PROBES
from faithscope.probes.probe import Word
from faithscope.probes.record import record
from faithscope.probes.screening import Screen
from faithscope.probes.text_model import TextModel

if TYPE_CHECKING:
    from faithscope.interp.model import Model
    from faithscope.interventions.trace import Trace
    from faithscope.probes.record import Record
    from faithscope.probes.settings import Settings


@dataclass(frozen=True)
class Item(Planned):
    """One question that one model is asked, or whose given chain it reads."""

    model: str
    of: Task
    question: Question
    units: dict[str, str]
    given: QuestionOfChain | None = None
    """The given chain, if the chain was written elsewhere."""
    stages = STAGES

    @property
    def task(self) -> str:
        return self.of.name

    @property
    def item(self) -> str:
        return self.question.id

    @property
    def probes(self) -> tuple[str, ...]:
        """Names of the item's probes, in the order in which they are taken."""
        return tuple(stage for stage in self.units if stage != TRACE)


def api_decides(config: TracesConfig) -> dict[str, Any]:
    """The settings of a config that decide the replies of an API model."""
    values = config.api.model_dump(mode="json")
    names = (*DECIDES, *DECIDES_API, "steps_from")
    return {name: values[name] for name in names} | {"seed": config.seed}


def measure(
    probe: str,
    model: Model | TextModel,
    task: Task,
    trace: Trace,
    config: TracesConfig,
    screens: dict[int, Screen] | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> list[Record]:
    """The records of one probe of one trace; or a record of why its answers cannot be read.

    Args:
        screens: `id` of a trace -> its screen, which the probes of the trace share. A missing one
            is added.
        more: what the probe takes besides, by name.
    """
    given = trace.origin.given
    if given is not None and (reason := unanswerable(probe, given.kind)):
        return [record(trace, probe, "", config.seed, excluded=reason)]
    asking = asking_for(model, task, trace)
    if not PROBES[probe].samples_steps:
        return PROBES[probe].measure(model, trace, asking, config.settings(probe), **more)
    own = Screen(model, trace, asking, config.steps.screen)
    screen = own if screens is None else screens.setdefault(id(trace), own)
    trace = trace.sampling(config.steps.sample, config.seed, screen.steps)
    records = PROBES[probe].measure(model, trace, asking, config.settings(probe), **more)
    if (inclusion := trace.inclusion) is None:
        return records
    drawn = {"inclusion": inclusion, **screen.fields}
    return [r if r.get("excluded") else r | drawn for r in records]


UNKNOWN_KIND = "answer_kind_unknown"
"""Why a probe that reads or scores answers leaves out a given chain: neither file nor config gives
the kind of its answers (`traces.kind`)."""
_ABOUT_ANSWERS = {"labels", "reprompts", "direct", "asked"}


def unanswerable(stage: str, kind: AnswerKind | None) -> str | None:
    """Why a probe cannot measure a given chain with answers of `kind`; None if it can.

    Args:
        kind: kind of the chain's answers; None if unknown.
    """
    if kind is not None or stage not in PROBES:
        return None
    return UNKNOWN_KIND if _ABOUT_ANSWERS & set(PROBES[stage].words) else None


class _NotLoaded(Exception):
    """A measure asked something of a model that is not loaded."""


class _Unloaded:
    """Stands for a model that is not loaded: whatever is asked of it ends the measure. Measures ask
    it before they import torch, which a dry run need not wait for."""

    def __getattr__(self, name: str) -> Any:
        raise _NotLoaded(name)


def known_exclusion(item: Item, probe: str, settings: Settings, trace: Trace) -> str | None:
    """Why a probe will leave out a given chain, by the checks that its measure makes before it asks
    anything of the model; None if there are none, or not of all its records.

    Args:
        trace: the chain without ids (`forecast.without_tokens`).
    """
    if reason := unanswerable(probe, None if item.given is None else item.given.kind):
        return reason
    closed = item.model.startswith(API)
    model: Any = TextModel(item.model, lambda message: None) if closed else _Unloaded()
    asking = asking_for(model if closed else None, item.of, trace)
    try:
        records = PROBES[probe].measure(model, trace, asking, settings)
    except Exception:  # the measure needs the model, or the ids that this trace lacks
        return None
    reasons = [r.get("excluded") for r in records]
    return reasons[0] if reasons and all(reasons) else None


def words(probe: str, task: Task, question: Question) -> dict[str, Any]:
    """Every text of a task that the numbers of a probe depend on."""
    return {word: _WORDS[word](task, question) for word in PROBES[probe].words}


_WORDS: dict[Word, Callable[[Task, Question], Any]] = {
    "cue": lambda task, question: task.answer_cue,
    "labels": lambda task, question: task.labels(question, None),
    "reprompts": lambda task, question: (
        task.necessity_prompt(question, "\0"),
        task.sufficiency_prompt(question, "\0"),
        task.reprompt_cue,
    ),
    "direct": lambda task, question: [
        (p.name, p.user, p.system) for p in task.direct_prompts(question)
    ],
    "asked": lambda task, question: task.cot_prompt(question),
    "spoken": lambda task, question: bool(task.direct_prompts(question)),
    "cues": lambda task, question: (
        [
            (kind, cue.message, cue.text, cue.mention)
            for answer in question.labels or ()
            for kind, cue in task.cues(question, answer).items()
        ]
        if task.cues
        else None
    ),
}
