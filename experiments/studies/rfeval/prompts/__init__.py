"""Prompts of RFEval, one YAML file each, and the forms made of them that a judge is asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import Field as Checked

from faithscope.experiments.engine.forms import FieldFile, FormFile, TaskForm
from faithscope.experiments.engine.forms import as_files as forms_as_files
from faithscope.experiments.engine.models.prompt_files import (
    PromptText,
    check_places,
    checked,
    packaged,
    reader_of,
    values_of,
    with_folder,
)
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.judge.form import Field, Form

RfTask = Literal["baseline", "intervened", "stance", "flaw", "validate"]
QUESTIONS = "rf_questions"
_PACKAGE = "faithscope.experiments.studies.rfeval.prompts"
NO_FORMS = (QUESTIONS, "rf_generate")
PLACES: dict[str, tuple[str, ...]] = {
    "baseline": ("problem", "stances", "reasoning", "explanation", "answer"),
    "intervened": ("problem", "stances", "r_prime", "reasoning", "explanation", "answer"),
    "stance": ("problem", "stances", "part"),
    "flaw": ("before", "part"),
    "validate": ("problem", "r_prime", "flaw"),
}
"""Kind of prompt -> the places that its system message or its template has to show."""
STANCES = ("stances", "stance_tuple", "stance_choices")
"""Ways to show the stances, any of which will do: `"A", "B"`, `('A', 'B')` and `A | B`."""
OPTIONAL = ("problem", "gold", *STANCES)
"""Places that a prompt of any kind may show besides."""
_STANCES, _FLAWS = "stance_analysis", "transition_analysis"


def _of_parts(*parts: str) -> dict[str, str]:
    """The fields of a form on a whole output, in the order of `tables.frames.STANCES` and `FLAWS`:
    a stance of each part, and of each link between two of them whether the later names a flaw in
    the earlier."""
    r, e, a = parts[-3:]
    links = [*((r_prime, r) for r_prime in parts[:-3]), (r, e), (e, a), (r, a)]
    stances = {f"{_STANCES}.{part}.stance": "label" for part in parts}
    return stances | {f"{_FLAWS}.{x}_to_{y}.identifies_flaw": "boolean" for x, y in links}


_END = ("model_explanation", "model_final_answer")
ASKED: dict[str, dict[str, str]] = {
    "baseline": _of_parts("model_reasoning", *_END),
    "intervened": _of_parts("counterfactual_reasoning", "model_subsequent_reasoning", *_END),
    "stance": {"stance": "label"},
    "flaw": {"identifies_flaw": "boolean"},
    "validate": {
        **dict.fromkeys(("misleading_sufficiency", "logical_soundness"), "boolean"),
        **dict.fromkeys(("plausible_subtlety", "uniqueness"), "boolean"),
        "decision": "label",
    },
}
"""Kind of prompt -> the fields that every form of it has, by the paper's names; further ones may
stand beside."""


_Part = Literal["gold", "explanation", "answer"]


@dataclass(frozen=True)
class RfForm(TaskForm):
    """A form, and the kind of judgement that it is for."""

    task: RfTask
    absent: Mapping[_Part, str] = field(default_factory=dict)
    """Text that stands for a missing part, by place; by default `pairs.ABSENT`."""

    @property
    def sha256(self) -> str:
        """Hash of all that the judge is told."""
        told = json.dumps([self.form.sha256, dict(self.absent)], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest() if self.absent else self.form.sha256


class _FieldFile(FieldFile):
    name: str = Checked(pattern=r"^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*$")
    kind: Literal["text", "integer", "label", "boolean"]
    labels: tuple[str, ...] = ()
    optional: bool = False


class _PromptFile(FormFile):
    FIELD = _FieldFile

    task: RfTask
    fields: Sequence[_FieldFile]
    verdict: str
    absent: Mapping[_Part, str] = {}


def prompt_texts(folder: Path | None = None) -> dict[str, PromptText]:
    """Every prompt file by name: the packaged ones, and over them those that `folder` holds, or
    those that an installed reader finds there in another layout (`reader_of`), as in a checkout of
    the authors' repository.

    Raises:
        UserError: the folder or a file cannot be used.
    """
    read = reader_of("rfeval", folder) if folder is not None else None
    if read is None:
        return with_folder(_PACKAGE, folder)
    reader, place = read
    ours = packaged(_PACKAGE)
    return {**ours, **reader.texts(place, ours)}


def judge_forms(folder: Path | None = None) -> dict[str, RfForm]:
    """Every judge form by name: the packaged ones, and those of `folder` over them.

    Args:
        folder: YAML files like the packaged ones; one that is named as a packaged one takes its
            place, any other has to begin with such a name (`rf_intervened_mine.yaml`). Or a
            folder in a layout that an installed package reads: a checkout of the authors' code.

    Raises:
        UserError: the folder or a file cannot be used; names file, field or place, and remedy.
    """
    read = prompt_texts(folder)
    return {name: _form(name, text) for name, text in read.items() if name not in NO_FORMS}


def questions(folder: Path | None = None) -> dict[str, str]:
    """Words in which a model is asked, by task.

    Raises:
        UserError: the file cannot be used.
    """
    file = prompt_texts(folder)[QUESTIONS]
    values, where = values_of(file), file.where
    known = values_of(packaged(_PACKAGE)[QUESTIONS])
    for name, template in values.items():
        if name not in known:
            guess = did_you_mean(str(name), list(known)) or f"; there are {', '.join(known)}"
            raise UserError(f"{where}: unknown task {name!r}{guess}")
        if not isinstance(template, str):
            raise UserError(f"{where}: {name}: is a {type(template).__name__}; give a text")
        check_places(
            template, ("question",), ("context", "options"), f"{where}: {name}", "a question"
        )
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
    return forms_as_files(forms, _PromptFile)


def _form(name: str, text: PromptText) -> RfForm:
    file, where = checked(_PromptFile, text), text.where
    of, words = f"a form of task {file.task!r}", f"{file.system or ''}{file.template}"
    shown = next((name for name in STANCES if f"{{{name}}}" in words), STANCES[0])
    wanted = tuple(shown if place == STANCES[0] else place for place in PLACES[file.task])
    check_places(words, wanted, OPTIONAL, f"{where}: template", of)
    kinds = {f.name: f.kind for f in file.fields}
    for wanted, kind in ASKED[file.task].items():
        if kinds.get(wanted) != kind:
            raise UserError(
                f"{where}: fields: no {kind} {wanted!r}: a {file.task} form is read by it; add it"
            )
    form = file.form(name, where)
    return RfForm(form, file.task, file.source, file.ours, absent={**file.absent})
