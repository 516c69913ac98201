"""Prompts of C2-Faith from YAML files to the forms that a judge is asked."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as Checked

from interp.errors import UserError, did_you_mean
from probes.judge.form import Field, Form

Task = Literal["detection", "localisation", "coverage", "coverage_reference"]
ACAUSAL = "c2_acausal"

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
    return {name: _form(name, *found) for name, found in read.items() if name != ACAUSAL}


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
    packaged = resources.files("experiments.c2faith.prompts")
    read = {
        name.removesuffix(".yaml"): _checked(packaged.joinpath(name).read_text("utf-8"), name)
        for name in sorted(p.name for p in packaged.iterdir() if p.name.endswith(".yaml"))
    }
    if folder is None:
        return read
    if not folder.is_dir():
        raise UserError(f"prompts: no such folder: {str(folder)!r}; check the path")
    files = sorted((*folder.glob("*.yaml"), *folder.glob("*.yml")))
    if not files:
        raise UserError(f"prompts: {folder} holds no .yaml file; copy one there to edit it")
    known = sorted(read)
    for path in files:
        if path.stem not in known and not path.stem.startswith(tuple(f"{k}_" for k in known)):
            guess = did_you_mean(path.stem, known) or f"; there are {', '.join(known)}"
            raise UserError(
                f"{path}: is named like no packaged prompt{guess}; a prompt besides them is named "
                "c2_detection_… and the like"
            )
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read as UTF-8 text ({error})") from error
        read[path.stem] = _checked(text, str(path))
    return read


def _checked(text: str, where: str) -> tuple[_PromptFile, str]:
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise UserError(f"{where}: holds a {type(values).__name__}, expected `key: value` lines")
    try:
        file = _PromptFile.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        known = _PromptFile.model_fields
        guess = did_you_mean(at, known) if first["type"] == "extra_forbidden" else ""
        raise UserError(f"{where}: {at}: {first['msg']}{guess}") from error
    _check_places(file, where)
    return file, where


def _check_places(file: _PromptFile, where: str) -> None:
    wanted = PLACES[file.task]
    allowed = tuple(dict.fromkeys((*wanted, *OPTIONAL)))
    found = list(_places(file.template, where))
    for place in found:
        if place not in allowed:
            guess = did_you_mean(place, allowed) or f"; there are {', '.join(allowed)}"
            raise UserError(
                f"{where}: template: unknown place {{{place}}} for task {file.task!r}{guess}; "
                "write {{ and }} for braces"
            )
    if missing := [p for p in wanted if p not in found]:
        raise UserError(
            f"{where}: template: no {{{missing[0]}}}: the judge would not see it; task "
            f"{file.task!r} needs {', '.join(wanted)}"
        )


def _places(template: str, where: str) -> Iterable[str]:
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise UserError(
            f"{where}: template: {error}; write {{{{ and }}}} for braces of its own"
        ) from error
    for _, place, spec, conversion in parsed:
        if place is None:
            continue
        if spec or conversion or not place.isidentifier():
            raise UserError(
                f"{where}: template: {{{place}}} is no place; write {{{{ and }}}} for braces"
            )
        yield place


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
