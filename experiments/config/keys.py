"""Keys of config classes (which keys and sections a class has), and values by dotted key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel


def section_of(kind: type[BaseModel], key: str) -> type[BaseModel] | None:
    """Class of a section of a config class, also of one that may be null; None if the key is no
    section."""
    field = kind.model_fields.get(key)
    annotation = field.annotation if field else None
    is_union = get_origin(annotation) in (UnionType, Union)
    for option in get_args(annotation) if is_union else (annotation,):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None


def section_at(kind: type[BaseModel], key: Sequence[str | int]) -> type[BaseModel] | None:
    """Class of the section at the path `key`; None if there is none."""
    section: type[BaseModel] | None = kind
    for part in key:
        section = section_of(section, str(part)) if section else None
    return section


def has_key(kind: type[BaseModel], key: Sequence[str]) -> bool:
    """Whether a config class has a key, or a key whose value is a mapping that may hold it."""
    for part in key:
        if part not in kind.model_fields:
            return False
        section = section_of(kind, part)
        if section is None:
            return True
        kind = section
    return True


def keys_of(kind: type[BaseModel], place: str = "") -> Iterator[str]:
    """Yields all keys of a config class, dotted, and the names of its sections."""
    for name in kind.model_fields:
        yield place + name
        if section := section_of(kind, name):
            yield from keys_of(section, f"{place}{name}.")


def by_key(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a config by dotted key; a section that stands as a whole is split into its keys."""
    split: dict[str, Any] = {}
    for key, value in values.items():
        whole = isinstance(value, dict) and "." not in key
        split |= {f"{key}.{name}": v for name, v in value.items()} if whole else {key: value}
    return split


def as_overrides(values: Mapping[str, Any]) -> list[str]:
    """Values by dotted key as entries `key.sub=value`, which `load.load_config` takes."""
    return [f"{key}={_yaml(value)}" for key, value in values.items()]


def _yaml(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=1e9, allow_unicode=True)
    return re.sub(r"\n(\.\.\.\n)?$", "", text)
