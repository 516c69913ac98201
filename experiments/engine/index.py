"""What a run folder holds, without holding it: where each unit's line begins and ends.

Records are long and read one at a time, or all at once for the tables; what decides on the
work to do is short and stays in memory: some hundred bytes for each unit.
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


def beside(record_file: Path) -> Path:
    """The file of arrays of a record file."""
    return record_file.with_suffix(ARRAYS)


def _heads(path: Path) -> Iterator[tuple[int, bytes, Head, bool]]:
    """Offset, line, what it is about, and whether its arrays are there, of every line of a file."""
    size = 0
    for offset, line in whole_lines(path):
        try:
            head = read_head(line)
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(path, offset, error, "its item is redone") from error
        if head.arrays_end > size:
            # anew for every such line: another worker may be adding to both files
            arrays = beside(path)
            size = arrays.stat().st_size if arrays.is_file() else 0
        yield offset, line, head, head.arrays_end <= size


def drop_lost(path: Path) -> int:
    """Take the lines out of a record file whose arrays are gone, before new arrays come to lie
    where those lay; gives their number. For the one worker that adds to it."""
    lines = [(line, whole) for _, line, _, whole in _heads(path)]
    if n := sum(not whole for _, whole in lines):
        write_atomically(path, b"".join(line for line, whole in lines if whole))
    return n


class Entry(NamedTuple):
    """What is kept in memory of a stored unit."""

    unit: str
    session: int
    failed: str | None
    excluded: str | None
    """Why it measures nothing (`Unit.excluded`)."""
    path: Path
    offset: int
    size: int
    """Bytes of its line."""


class Index:
    """The units that count of all that are stored, by key: of two, the later session's."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._failed: Counter[tuple[Key, str]] = Counter()
        self.lost: Counter[str] = Counter()
        """Units that do not count as the file that held their arrays lacks them, by its name."""

    @classmethod
    def of(cls, run_dir: Path) -> Index:
        """Scan the record files of a run; a torn last line is passed over.

        Raises:
            StoreError: a line that is not one of ours, with file, line and remedy.
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
        stage, model, task, item = map(sys.intern, head.key)
        key = (stage, model, task, item)
        if head.failed is not None:
            self._failed[key, head.unit] += 1
        known = self._entries.get(key)
        if known is None or head.session >= known.session:
            self._entries[key] = Entry(
                head.unit, head.session, head.failed, head.excluded, path, offset, size
            )

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Key]:
        """Keys in an order that no history changes."""
        return iter(sorted(self._entries))

    def get(self, key: Key) -> Entry | None:
        return self._entries.get(key)

    def only(self, planned: Mapping[Key, str]) -> Index:
        """What of it a plan names: same thing, made from the same."""
        index = Index()
        index._entries = {k: e for k, e in self._entries.items() if planned.get(k) == e.unit}
        index.lost = self.lost
        return index

    def losses(self) -> list[str]:
        """A line for every file that lacks arrays."""
        return [
            f"{name}: lacks the arrays of {n} units, which do not count; run again: they are redone"
            for name, n in self.lost.items()
        ]

    def is_done(self, key: Key, unit: str) -> bool:
        """Stored, not failed, and made from what would make it now."""
        entry = self._entries.get(key)
        return entry is not None and entry.unit == unit and entry.failed is None

    def is_whole(self, key: Key) -> bool:
        """Stored and not failed."""
        entry = self._entries.get(key)
        return entry is not None and entry.failed is None

    def failed(self, key: Key, unit: str) -> str | None:
        """Why a unit failed, if that is how it stands."""
        entry = self._entries.get(key)
        return entry.failed if entry is not None and entry.unit == unit else None

    def times_failed(self, key: Key, unit: str) -> int:
        """How often a unit was tried in vain, a start of the run each; not told of `only`."""
        return self._failed[key, unit]

    def excluded(self, key: Key) -> str | None:
        """Why a stored unit measures nothing, if it does not: of a trace, why it is not probed."""
        entry = self._entries.get(key)
        return None if entry is None else entry.excluded

    def records(self, key: Key) -> list[dict[str, Any]]:
        """The records of one unit, from the disk."""
        with self.reader() as read:
            return read(self._entries[key]).records

    def places(self, stages: Collection[str] | None = None) -> list[tuple[Key, Entry]]:
        """Entries, all of them or of some stages, in the order in which they lie on the disk."""
        entries = [(k, e) for k, e in self._entries.items() if stages is None or k[0] in stages]
        return sorted(entries, key=lambda place: (place[1].path, place[1].offset))

    @contextmanager
    def reader(self) -> Iterator[Callable[[Entry], Unit]]:
        """Reads whole units; each file is opened once."""
        with ExitStack() as stack:
            files: dict[Path, BinaryIO] = {}

            def read(entry: Entry) -> Unit:
                if entry.path not in files:
                    files[entry.path] = stack.enter_context(entry.path.open("rb"))
                return _unit_at(files[entry.path], entry)

            yield read

    def each(self, stages: Collection[str] | None = None) -> Iterator[Unit]:
        """Whole units, all of them or of some stages, one at a time as they lie on the disk."""
        with self.reader() as read:
            for _, entry in self.places(stages):
                yield read(entry)

    def failures(self) -> list[Unit]:
        """Units that failed, sorted by key."""
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
