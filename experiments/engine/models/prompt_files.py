"""Prompts as YAML files: those that a benchmark ships, and a user's folder that overrides them."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from faithscope.interp.documents import yaml_of
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.extensions import broken, entries, extensions

M = TypeVar("M", bound=BaseModel)


class PromptText(NamedTuple):
    """The text of one prompt file."""

    text: str
    where: str
    """Name of the file in messages."""


def packaged(package: str) -> dict[str, PromptText]:
    """Name without ending -> prompt file of a package."""
    folder = resources.files(package)
    names = sorted(p.name for p in folder.iterdir() if p.name.endswith(".yaml"))
    return {
        name.removesuffix(".yaml"): PromptText(folder.joinpath(name).read_text("utf-8"), name)
        for name in names
    }


def with_folder(
    package: str,
    folder: Path | None,
    besides: Mapping[str, PromptText] = MappingProxyType({}),
    free: Callable[[str], bool] = lambda text: False,
) -> dict[str, PromptText]:
    """The prompt files of a package, overridden by those of `folder`.

    A file named like a packaged one replaces it; the name of any other must begin with a packaged
    name (`c2_detection_mine.yaml`), and the file is added.

    Args:
        besides: files of another package that count as its own.
        free: whether a file with this text may have any name.

    Raises:
        UserError: the folder is missing or empty, or a file cannot be read or has another name.
    """
    read = dict(sorted((packaged(package) | dict(besides)).items()))
    if folder is None:
        return read
    if not folder.is_dir():
        raise UserError(f"prompts: no such folder: {str(folder)!r}; check the path")
    files = sorted((*folder.glob("*.yaml"), *folder.glob("*.yml")))
    if not files:
        others = ", ".join(entry.name for entry in entries("prompts")) or "no installed package"
        raise UserError(
            f"prompts: {folder} holds no .yaml file; copy one there to edit it (folders in another "
            f"layout are read by {others})"
            + "".join(f"; {why}" for why in broken("prompts").values())
        )
    known = sorted(read)
    for path in files:
        try:
            read[path.stem] = PromptText(path.read_text("utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read as UTF-8 text ({error})") from error
        alike = path.stem in known or path.stem.startswith(tuple(f"{k}_" for k in known))
        if not alike and not free(read[path.stem].text):
            guess = did_you_mean(path.stem, known) or f"; there are {', '.join(known)}"
            raise UserError(
                f"{path}: is named like no packaged prompt{guess}; a prompt besides them is named "
                f"{known[0]}_… and the like"
            )
    return read


class PromptReader(Protocol):
    """Reader of a folder of prompts in a layout of its own: an entry `STUDY.NAME` of the group
    `faithscope.prompts`; a module with these functions is one."""

    def found(self, folder: Path) -> Path | None:
        """Where in a folder the prompts of this layout begin; None where there are none."""
        ...

    def texts(self, code: Path, packaged: Mapping[str, PromptText]) -> Mapping[str, PromptText]:
        """The prompt files that replace packaged ones, by name."""
        ...

    def notes(self, code: Path) -> list[str]:
        """Sentences on packaged prompts that stay in use."""
        ...


def reader_of(study: str, folder: Path) -> tuple[PromptReader, Path] | None:
    """The installed reader whose layout a folder has, and where in it the prompts begin; None for a
    folder of YAML files."""
    for name, reader in extensions("prompts").items():
        if name.startswith(f"{study}.") and (place := reader.found(folder)) is not None:
            return reader, place
    return None


def values_of(file: PromptText) -> dict[str, Any]:
    """The mapping that a prompt file holds.

    Raises:
        UserError: the file is no YAML mapping.
    """
    try:
        values = yaml_of(file.text)
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
    """The content of a prompt file, checked against the model `kind`.

    Raises:
        UserError: the content does not fit; the message says the first problem.
    """
    try:
        return kind.model_validate(values_of(file))
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        extra = first["type"] == "extra_forbidden"
        guess = did_you_mean(at, kind.model_fields) if extra else ""
        says = first["msg"].removeprefix("Value error, ")
        raise UserError(f"{file.where}: {f'{at}: ' if at else ''}{says}{guess}") from error


def check_places(
    template: str, wanted: tuple[str, ...], besides: tuple[str, ...], where: str, of: str
) -> None:
    """Check that a template has all required places, and no unknown ones.

    Args:
        of: name of what is asked, for messages: "task 'detection'".

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
