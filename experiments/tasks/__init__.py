"""Tasks: where questions come from, the words they are asked in, how answers are read.

To add one, write a file with a `Task` (see `task.py`) and list it in `TASKS`.
"""

from __future__ import annotations

from experiments.tasks.chains import SEQUENTIAL_MATH
from experiments.tasks.cues import CONFLICTING_CUE, SINGLE_CUE
from experiments.tasks.features import MULTI_FEATURE
from experiments.tasks.gsm8k import GSM8K
from experiments.tasks.planted_tasks import PLANTED, PLANTED_SELECT
from experiments.tasks.sentiment import SENTIMENT
from experiments.tasks.task import ANY_MODEL, LoadSettings, Task
from interp.errors import UserError, did_you_mean

__all__ = ["ANY_MODEL", "TASKS", "LoadSettings", "Task", "get_task"]

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        SINGLE_CUE,
        CONFLICTING_CUE,
        MULTI_FEATURE,
        SEQUENTIAL_MATH,
        SENTIMENT,
        GSM8K,
        PLANTED,
        PLANTED_SELECT,
    )
}


def get_task(name: str) -> Task:
    """The task called `name`.

    Raises:
        UserError: there is none; names the nearest.
    """
    if name not in TASKS:
        guess = did_you_mean(name, TASKS) or f"; known: {', '.join(TASKS)}"
        raise UserError(f"unknown task {name!r}{guess}")
    return TASKS[name]
