"""The tasks of the planted models, which know no other language.

The prompt is the question alone. In the reprompt framing the steps that are left follow the
question, and the answer cue ends what the model reads, as it does in the prefix framing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from experiments.tasks import planted
from experiments.tasks.task import LoadSettings, Task
from interventions.trace import Question


def _task(
    name: str,
    summary: str,
    load: Callable[[LoadSettings], Iterable[Question]],
    models: tuple[str, ...],
) -> Task:
    return Task(
        name=name,
        summary=summary,
        kind="label",
        load=load,
        cot_prompt=planted.prompt,
        necessity_prompt=lambda question, text: planted.reprompt(question, [text]),
        sufficiency_prompt=lambda question, text: planted.reprompt(question, [text]),
        answer_cue=planted.ANSWER_CUE,
        reprompt_cue=planted.ANSWER_CUE,
        parse=planted.parse,
        parse_continuation=planted.parse,
        labels=lambda question, trace: planted.labels(question),
        models=models,
    )


PLANTED = _task(
    "planted",
    "chains of additions modulo 10, for the planted models",
    planted.planted_questions,
    ("planted:faithful", "planted:hint*"),
)
PLANTED_SELECT = _task(
    "planted_select",
    "the same, asking for the result of one named step",
    planted.planted_select_questions,
    ("planted:select",),
)
