"""Prompts as YAML files: those that a benchmark ships, and a user's folder that goes over them."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from faithscope.interp.errors import UserError, did_you_mean

M = TypeVar("M", bound=BaseModel)


class PromptText(NamedTuple):
    """One file."""

    text: str
    where: str
    """What messages call it."""


def packaged(package: str) -> dict[str, PromptText]:
    """The files of a package, by name without their ending."""
    folder = resources.files(package)
    names = sorted(p.name for p in folder.iterdir() if p.name.endswith(".yaml"))
    return {
        name.removesuffix(".yaml"): PromptText(folder.joinpath(name).read_text("utf-8"), name)
        for name in names
    }


def with_folder(
    package: str, folder: Path | None, besides: Mapping[str, PromptText] = MappingProxyType({})
) -> dict[str, PromptText]:
    """The files of a package, and of `folder` over them.

    A file that is named as a packaged one takes its place; any other has to begin with such a
    name (`c2_detection_mine.yaml`) and stands besides.

    Args:
        besides: files of another package that count as its own.

    Raises:
        UserError: no such folder, nothing in it, a file that cannot be read or is named otherwise.
    """
    read = dict(sorted((packaged(package) | dict(besides)).items()))
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
                f"{known[0]}_… and the like"
            )
        try:
            read[path.stem] = PromptText(path.read_text("utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read as UTF-8 text ({error})") from error
    return read


def values_of(file: PromptText) -> dict[str, Any]:
    """What a file holds.

    Raises:
        UserError: it is no YAML mapping.
    """
    try:
        values = yaml.safe_load(file.text)
    except yaml.YAMLError as error:
        raise UserError(f"{file.where}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise UserError(
            f"{file.where}: holds a {type(values).__name__}, expected `key: value` lines"
        )
    return values


def as_yaml(values: Mapping[str, Any]) -> str:
    """Values as the text of a prompt file."""
    return yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True)


def checked(kind: type[M], file: PromptText) -> M:
    """What a file holds, as `kind` has it.

    Raises:
        UserError: it does not fit; the first thing that is wrong.
    """
    try:
        return kind.model_validate(values_of(file))
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        extra = first["type"] == "extra_forbidden"
        guess = did_you_mean(at, kind.model_fields) if extra else ""
        raise UserError(f"{file.where}: {at}: {first['msg']}{guess}") from error


def check_places(
    template: str, wanted: tuple[str, ...], besides: tuple[str, ...], where: str, of: str
) -> None:
    """That a template shows all that it has to, and nothing that there is not.

    Args:
        of: what is being asked, for messages: "task 'detection'".

    Raises:
        UserError: a place is missing, unknown, or no place.
    """
    allowed = tuple(dict.fromkeys((*wanted, *besides)))
    places = list(_places(template, where))
    for place in places:
        if place not in allowed:
            guess = did_you_mean(place, allowed) or f"; there are {', '.join(allowed)}"
            raise UserError(
                f"{where}: unknown place {{{place}}} for {of}{guess}; write {{{{ and }}}} for "
                "braces"
            )
    if missing := [p for p in wanted if p not in places]:
        raise UserError(
            f"{where}: no {{{missing[0]}}}: it would not be shown; {of} needs {', '.join(wanted)}"
        )


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
