"""The prompts of C2-Faith, one YAML file each, and the forms made of them."""

from faithscope.experiments.studies.c2faith.prompts.forms import (
    PLACES,
    PlainPrompt,
    Task,
    TaskForm,
    acausal_prompt,
    as_files,
    judge_forms,
)

__all__ = ["PLACES", "PlainPrompt", "Task", "TaskForm", "acausal_prompt", "as_files", "judge_forms"]
