"""Stored records as analyses read them, packed to save memory."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import compress
from types import NoneType
from typing import Any

from faithscope.experiments.config.api import API

Record = Mapping[str, Any]
"""One flat record, as stored."""
Place = tuple[str, str, str]
"""(model, task, item): the place of a trace and of all measurements on it."""


def has_tokens(trace: Record) -> bool:
    """Whether the ids of a trace are tokens; those of an API model's trace are characters."""
    return not trace["model"].startswith(API)


def place_of(record: Record) -> Place:
    return record["model"], record["task"], str(record["item"])


def asked_id(question: Mapping[str, Any]) -> str:
    """The id that all samples of a stored question share (`Question.asked_id`); "" for a question
    that is answered once."""
    if (sample := question.get("sample")) is None:
        return ""
    return question["id"].removesuffix(f"#{sample}")


class PackedRecord(Record):
    """A record that stores only its values; records with the same fields share one field index."""

    __slots__ = ("_at", "_values")

    def __init__(self, at: Mapping[str, int], values: Sequence[Any]) -> None:
        """
        Args:
            at: field -> its place among the values.
        """
        self._at = at
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[self._at[name]]

    def get(self, name: str, default: Any = None) -> Any:
        at = self._at.get(name)
        return default if at is None else self._values[at]

    def __contains__(self, name: object) -> bool:
        return name in self._at

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)


class Packer:
    """Packs the records of a run to save memory; they read like the originals.

    Equal strings, and equal lists of strings or booleans, become one object; lists of floats become
    arrays.
    """

    def __init__(self, without: Container[str] = ()) -> None:
        """
        Args:
            without: fields that packed records lack.
        """
        self._without = without
        self._fields: dict[tuple[str, ...], tuple[dict[str, int], tuple[bool, ...]]] = {}
        self._known: dict[Any, Any] = {}

    def record(self, fields: Mapping[str, Any]) -> Record:
        names = tuple(fields)
        if names not in self._fields:
            kept = [name for name in names if name not in self._without]
            at = {sys.intern(name): i for i, name in enumerate(kept)}
            self._fields[names] = at, tuple(name in at for name in names)
        at, kept = self._fields[names]
        values = compress(fields.values(), kept)
        packed = self._packed
        return PackedRecord(at, tuple([packed(v) if type(v) in (str, list) else v for v in values]))

    def _packed(self, value: str | list[Any]) -> Any:
        if isinstance(value, str):
            return sys.intern(value)
        kinds = set(map(type, value))
        if kinds == {float}:
            return array("d", value)
        items = tuple(value)
        if kinds <= {str, NoneType} or kinds <= {bool, NoneType}:
            return self._known.setdefault(items, items)
        return items
