"""Judge forms that all studies share: the prompts of judged tasks, one YAML file per form.

A form is the wording of a judged task (`tasks`): template, reply fields and verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, field_validator
from pydantic import Field as Checked

from faithscope.experiments.engine.forms.own import CHAIN_PLACES, TASK, is_own, own_form
from faithscope.experiments.engine.forms.tasks import NO_STEP, REWRITING, TASKS, JudgedTask
from faithscope.experiments.engine.models.prompt_files import (
    PromptText,
    as_yaml,
    check_places,
    checked,
    packaged,
    with_folder,
)
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.extensions import extensions, note_broken, why_broken
from faithscope.probes.judge.form import Field, Form

OPTIONAL = ("question",)
"""Placeholders that any template may have besides those of its task."""


@dataclass(frozen=True)
class TaskForm:
    """A form together with the name of its judged task and the source of its words."""

    form: Form
    task: str
    source: str
    """Source of the form's words: paper and section, or a note."""
    ours: bool
    """Whether the words are faithscope's, not a paper's."""
    own: Mapping[str, JudgedTask] = field(default_factory=dict)
    """Of a form of one's own: field of the reply that has a score -> its meaning, the verdict
    first."""
    text: str = ""
    """Of a form of one's own: its file, word for word."""

    @property
    def judged(self) -> JudgedTask:
        """The judged task of the form, which says how verdicts are read."""
        return self.own[self.form.verdict] if self.own else TASKS[self.task]

    @property
    def of_name(self) -> dict[str, JudgedTask]:
        """Name -> meaning: of the form for its verdict, `FORM.FIELD` for every other field of the
        reply that has a score."""
        others = {f"{self.form.name}.{n}": t for n, t in self.own.items() if t is not self.judged}
        return {self.form.name: self.judged, **others}

    @property
    def scale(self) -> str:
        """Lowest and highest verdict as text, such as `0-4`."""
        f = self.form.verdict_field
        return f"{f.low}-{f.high}"


class FieldFile(BaseModel):
    """Schema of one reply field in a form file (`probes.judge.form.Field`)."""

    model_config = ConfigDict(extra="forbid")

    name: str = Checked(pattern=r"^[a-z_][a-z0-9_]*$")
    kind: Literal["text", "integer"]
    low: int | None = None
    high: int | None = None


class FormFile(BaseModel):
    """Base of the schemas of form files, which name their tasks."""

    model_config = ConfigDict(extra="forbid")
    FIELD: ClassVar[type[FieldFile]] = FieldFile
    """Schema of a field."""

    task: str
    source: str
    ours: bool
    fields: Sequence[FieldFile]
    verdict: str
    cue: str = ""
    system: str | None = None
    template: str

    def form(self, name: str, where: str) -> Form:
        """The form that the file describes.

        Args:
            name: name of the form.
            where: name of the file, for messages.

        Raises:
            UserError: the fields do not fit each other, or the verdict.
        """
        fields = tuple(Field(**field.model_dump()) for field in self.fields)
        try:
            return Form(name, self.template, fields, self.verdict, self.cue, self.system)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from error

    @classmethod
    def text_of(cls, form: TaskForm) -> str:
        """YAML content of a form, as a file of this schema."""
        own = cls.FIELD.model_fields
        fields = [{n: v for n, v in vars(f).items() if n in own} for f in form.form.fields]
        of_form = ("verdict", "cue", "system", "template")
        known = {"fields": fields} | {n: getattr(form.form, n) for n in of_form}
        values = {n: known[n] if n in known else getattr(form, n) for n in cls.model_fields}
        return as_yaml(cls.model_validate(values).model_dump(mode="json"))


class TaskFile(FormFile):
    """Schema of the form file of a judged task."""

    fields: Sequence[FieldFile] = ()
    verdict: str = ""

    @field_validator("task")
    @classmethod
    def _known(cls, task: str) -> str:
        if problem := why_broken(task, "judged_tasks"):
            raise ValueError(problem)
        if task not in (known := [*TASKS, REWRITING]):
            guess = did_you_mean(task, known) or f"; known: {', '.join(known)}"
            raise ValueError(f"unknown task {task!r}{guess}")
        return task


