"""Prompts of C2-Faith, one YAML file each, and the forms made of them that a judge is asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from faithscope.experiments.engine.forms import (
    TaskFile,
    TaskForm,
    as_files,
    form_file,
    shared,
    task_form,
)
from faithscope.experiments.engine.models.prompt_files import with_folder
from faithscope.interp.errors import UserError

__all__ = ["PlainPrompt", "TaskForm", "acausal_prompt", "as_files", "judge_forms"]
ACAUSAL = "c2_acausal"
_PACKAGE = "faithscope.experiments.studies.c2faith.prompts"


@dataclass(frozen=True)
class PlainPrompt:
    """A prompt whose reply is taken as text."""

    name: str
    template: str
    source: str

    def fill(self, **values: str) -> str:
        return self.template.format(**values)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.template.encode()).hexdigest()


def judge_forms(folder: Path | None = None) -> dict[str, TaskForm]:
    """Every judge form by name: the packaged ones, and those of `folder` over them.

    The paper's forms of detection, localisation and coverage stand in `engine/forms`, where other
    studies reach them, too.

    Args:
        folder: YAML files like the packaged ones. A file named as one of them takes its place;
            any other has to begin with the name of a packaged one (`c2_detection_mine.yaml`)
            and is a form besides.

    Raises:
        UserError: the folder or a file cannot be used; names file, field or place, and remedy.
    """
    forms = {}
    for name, (file, where) in _read_all(folder).items():
        if name != ACAUSAL:
            if file.task == "acausal":
                raise UserError(
                    f"{where}: task 'acausal' has one prompt, {ACAUSAL}.yaml; rename it"
                )
            forms[name] = task_form(name, file, where)
    return forms


def acausal_prompt(folder: Path | None = None) -> PlainPrompt:
    """The prompt that has a model rewrite a step (C2-Faith, appendix F.1), or `folder`'s.

    Raises:
        UserError: as `judge_forms`.
    """
    file, where = _read_all(folder)[ACAUSAL]
    if file.task != "acausal":
        raise UserError(f"{where}: task {file.task!r}; {ACAUSAL}.yaml is of task 'acausal'")
    if file.fields or file.verdict or file.cue or file.system:
        raise UserError(f"{where}: its reply is plain text; take out fields, verdict, cue, system")
    return PlainPrompt(ACAUSAL, file.template, file.source)


def _read_all(folder: Path | None) -> dict[str, tuple[TaskFile, str]]:
    read = with_folder(_PACKAGE, folder, shared("c2_"))
    return {name: form_file(text) for name, text in read.items()}
