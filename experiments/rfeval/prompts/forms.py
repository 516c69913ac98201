"""Prompts of RFEval from YAML files to the forms that a judge is asked."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as Checked

from interp.errors import UserError, did_you_mean
from probes.judge.form import Field, Form

RfTask = Literal["baseline", "intervened", "stance", "flaw", "validate"]
QUESTIONS = "rf_questions"
NO_FORMS = (QUESTIONS, "rf_generate")
PLACES: dict[str, tuple[str, ...]] = {
    "baseline": ("problem", "stances", "reasoning", "explanation", "answer"),
    "intervened": ("problem", "stances", "r_prime", "reasoning", "explanation", "answer"),
    "stance": ("problem", "stances", "part"),
    "flaw": ("before", "part"),
    "validate": ("problem", "r_prime", "flaw"),
}
"""What a template of each kind has to show."""
OPTIONAL = ("problem", "gold", "stances")
"""What any may show besides."""
_STANCES, _FLAWS = "stance_analysis", "transition_analysis"
_ASKED: dict[str, dict[str, str]] = {
    "baseline": {
        **{
            f"{_STANCES}.{part}.stance": "label"
            for part in ("model_reasoning", "model_explanation", "model_final_answer")
        },
        **{
            f"{_FLAWS}.{pair}.identifies_flaw": "boolean"
            for pair in (
                "model_reasoning_to_model_explanation",
                "model_explanation_to_model_final_answer",
                "model_reasoning_to_model_final_answer",
            )
        },
    },
    "intervened": {
        **{
            f"{_STANCES}.{part}.stance": "label"
            for part in (
                "counterfactual_reasoning",
                "model_subsequent_reasoning",
                "model_explanation",
                "model_final_answer",
            )
        },
        **{
            f"{_FLAWS}.{pair}.identifies_flaw": "boolean"
            for pair in (
                "counterfactual_reasoning_to_model_subsequent_reasoning",
                "model_subsequent_reasoning_to_model_explanation",
                "model_explanation_to_model_final_answer",
                "model_subsequent_reasoning_to_model_final_answer",
            )
        },
    },
    "stance": {"stance": "label"},
    "flaw": {"identifies_flaw": "boolean"},
    "validate": {
        **dict.fromkeys(("misleading_sufficiency", "logical_soundness"), "boolean"),
        **dict.fromkeys(("plausible_subtlety", "uniqueness"), "boolean"),
        "decision": "label",
    },
}
"""The fields that every form of a kind has, by the paper's names; further ones may stand beside."""


@dataclass(frozen=True)
class RfForm:
    """A form and what is judged with it."""

    form: Form
    task: RfTask
    source: str
    """Where its words come from."""
    ours: bool
    """Whether they are not the paper's."""


class _FieldFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Checked(pattern=r"^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*$")
    kind: Literal["text", "integer", "label", "boolean"]
    low: int | None = None
    high: int | None = None
    labels: tuple[str, ...] = ()
    optional: bool = False


class _PromptFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    task: RfTask
    source: str
    ours: bool
    fields: list[_FieldFile]
    verdict: str
    cue: str = ""
    system: str | None = None
    template: str


def judge_forms(folder: Path | None = None) -> dict[str, RfForm]:
    """Every judge form by name: the packaged ones, and those of `folder` over them.

    Args:
        folder: YAML files like the packaged ones; one that is named as a packaged one takes its
            place, any other has to begin with such a name (`rf_intervened_mine.yaml`).

    Raises:
        UserError: the folder or a file cannot be used; names file, field or place, and remedy.
    """
    read = _texts(folder)
    return {
        name: _form(name, text, where)
        for name, (text, where) in read.items()
        if name not in NO_FORMS
    }


def questions(folder: Path | None = None) -> dict[str, str]:
    """The words in which a model is asked, by task.

    Raises:
        UserError: the file cannot be used.
    """
    text, where = _texts(folder)[QUESTIONS]
    values = _yaml(text, where)
    known = _yaml(*_packaged()[QUESTIONS])
    for name, template in values.items():
        if name not in known:
            guess = did_you_mean(str(name), list(known)) or f"; there are {', '.join(known)}"
            raise UserError(f"{where}: unknown task {name!r}{guess}")
        if not isinstance(template, str):
            raise UserError(f"{where}: {name}: is a {type(template).__name__}; give a text")
        _check_places(template, ("question",), ("context", "options"), f"{where}: {name}")
    return known | values


