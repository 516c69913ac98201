"""Index of the stored units of a run folder: where in the files the line of each unit lies.

Only what decides on the work to do is kept in memory, some hundred bytes per unit. The records
themselves are long; they are read from the disk one unit at a time, or all at once for the tables.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from faithscope.experiments.engine.append import damaged, whole_lines
from faithscope.experiments.engine.units import Head, Key, Unit, read_head, read_unit
from faithscope.experiments.files import StoreError, write_atomically

ARRAYS = ".arrays"
"""Ending of the file that holds the arrays of a record file."""


def beside(record_file: Path) -> Path:
    """The file that holds the arrays of a record file's units."""
    return record_file.with_suffix(ARRAYS)


def _heads(path: Path) -> Iterator[tuple[int, bytes, Head, bool]]:
    """Yields (offset, line, head, whether its arrays are there) for every line of a record file."""
    size = 0
    for offset, line in whole_lines(path):
        try:
            head = read_head(line)
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(path, offset, error, "its item is redone") from error
        if head.arrays_end > size:
            # the size is read again for such a line, since another worker may append to both files
            arrays = beside(path)
            size = arrays.stat().st_size if arrays.is_file() else 0
        yield offset, line, head, head.arrays_end <= size


def drop_lost(path: Path) -> int:
    """Delete the lines of a record file whose arrays are gone; returns their number.

    The worker that owns the file calls this before it appends new arrays, which would otherwise lie
    at the offsets that those lines name.
    """
    lines = [(line, whole) for _, line, _, whole in _heads(path)]
    if n := sum(not whole for _, whole in lines):
        write_atomically(path, b"".join(line for line, whole in lines if whole))
    return n


class Entry(NamedTuple):
    """Index entry of one stored unit."""

    unit: str
    """Id of the unit."""
    session: int
    """Number of the start of the run that stored it."""
    failed: str | None
    """Why the unit failed; None if it did not."""
    excluded: str | None
    """Why the unit measures nothing (`Unit.excluded`); None if it does."""
    path: Path
    """Record file that holds the unit's line."""
    offset: int
    """Byte at which the line begins."""
    size: int
    """Length of the line in bytes."""
    arrays: bool
    """Whether the unit has arrays."""


class Index:
    """Entries of the stored units by key; of two units with one key the later session's counts."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._failed: Counter[tuple[Key, str]] = Counter()
        self.lost: Counter[str] = Counter()
        """Name of a file of arrays -> number of units whose arrays it lacks; such units do not
        count."""

    @classmethod
    def of(cls, run_dir: Path) -> Index:
        """The index of a run folder, from a scan of its record files; a torn last line is skipped.

        Raises:
            StoreError: a line is damaged; names file, line and remedy.
        """
        index = cls()
        for path in sorted((run_dir / "records").glob("*.jsonl")):
            for offset, line, head, whole in _heads(path):
                if whole:
                    index.put(head, path, offset, len(line))
                else:
                    index.lost[beside(path).name] += 1
        return index

    def put(self, head: Head, path: Path, offset: int, size: int) -> None:
        """Add the entry of a stored line, unless a later session's is there."""
        stage, model, task, item = map(sys.intern, head.key)
        key = (stage, model, task, item)
        if head.failed is not None:
            self._failed[key, head.unit] += 1
        known = self._entries.get(key)
        if known is None or head.session >= known.session:
            about = head.unit, head.session, head.failed, head.excluded
            self._entries[key] = Entry(*about, path, offset, size, head.arrays_end > 0)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def stages(self) -> list[str]:
        """The stages that have stored units, in the order of the files."""
        return list(dict.fromkeys(key[0] for key in self._entries))

    def __iter__(self) -> Iterator[Key]:
        """The keys in sorted order, which does not depend on the run's history."""
        return iter(sorted(self._entries))

    def get(self, key: Key) -> Entry | None:
        """The entry of a key; None if no such unit is stored."""
        return self._entries.get(key)

    def only(self, planned: Mapping[Key, str]) -> Index:
        """The index restricted to the units of a plan: equal key and equal unit id.

        Args:
            planned: key -> unit id.
        """
        index = Index()
        index._entries = {k: e for k, e in self._entries.items() if planned.get(k) == e.unit}
        index.lost = self.lost
        return index

    def losses(self) -> list[str]:
        """A line of text for every file that lacks arrays, for a person."""
        return [
            f"{name}: lacks the arrays of {n} units, which do not count; run again: they are redone"
            for name, n in self.lost.items()
        ]

    def is_done(self, key: Key, unit: str) -> bool:
        """Whether the unit is stored, did not fail, and has the given id."""
        entry = self._entries.get(key)
        return entry is not None and entry.unit == unit and entry.failed is None

    def is_whole(self, key: Key) -> bool:
        """Whether a unit of the key is stored and did not fail, whatever its id."""
        entry = self._entries.get(key)
        return entry is not None and entry.failed is None

    def failed(self, key: Key, unit: str) -> str | None:
        """Why the unit failed; None if it did not, or is not stored with the given id."""
        entry = self._entries.get(key)
        return entry.failed if entry is not None and entry.unit == unit else None

    def times_failed(self, key: Key, unit: str) -> int:
        """Number of stored failures of a unit, one per start of the run that tried it; 0 in an
        index made by `only`, which does not keep them."""
        return self._failed[key, unit]

    def excluded(self, key: Key) -> str | None:
        """Why a stored unit measures nothing (for a trace: why it is not probed); None if it
        measures something or is not stored."""
        entry = self._entries.get(key)
        return None if entry is None else entry.excluded

    def records(self, key: Key) -> list[dict[str, Any]]:
        """The records of one unit, read from the disk."""
        with self.reader() as read:
            return read(self._entries[key]).records

    def places(self, stages: Collection[str] | None = None) -> list[tuple[Key, Entry]]:
        """(key, entry) of all units, or of those of some stages, in the order of the files."""
        entries = [(k, e) for k, e in self._entries.items() if stages is None or k[0] in stages]
        rank = {path: i for i, path in enumerate(sorted({e.path for _, e in entries}))}
        return sorted(entries, key=lambda place: (rank[place[1].path], place[1].offset))

    @contextmanager
    def reader(self) -> Iterator[Callable[[Entry], Unit]]:
        """Context manager that gives a function from an entry to its unit; each file is opened only
        once."""
        with ExitStack() as stack:
            files: dict[Path, BinaryIO] = {}

            def read(entry: Entry) -> Unit:
                if entry.path not in files:
                    files[entry.path] = stack.enter_context(entry.path.open("rb"))
                return _unit_at(files[entry.path], entry)

            yield read

    def each(self, stages: Collection[str] | None = None) -> Iterator[Unit]:
        """Yields the units, all of them or those of some stages, in the order of the files; one at
        a time is in memory."""
        with self.reader() as read:
            for _, entry in self.places(stages):
                yield read(entry)

    def failures(self) -> list[Unit]:
        """The units that failed, without records, sorted by key."""
        return [
            Unit(e.unit, *k, session=e.session, failed=e.failed)
            for k, e in sorted(self._entries.items())
            if e.failed is not None
        ]


def _unit_at(file: BinaryIO, entry: Entry) -> Unit:
    file.seek(entry.offset)
    try:
        return read_unit(file.read(entry.size))
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"{entry.path}: changed while it was read, at byte {entry.offset}; run again"
        ) from error
