"""A probe joined to tasks, config and traces, of which probes know nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from faithscope.probes import PROBES
from faithscope.probes.probe import Word

if TYPE_CHECKING:
    from faithscope.experiments.data.tasks import Task
    from faithscope.experiments.studies.slrc.config import RunConfig
    from faithscope.interp.model import Model
    from faithscope.interventions.trace import Question, Trace
    from faithscope.probes.record import Record
    from faithscope.probes.text_model import TextModel


def measure(
    probe: str, model: Model | TextModel, task: Task, trace: Trace, config: RunConfig
) -> list[Record]:
    """The records of one probe of one trace."""
    # Not at the top: it brings torch, which checking a config need not wait for.
    from faithscope.experiments.data.traces import asking_for

    asking = asking_for(model, task, trace)
    return PROBES[probe].measure(model, trace, asking, config.settings(probe))


def words(probe: str, task: Task, question: Question) -> dict[str, Any]:
    """Everything of a task that the numbers of a probe depend on."""
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
}
