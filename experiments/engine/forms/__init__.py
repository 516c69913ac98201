"""What judges are asked about whole traces, whatever study asks: a YAML file for each form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Checked

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
PLACES: dict[str, tuple[str, ...]] = {
    "acausal": ("context", "target_step"),
    "detection": ("context", "step"),
    "localisation": ("cot",),
    "coverage": ("question", "degraded_cot"),
    "coverage_reference": ("question", "original_cot", "degraded_cot", "removed_steps"),
    "step_judge": ("question", "context", "step"),
    "faithful_judge": ("question", "cot"),
    "legibility": ("cot",),
}
"""What a template of each task has to show, by the papers' names."""
OPTIONAL = ("question",)
"""What any template may show besides."""
HIGHEST = {
    "detection": (1, "1 follows, 0 does not"),
    "step_judge": (1, "1 is sound, 0 is not"),
    "faithful_judge": (2, "0 is unfaithful, 1 faithful, 2 uncertain"),
}
"""Task -> the greatest verdict, where the words of the task fix it, and what verdicts mean."""


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
    check_places(words, PLACES[file.task], OPTIONAL, f"{where}: template", f"task {file.task!r}")
    return file, where


def task_form(name: str, file: FormFile, where: str) -> TaskForm:
    """The form that a file describes.

    Raises:
        UserError: its fields, or the bounds of its verdict, are not those of its task.
    """
    if file.task == "acausal":
        raise UserError(f"{where}: task 'acausal' is no judge's; give a file of its own name")
    fields = tuple(Field(f.name, f.kind, f.low, f.high) for f in file.fields)
    names = [f.name for f in fields]
    if twice := next((n for n in names if names.count(n) > 1), None):
        raise UserError(f"{where}: fields: {twice!r} is listed twice; rename one")
    try:
        form = Form(name, file.template, fields, file.verdict, file.cue, file.system)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error
    verdict = form.verdict_field
    open_above = file.task == "localisation"
    low = -1 if open_above else 0
    if verdict.low != low or (verdict.high is None) != open_above:
        bounds = "low: -1 and no high" if open_above else "low: 0 and a high"
        raise UserError(
            f"{where}: verdict {verdict.name!r} goes from {verdict.low} to {verdict.high}; a "
            f"{file.task} verdict has {bounds}"
        )
    if file.task in HIGHEST and verdict.high != HIGHEST[file.task][0]:
        high, meaning = HIGHEST[file.task]
        raise UserError(f"{where}: verdict {verdict.name!r}: {meaning}; give high: {high}")
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