def trace_forms(folder: Path | None = None, any_name: bool = False) -> dict[str, TaskForm]:
    """All shared forms by name: the packaged ones and those of installed packages, replaced or
    extended by those of `folder`.

    Args:
        folder: folder of YAML files like the packaged ones. A file with the name of a packaged one
            replaces it. Any other name must begin with that of a packaged one
            (`step_judge_mine.yaml`) and adds a form. A form of one's own (`own`) may have any name.
        any_name: whether other files may, too; those of a run's folder, which `own_path` named.

    Raises:
        UserError: the folder or a file cannot be used; names file, field or placeholder, and
            remedy.
    """
    installed = {
        name: PromptText(text, f"form {name!r} of an installed package")
        for name, text in extensions(
            "judge_forms", str, taken=frozenset(packaged(__name__))
        ).items()
    }
    free = (lambda text: True) if any_name else is_own
    read = with_folder(__name__, folder, installed, free)
    forms = {}
    for name, text in read.items():
        try:
            forms[name] = read_form(name, text)
        except UserError as error:
            if text is not installed.get(name):
                raise
            note_broken("judge_forms", name, error)
    return forms


def shared(prefix: str) -> dict[str, PromptText]:
    """The packaged form files whose names begin with `prefix`, for a study that adds its own."""
    return {name: text for name, text in packaged(__name__).items() if name.startswith(prefix)}


def read_form(name: str, text: PromptText) -> TaskForm:
    """The form of a file: one of one's own, or a wording of a task.

    Raises:
        UserError: as for `own.own_form`, `form_file` and `task_form`.
    """
    if not is_own(text.text):
        return task_form(name, *form_file(text, CHAIN_PLACES))
    form, file, tasks = own_form(name, text)
    return TaskForm(form, TASK, file.source, True, tasks, text.text)


def own_path(name: str) -> Path | None:
    """The file that an entry of a list of forms names by its path; None for the name of a form."""
    is_path = name.endswith((".yaml", ".yml")) or "/" in name
    return Path(name).expanduser() if is_path else None


def form_at(path: Path, key: str) -> TaskForm:
    """The form of a file that a config names by its path; its name is that of the file.

    Args:
        key: the config key, for messages.

    Raises:
        UserError: the file cannot be read, has a name that cannot be a form's, or is no form.
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w-]*", path.stem):
        raise UserError(f"{key}: {str(path)!r}: name the file with letters, digits, _ and - alone")
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{key}: {str(path)!r} cannot be read ({error}); check the path") from error
    return read_form(path.stem, PromptText(text, str(path)))


def form_file(text: PromptText, besides: Sequence[str] = OPTIONAL) -> tuple[TaskFile, str]:
    """The parsed and checked content of a form file, and the name of the file for messages.

    Args:
        besides: placeholders that the template may have besides those of its task.

    Raises:
        UserError: the content does not fit the schema, or the template lacks a placeholder of its
            task or has an unknown one.
    """
    file, where = checked(TaskFile, text), text.where
    words = f"{file.system or ''}{file.template}"
    rewriting = file.task == REWRITING
    shows = ("context", "target_step") if rewriting else TASKS[file.task].shows
    check_places(words, shows, tuple(besides), f"{where}: template", f"task {file.task!r}")
    return file, where


def task_form(name: str, file: TaskFile, where: str) -> TaskForm:
    """The form that a form file describes.

    Args:
        name: name of the form.
        file: content of the file.
        where: name of the file, for messages.

    Raises:
        UserError: the fields, or the bounds of the verdict, do not fit the task.
    """
    if file.task == REWRITING:
        raise UserError(f"{where}: task {REWRITING!r} is no judge's; give a file of its own name")
    form = file.form(name, where)
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


def as_files(forms: Mapping[str, TaskForm], schema: type[FormFile] = TaskFile) -> dict[str, str]:
    """File name -> YAML content of forms, in the format that forms are read from."""
    return {f"{name}.yaml": form.text or schema.text_of(form) for name, form in forms.items()}


def form_rows(forms: Mapping[str, TaskForm]) -> list[tuple[str, str]]:
    """(name, task and source of the words) of every form, for `faithscope list prompts`."""
    return [
        (name, f"{_asks(f)}; {'our words' if f.ours else 'the words of the paper'}")
        for name, f in forms.items()
    ]


def _asks(form: TaskForm) -> str:
    if form.task != TASK:
        return form.task.replace("_", " ")
    return "a property" if form.judged.is_property else "an error"