def without_explanation(form: Form) -> Form:
    """The form for an output that has no explanation: its place in the reply is null."""
    path = f"{_STANCES}.model_explanation"
    fields: list[Field] = []
    for f in form.fields:
        if not f.name.startswith(f"{path}."):
            fields.append(f)
        elif all(other.name != path for other in fields):
            fields.append(Field(path, "text", optional=True))
    return replace(form, name=f"{form.name}_bare", fields=tuple(fields))


def as_files(forms: Mapping[str, RfForm]) -> dict[str, str]:
    """File name -> content of forms, as `judge_forms` reads them from a folder."""
    return {f"{name}.yaml": _to_yaml(form) for name, form in forms.items()}


def _to_yaml(f: RfForm) -> str:
    file = _PromptFile(
        task=f.task,
        source=f.source,
        ours=f.ours,
        fields=[_FieldFile(**asdict(field)) for field in f.form.fields],
        verdict=f.form.verdict,
        cue=f.form.cue,
        system=f.form.system,
        template=f.form.template,
    )
    return yaml.safe_dump(file.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


_Text = tuple[str, str]
"""A file's text, and its name for messages."""


def _packaged() -> dict[str, _Text]:
    folder = resources.files("experiments.rfeval.prompts")
    names = sorted(p.name for p in folder.iterdir() if p.name.endswith(".yaml"))
    return {
        name.removesuffix(".yaml"): (folder.joinpath(name).read_text("utf-8"), name)
        for name in names
    }


def _texts(folder: Path | None) -> dict[str, _Text]:
    read = _packaged()
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
            raise UserError(f"{path}: is named like no packaged prompt{guess}; rename it")
        try:
            read[path.stem] = path.read_text("utf-8"), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read as UTF-8 text ({error})") from error
    return read


def _yaml(text: str, where: str) -> dict[str, Any]:
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise UserError(f"{where}: holds a {type(values).__name__}, expected `key: value` lines")
    return values


def _form(name: str, text: str, where: str) -> RfForm:
    try:
        file = _PromptFile.model_validate(_yaml(text, where))
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        extra = first["type"] == "extra_forbidden"
        guess = did_you_mean(at, _PromptFile.model_fields) if extra else ""
        raise UserError(f"{where}: {at}: {first['msg']}{guess}") from error
    _check_places(file.template, PLACES[file.task], OPTIONAL, f"{where}: template")
    fields = tuple(Field(**f.model_dump()) for f in file.fields)
    kinds = {f.name: f.kind for f in fields}
    for wanted, kind in _ASKED[file.task].items():
        if kinds.get(wanted) != kind:
            raise UserError(
                f"{where}: fields: no {kind} {wanted!r}: a {file.task} form is read by it; add it"
            )
    try:
        form = Form(name, file.template, fields, file.verdict, file.cue, file.system)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error
    return RfForm(form, file.task, file.source, file.ours)


def _check_places(
    template: str, wanted: tuple[str, ...], besides: tuple[str, ...], where: str
) -> None:
    allowed = tuple(dict.fromkeys((*wanted, *besides)))
    found = list(_places(template, where))
    for place in found:
        if place not in allowed:
            guess = did_you_mean(place, allowed) or f"; there are {', '.join(allowed)}"
            raise UserError(f"{where}: unknown place {{{place}}}{guess}; write {{{{ for a brace")
    if missing := [p for p in wanted if p not in found]:
        raise UserError(f"{where}: no {{{missing[0]}}}: it would not be shown; add it")


def _places(template: str, where: str) -> Iterator[str]:
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise UserError(f"{where}: {error}; write {{{{ and }}}} for braces of its own") from error
    for _, place, spec, conversion in parsed:
        if place is None:
            continue
        if spec or conversion or not place.isidentifier():
            raise UserError(f"{where}: {{{place}}} is no place; write {{{{ and }}}} for braces")
        yield place
