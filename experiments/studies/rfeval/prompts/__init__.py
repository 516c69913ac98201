"""The prompts of RFEval, one YAML file each, and the forms made of them."""

from faithscope.experiments.studies.rfeval.prompts.forms import (
    PLACES,
    RfForm,
    RfTask,
    as_files,
    judge_forms,
    questions,
    without_explanation,
)

__all__ = [
    "PLACES",
    "RfForm",
    "RfTask",
    "as_files",
    "judge_forms",
    "questions",
    "without_explanation",
]
