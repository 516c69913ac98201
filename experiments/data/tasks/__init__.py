"""Tasks: sources of questions, the words they are asked in, and parsers of answers.

To add one, write a file with a `Task` (see `task.py`) and list it in `TASKS`, which also has those
of installed packages (`faithscope new task NAME`).
"""

from __future__ import annotations

from functools import cache

from faithscope.experiments.data.tasks.ag_news import AG_NEWS
from faithscope.experiments.data.tasks.chains import (
    LONGER_MATH,
    SEQUENTIAL_MATH,
    WORD_PROBLEMS,
    WORKED_PROBLEMS,
)
from faithscope.experiments.data.tasks.cues import CONFLICTING_CUE, SINGLE_CUE
from faithscope.experiments.data.tasks.exams import ARC_CHALLENGE, COMMONSENSE_QA, MEDQA
from faithscope.experiments.data.tasks.features import MULTI_FEATURE
from faithscope.experiments.data.tasks.gsm8k import GSM8K
from faithscope.experiments.data.tasks.own import OWN
from faithscope.experiments.data.tasks.planted import (
    PLANTED,
    PLANTED_1,
    PLANTED_2,
    PLANTED_4,
    PLANTED_5,
    PLANTED_6,
    PLANTED_SELECT,
)
from faithscope.experiments.data.tasks.sentiment import SENTIMENT, SST2
from faithscope.experiments.data.tasks.step_by_step import AQUA, HLE_BIO, LOGIQA, TRUTHFULQA
from faithscope.experiments.data.tasks.task import (
    ANY_MODEL,
    DirectPrompt,
    LoadSettings,
    Task,
    variant,
)
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.extensions import extensions, why_broken

__all__ = [
    "ANY_MODEL",
    "TASKS",
    "DirectPrompt",
    "LoadSettings",
    "Task",
    "base_name",
    "get_task",
    "task_problem",
    "task_rows",
]

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        SINGLE_CUE,
        CONFLICTING_CUE,
        MULTI_FEATURE,
        SEQUENTIAL_MATH,
        LONGER_MATH,
        WORD_PROBLEMS,
        WORKED_PROBLEMS,
        SENTIMENT,
        SST2,
        GSM8K,
        AG_NEWS,
        MEDQA,
        COMMONSENSE_QA,
        ARC_CHALLENGE,
        LOGIQA,
        TRUTHFULQA,
        AQUA,
        HLE_BIO,
        OWN,
        PLANTED,
        PLANTED_SELECT,
        PLANTED_1,
        PLANTED_2,
        PLANTED_4,
        PLANTED_5,
        PLANTED_6,
    )
}
TASKS |= extensions("tasks", Task, taken=frozenset(TASKS))


def get_task(name: str) -> Task:
    """The task called `name`: one of `TASKS`, or `TASK:VARIANT` for one asked in other words.

    Raises:
        UserError: there is no such task; the message suggests the nearest.
    """
    if problem := task_problem(name):
        raise UserError(problem)
    return TASKS[name] if name in TASKS else _variant(name)


def task_problem(name: str) -> str | None:
    """Why `name` is no task, or None if it is one."""
    base, colon, chosen = name.partition(":")
    if problem := why_broken(base, "tasks"):
        return problem
    if base not in TASKS:
        guess = did_you_mean(base, TASKS) or f"; known: {', '.join(TASKS)}"
        return f"unknown task {base!r}{guess}"
    known = TASKS[base].variants
    if not colon or chosen in known:
        return None
    if not known:
        return f"task {base!r} has no variants, got {name!r}; write {base!r}"
    guess = did_you_mean(chosen, known) or f"; known: {', '.join(known)}"
    return f"unknown variant {chosen!r} of task {base!r}{guess}"


def base_name(name: str) -> str:
    """The base task of a name: `sst2` for `sst2:alternative`, and for `sst2`."""
    return name.partition(":")[0]


def task_rows() -> list[tuple[str, str]]:
    """(name, summary) of every task, as a list shows them."""
    varied = dict.fromkeys(name for task in TASKS.values() for name in task.variants)
    return [
        *((name, task.summary) for name, task in TASKS.items()),
        *((f"TASK:{name}", f"the same questions; {_OTHER_WORDS[name]}") for name in varied),
    ]


@cache
def _variant(name: str) -> Task:
    base, _, chosen = name.partition(":")
    return variant(TASKS[base], chosen)


_OTHER_WORDS = {
    "self_justification": "each step is to say why it is necessary (SLRC, 2.6)",
    "alternative": "the key points are to be broken down one by one (SLRC, 2.6)",
}
