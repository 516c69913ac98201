"""Prompts of C2-Faith from YAML files to the forms that a judge is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict
from pydantic import Field as Checked

from faithscope.experiments.engine.models.prompt_files import (
    PromptText,
    check_places,
    checked,
    with_folder,
)
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Field, Form

Task = Literal["detection", "localisation", "coverage", "coverage_reference"]
ACAUSAL = "c2_acausal"
_PACKAGE = "faithscope.experiments.studies.c2faith.prompts"

PLACES: dict[str, tuple[str, ...]] = {
    "acausal": ("context", "target_step"),
    "detection": ("context", "step"),
    "localisation": ("cot",),
    "coverage": ("question", "degraded_cot"),
    "coverage_reference": ("question", "original_cot", "degraded_cot", "removed_steps"),
}
"""What a template of each task has to show, by the paper's names."""
OPTIONAL = ("question",)
"""What any template may show besides."""


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
        """`0-4` and so on, of a coverage form."""
        f = self.form.verdict_field
        return f"{f.low}-{f.high}"


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


class _FieldFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Checked(pattern=r"^[a-z_][a-z0-9_]*$")
    kind: Literal["text", "integer"]
    low: int | None = None
    high: int | None = None


class _PromptFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    task: Literal["acausal", "detection", "localisation", "coverage", "coverage_reference"]
    source: str
    ours: bool
    fields: list[_FieldFile] = []
    verdict: str = ""
    cue: str = ""
    system: str | None = None
    template: str


def judge_forms(folder: Path | None = None) -> dict[str, TaskForm]:
    """Every judge form by name: the packaged ones, and those of `folder` over them.

    Args:
        folder: YAML files like the packaged ones. A file named as one of them takes its place;
            any other has to begin with the name of a packaged one (`c2_detection_mine.yaml`)
            and is a form besides.

    Raises:
        UserError: the folder or a file cannot be used; names file, field or place, and remedy.
    """
    read = _read_all(folder)
    return {name: _form(name, *source) for name, source in read.items() if name != ACAUSAL}


def as_files(forms: Mapping[str, TaskForm]) -> dict[str, str]:
    """File name -> content of forms, as `judge_forms` reads them from a folder."""
    return {f"{name}.yaml": _to_yaml(form) for name, form in forms.items()}


def _to_yaml(f: TaskForm) -> str:
    file = _PromptFile(
        task=f.task,
        source=f.source,
        ours=f.ours,
        fields=[_field_file(field) for field in f.form.fields],
        verdict=f.form.verdict,
        cue=f.form.cue,
        system=f.form.system,
        template=f.form.template,
    )
    return yaml.safe_dump(file.model_dump(), sort_keys=False, allow_unicode=True)


def _field_file(field: Field) -> _FieldFile:
    known = {k: v for k, v in asdict(field).items() if k in _FieldFile.model_fields}
    return _FieldFile.model_validate(known)


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


def _read_all(folder: Path | None) -> dict[str, tuple[_PromptFile, str]]:
    return {name: _checked(f) for name, f in with_folder(_PACKAGE, folder).items()}


def _checked(text: PromptText) -> tuple[_PromptFile, str]:
    file, where = checked(_PromptFile, text), text.where
    of = f"task {file.task!r}"
    words = f"{file.system or ''}{file.template}"
    check_places(words, PLACES[file.task], OPTIONAL, f"{where}: template", of)
    return file, where


def _form(name: str, file: _PromptFile, where: str) -> TaskForm:
    if file.task == "acausal":
        raise UserError(f"{where}: task 'acausal' has one prompt, {ACAUSAL}.yaml; rename it")
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
    low = {"detection": 0, "localisation": -1}.get(file.task, 0)
    if verdict.low != low or (verdict.high is None) != open_above:
        bounds = "low: -1 and no high" if open_above else "low: 0 and a high"
        raise UserError(
            f"{where}: verdict {verdict.name!r} goes from {verdict.low} to {verdict.high}; a "
            f"{file.task} verdict has {bounds}"
        )
    if file.task == "detection" and verdict.high != 1:
        raise UserError(f"{where}: verdict {verdict.name!r}: 1 follows, 0 does not; give high: 1")
    return TaskForm(form, file.task, file.source, file.ours)


def prompt_rows() -> list[tuple[str, str]]:
    """Prompts that judges are asked, and where their words come from."""
    return [
        (name, f"{f.task.replace('_', ' ')}; {'our words' if f.ours else 'the words of the paper'}")
        for name, f in judge_forms().items()
    ]
