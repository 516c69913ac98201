"""The prompts of C2-Faith, one YAML file each, and the forms made of them."""

from faithscope.experiments.engine.forms import PLACES, Task, TaskForm, as_files
from faithscope.experiments.studies.c2faith.prompts.forms import (
    PlainPrompt,
    acausal_prompt,
    judge_forms,
)

__all__ = ["PLACES", "PlainPrompt", "Task", "TaskForm", "acausal_prompt", "as_files", "judge_forms"]
