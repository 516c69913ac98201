"""The tasks of the planted models, which know no other language.

The prompt is the question alone. In the reprompt framing the steps that are left follow the
question, and the answer cue ends what the model reads, as it does in the prefix framing.
"""

from __future__ import annotations

from functools import partial

from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.data.tasks import planted
from faithscope.experiments.data.tasks.task import Task


def _task(name: str, summary: str) -> Task:
    return Task(
        name=name,
        summary=summary,
        kind="label",
        load=partial(planted.planted_questions, name),
        cot_prompt=planted.prompt,
        necessity_prompt=lambda question, text: planted.reprompt(question, [text]),
        sufficiency_prompt=lambda question, text: planted.reprompt(question, [text]),
        answer_cue=planted.ANSWER_CUE,
        reprompt_cue=planted.ANSWER_CUE,
        parse=planted.parse,
        parse_continuation=planted.parse,
        labels=lambda question, trace: planted.labels(question),
        models=tuple(f"planted:{p.name}" for p in PLANTS.values() if p.task == name),
    )


PLANTED = _task("planted", "chains of additions modulo 10, for the planted models")
PLANTED_SELECT = _task("planted_select", "the same, asking for the result of one named step")
PLANTED_2 = _task("planted_2", "the same in two steps, for the planted models of that length")
PLANTED_5 = _task("planted_5", "the same in five steps, for the planted models of that length")
