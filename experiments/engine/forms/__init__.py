"""What judges are asked about whole traces, whatever study asks: a YAML file for each form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Checked

from faithscope.experiments.engine.forms.tasks import NO_STEP, TASKS, JudgedTask
from faithscope.experiments.engine.models.prompt_files import (
    PromptText,
    as_yaml,
    check_places,
    checked,
    packaged,
    with_folder,
)
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Field, Form

Task = Literal[
    "detection",
    "localisation",
    "coverage",
    "coverage_reference",
    "step_judge",
    "faithful_judge",
    "legibility",
]
REWRITING = "acausal"
"""Task of the prompt that has a model rewrite a step; no judge is asked it."""
OPTIONAL = ("question",)
"""Places that any template may show besides those of its task."""


@dataclass(frozen=True)
class TaskForm:
    """A form and what is judged with it."""

    form: Form
    task: Task
    source: str
    """Where its words come from."""
    ours: bool
    """Whether they are not the paper's."""

    @property
    def judged(self) -> JudgedTask:
        """What the form asks, and how its verdicts are read."""
        return TASKS[self.task]

    @property
    def scale(self) -> str:
        """`0-4` and so on, of a form whose verdict has bounds."""
        f = self.form.verdict_field
        return f"{f.low}-{f.high}"


class FieldFile(BaseModel):
    """A field of a reply."""

    model_config = ConfigDict(extra="forbid")

    name: str = Checked(pattern=r"^[a-z_][a-z0-9_]*$")
    kind: Literal["text", "integer"]
    low: int | None = None
    high: int | None = None


class FormFile(BaseModel):
    """A form's file."""

    model_config = ConfigDict(extra="forbid")

    task: Literal["acausal", Task]
    source: str
    ours: bool
    fields: list[FieldFile] = []
    verdict: str = ""
    cue: str = ""
    system: str | None = None
    template: str


def trace_forms(folder: Path | None = None) -> dict[str, TaskForm]:
    """The forms by name: the packaged ones, and those of `folder` over them.

    Args:
        folder: YAML files like the packaged ones. A file named as one of them takes its place;
            any other has to begin with the name of a packaged one (`step_judge_mine.yaml`) and is
            a form besides.

    Raises:
        UserError: the folder or a file cannot be used; names file, field or place, and remedy.
    """
    read = with_folder(__name__, folder)
    return {name: task_form(name, *form_file(text)) for name, text in read.items()}


def shared(prefix: str) -> dict[str, PromptText]:
    """The packaged files whose names begin so, for a study that has others beside them."""
    return {name: text for name, text in packaged(__name__).items() if name.startswith(prefix)}


def form_file(text: PromptText) -> tuple[FormFile, str]:
    """What a file holds, its places checked, and what messages call it.

    Raises:
        UserError: it does not fit.
    """
    file, where = checked(FormFile, text), text.where
    words = f"{file.system or ''}{file.template}"
    rewriting = file.task == REWRITING
    shows = ("context", "target_step") if rewriting else TASKS[file.task].shows
    check_places(words, shows, OPTIONAL, f"{where}: template", f"task {file.task!r}")
    return file, where


def task_form(name: str, file: FormFile, where: str) -> TaskForm:
    """The form that a file describes.

    Raises:
        UserError: its fields, or the bounds of its verdict, are not those of its task.
    """
    if file.task == REWRITING:
        raise UserError(f"{where}: task {REWRITING!r} is no judge's; give a file of its own name")
    fields = tuple(Field(f.name, f.kind, f.low, f.high) for f in file.fields)
    names = [f.name for f in fields]
    if twice := next((n for n in names if names.count(n) > 1), None):
        raise UserError(f"{where}: fields: {twice!r} is listed twice; rename one")
    try:
        form = Form(name, file.template, fields, file.verdict, file.cue, file.system)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error
    verdict = form.verdict_field
    task = TASKS[file.task]
    open_above, low = task.names_a_step, NO_STEP if task.names_a_step else 0
    if verdict.low != low or (verdict.high is None) != open_above:
        bounds = "low: -1 and no high" if open_above else "low: 0 and a high"
        raise UserError(
            f"{where}: verdict {verdict.name!r} goes from {verdict.low} to {verdict.high}; a "
            f"{file.task} verdict has {bounds}"
        )
    if task.highest is not None and verdict.high != task.highest:
        says = f"verdict {verdict.name!r}: {task.meaning}; give high: {task.highest}"
        raise UserError(f"{where}: {says}")
    return TaskForm(form, file.task, file.source, file.ours)


def as_files(forms: Mapping[str, TaskForm]) -> dict[str, str]:
    """File name -> content of forms, as they are read from a folder."""
    return {f"{name}.yaml": _to_yaml(form) for name, form in forms.items()}


def _to_yaml(f: TaskForm) -> str:
    file = FormFile(
        task=f.task,
        source=f.source,
        ours=f.ours,
        fields=[_field_file(field) for field in f.form.fields],
        verdict=f.form.verdict,
        cue=f.form.cue,
        system=f.form.system,
        template=f.form.template,
    )
    return as_yaml(file.model_dump())


def _field_file(field: Field) -> FieldFile:
    known = {k: v for k, v in asdict(field).items() if k in FieldFile.model_fields}
    return FieldFile.model_validate(known)


def form_rows(forms: Mapping[str, TaskForm]) -> list[tuple[str, str]]:
    """Forms, and where their words come from."""
    return [
        (name, f"{f.task.replace('_', ' ')}; {'our words' if f.ours else 'the words of the paper'}")
        for name, f in forms.items()
    ]
