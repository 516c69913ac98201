"""The probes that a run can ask for: each joined to the tasks, the config and the traces.

A probe in `probes` knows neither; here its words and settings are gathered. Cheap to import:
nothing here loads torch until a measure is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.config import RunConfig
    from experiments.tasks import Task
    from interp.model import Model
    from interventions.trace import Question, Trace
    from probes.record import Record


@dataclass(frozen=True)
class Probe:
    """One measure that a run can ask for."""

    name: str
    summary: str
    measure: Callable[[Model, Task, Trace, RunConfig], list[Record]]
    settings: Callable[[RunConfig], dict[str, Any]]
    """Everything of the config that its numbers depend on."""
    words: Callable[[Task, Question], dict[str, Any]]
    """Everything of the task that its numbers depend on."""
    branches: Callable[[int, RunConfig], int]
    """Continuations asked about, for a trace of so many steps."""
    on_excluded: bool = False
    """Whether it also runs where the trace cannot be edited: it asks about the question alone."""


def _slrc(model: Model, task: Task, trace: Trace, config: RunConfig) -> list[Record]:
    from experiments.traces import asking_for
    from probes.slrc import SlrcSettings, slrc

    c = config.slrc
    settings = SlrcSettings(
        framings=tuple(c.framings),
        readings=tuple(c.readings),
        shuffles=c.shuffles,
        edits=tuple(c.edits),
        answer_tokens=c.answer_tokens,
        length_normalise=c.length_normalise,
        seed=config.seed,
        regenerate_tokens=c.regenerate_tokens,
    )
    return slrc(model, trace, asking_for(model, task, trace), settings)


def _slrc_settings(config: RunConfig) -> dict[str, Any]:
    return config.slrc.model_dump(mode="json") | {"seed": config.seed}


def _slrc_words(task: Task, question: Question) -> dict[str, Any]:
    return {
        "necessity": task.necessity_prompt(question, "\0"),
        "sufficiency": task.sufficiency_prompt(question, "\0"),
        "cues": (task.answer_cue, task.reprompt_cue),
        "labels": task.labels(question, None),
    }


def _slrc_branches(steps: int, config: RunConfig) -> int:
    c = config.slrc
    return len(c.framings) * (1 + steps * (len(c.edits) + 1) + c.shuffles)


PROBES: dict[str, Probe] = {
    "slrc": Probe(
        "slrc",
        "necessity, sufficiency, order sensitivity and their edits (Step-Level Reasoning Capacity)",
        _slrc,
        _slrc_settings,
        _slrc_words,
        _slrc_branches,
    ),
}
