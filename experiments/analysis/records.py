"""Stored records as analyses read them, packed to save memory."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar, overload

from faithscope.experiments.config.api import API

T = TypeVar("T")
Record = Mapping[str, Any]
"""One flat record, as stored."""
Place = tuple[str, str, str]
"""(model, task, item): the place of a trace and of all measurements on it."""


def has_tokens(trace: Record) -> bool:
    """Whether the ids of a trace are tokens; those of an API model's trace are characters."""
    return not trace["model"].startswith(API)


def place_of(record: Record) -> Place:
    return record["model"], record["task"], str(record["item"])


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

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)


class Packer:
    """Packs the records of a run to save memory; they read like the originals.

    Equal strings, and equal lists of strings or booleans, become one object; lists of floats become
    arrays.
    """

    def __init__(self) -> None:
        self._fields: dict[tuple[str, ...], dict[str, int]] = {}
        self._known: dict[Any, Any] = {}

    def record(self, fields: Mapping[str, Any]) -> Record:
        names = tuple(fields)
        at = self._fields.get(names)
        if at is None:
            at = self._fields[names] = {sys.intern(name): i for i, name in enumerate(names)}
        return PackedRecord(at, tuple(map(self._packed, fields.values())))

    def _packed(self, value: Any) -> Any:
        if isinstance(value, str):
            return sys.intern(value)
        if not isinstance(value, list):
            return value
        kinds = set(map(type, value))
        if kinds == {float}:
            return array("d", value)
        items = tuple(value)
        if kinds <= {str, NoneType} or kinds <= {bool, NoneType}:
            return self._known.setdefault(items, items)
        return items


class Records(Sequence[Record]):
    """A fixed set of records with a cache of results computed from them, since many tables need the
    same groups of records and the same numbers of a group."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._all = tuple(records)
        self._made: dict[Hashable, Any] = {}

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Record]: ...
    def __getitem__(self, at: int | slice) -> Record | Sequence[Record]:
        return self._all[at]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._all)

    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        """The cached result named `what`, computed by `make` when first asked for."""
        if what not in self._made:
            self._made[what] = make()
        return self._made[what]


def by_probe(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each probe, in their order."""

    def make() -> dict[str, list[Record]]:
        of_probe: dict[str, list[Record]] = {}
        for r in records:
            of_probe.setdefault(r["probe"], []).append(r)
        return of_probe

    return once(records, by_probe, make)


def once(records: Iterable[Record], what: Hashable, make: Callable[[], T]) -> T:
    """`Records.once`; for records of other types, which may change, computed at every call."""
    return records.once(what, make) if isinstance(records, Records) else make()
