"""What judges are asked about whole traces, whatever study asks: a YAML file for each form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic import Field as Checked

from faithscope.experiments.engine.models.prompt_files import check_places, checked, with_folder
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Field, Form

PLACES: Mapping[str, tuple[str, ...]] = {
    "step_judge": ("question", "context", "step"),
    "faithful_judge": ("question", "cot"),
}
"""What a template has to show, by the form's name."""


class _FieldFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Checked(pattern=r"^[a-z_][a-z0-9_]*$")
    kind: Literal["text", "integer"]
    low: int | None = None
    high: int | None = None


class _FormFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    source: str
    ours: bool
    fields: list[_FieldFile]
    verdict: str
    cue: str = ""
    system: str | None = None
    template: str


def trace_forms(folder: Path | None = None) -> dict[str, Form]:
    """The forms by name: the packaged ones, and those of `folder` over them.

    Raises:
        UserError: the folder or a file cannot be used; names file, field or place, and remedy.
    """
    forms = {}
    for name, text in with_folder(__name__, folder).items():
        file = checked(_FormFile, text)
        base = next(known for known in PLACES if name.startswith(known))
        check_places(file.template, PLACES[base], (), f"{text.where}: template", base)
        fields = tuple(Field(f.name, f.kind, f.low, f.high) for f in file.fields)
        try:
            forms[name] = Form(name, file.template, fields, file.verdict, file.cue, file.system)
        except ValueError as error:
            raise UserError(f"{text.where}: {error}") from error
    return forms
