"""The run folder: what is asked for, what is done, nothing lost to a kill.

Every unit of work (the trace of one item, one probe of it) is one line of JSON in a file
that only one worker appends to. A line counts once it ends in a newline, so a killed
worker loses at most the unit it was on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from experiments.config import RunConfig
from experiments.folder import (
    StoreError,
    check_config,
    existing_run,
    has_records,
    read_environment,
    to_yaml,
    write_atomically,
    write_environment,
)

Key = tuple[str, str, str, str]
"""(stage, model, task, item): what a unit is about, whatever settings made it."""


def unit_id(**determines: Any) -> str:
    """Hash of everything that determines a unit's result."""
    text = json.dumps(determines, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Unit:
    """One stored line."""

    unit: str
    stage: str
    model: str
    task: str
    item: str
    session: int
    """Which start of the run wrote it: of two lines about one thing the later counts."""
    records: list[dict[str, Any]] = field(default_factory=list)
    failed: str | None = None
    """Why there are no records."""

    def __post_init__(self) -> None:
        if not isinstance(self.records, list) or not isinstance(self.session, int):
            raise TypeError("not a unit of work")

    @property
    def key(self) -> Key:
        return (self.stage, self.model, self.task, self.item)

    def to_line(self) -> bytes:
        values = {k: v for k, v in vars(self).items() if k != "failed" or v is not None}
        return json.dumps(values, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def storable(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`records`, if a line can hold them.

    Raises:
        ValueError: something JSON has no word for, a NaN or an infinity among others.
    """
    for record in records:
        for name, value in record.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise ValueError(f"record field {name!r} cannot be stored: {error}") from error
    return records


def read_units(run_dir: Path) -> dict[Key, Unit]:
    """The units that count, sorted by key; a torn last line is passed over.

    Raises:
        StoreError: a line that is not one of ours, with file, line and remedy.
    """
    found: dict[Key, Unit] = {}
    for path in sorted((run_dir / "records").glob("*.jsonl")):
        for unit in _units_of(path):
            known = found.get(unit.key)
            if known is None or unit.session >= known.session:
                found[unit.key] = unit
    return dict(sorted(found.items()))


def read_records(run_dir: str | Path, probe: str) -> list[dict[str, Any]]:
    """The flat records of one probe (`trace`, `slrc`), in an order that no history changes."""
    units = read_units(existing_run(run_dir)).values()
    return [r for u in units if u.stage == probe and u.failed is None for r in u.records]


def read_failures(run_dir: str | Path) -> list[Unit]:
    """The units that failed and were not made good since."""
    return [u for u in read_units(existing_run(run_dir)).values() if u.failed is not None]


class Store:
    """One worker's hold on a run folder; a context manager.

    Raises on entering:
        StoreError: the folder belongs to another config, or this worker already runs.
    """

    def __init__(self, config: RunConfig, environment: dict[str, Any], worker: str = "main"):
        self.config = config
        self.environment = environment
        self.worker = worker
        self.run_dir = config.run_dir
        self.session = 0
        self._files: dict[str, BinaryIO] = {}
        self._lock = FileLock(self.run_dir / ".locks" / f"{worker}.lock")

    def __enter__(self) -> Store:
        check_config(self.config)
        for folder in ("records", ".locks"):
            try:
                (self.run_dir / folder).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"{self.run_dir}: cannot be written: {error.strerror}") from error
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(
                f"{self.run_dir}: another process is at work here as worker {self.worker!r}; "
                "wait for it, or give this run another name (--set name=…)"
            ) from None
        try:
            with self._shared():
                others = self._others_at_work()
                check_config(self.config, in_use=others)
                self._begin_session(others)
            for path in self._own_files():
                cut_torn_line(path)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files.values():
            file.close()
        self._lock.release()

    def units(self) -> dict[Key, Unit]:
        """Everything stored so far, by any worker."""
        return read_units(self.run_dir)

    def add(
        self,
        unit: str,
        key: Key,
        records: list[dict[str, Any]],
        failed: str | None = None,
        seconds: float | None = None,
    ) -> Unit:
        """Store one unit; when this returns it is on the disk."""
        stage, model, task, item = key
        stored = Unit(unit, stage, model, task, item, self.session, records, failed)
        name = "traces" if stage == "trace" else stage
        self._append(f"records/{name}.{self.worker}.jsonl", stored.to_line())
        if seconds is not None:
            timing = dict(zip(("stage", "model", "task", "item"), key, strict=True))
            timing |= {"session": self.session, "seconds": round(seconds, 4)}
            self._append(f"timing.{self.worker}.jsonl", json.dumps(timing).encode() + b"\n")
        return stored

    def note_model(self, name: str, facts: dict[str, Any]) -> None:
        """Keep in environment.json what a loaded model turned out to be."""
        with self._shared():
            environment = read_environment(self.run_dir)
            environment["models"][name] = facts
            write_environment(self.run_dir, environment)

    @cached_property
    def _shared_lock(self) -> FileLock:
        return FileLock(self.run_dir / ".locks" / "folder.lock")

    def _shared(self) -> FileLock:
        return self._shared_lock

    def _others_at_work(self) -> bool:
        folder = self.run_dir / ".locks"
        mine = {f"{self.worker}.lock", "folder.lock"}
        for path in (p for p in folder.glob("*.lock") if p.name not in mine):
            lock = FileLock(path)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                return True
            lock.release()
        return False

    def _begin_session(self, others: bool) -> None:
        environment = read_environment(self.run_dir)
        self.session = len(environment["sessions"]) + 1
        environment["sessions"].append({"worker": self.worker, **self.environment})
        write_environment(self.run_dir, environment)
        if not others and not has_records(self.run_dir):
            write_atomically(self.run_dir / "config.yaml", to_yaml(self.config))

    def _own_files(self) -> Iterator[Path]:
        yield from (self.run_dir / "records").glob(f"*.{self.worker}.jsonl")
        yield from self.run_dir.glob(f"timing.{self.worker}.jsonl")

    def _append(self, name: str, line: bytes) -> None:
        if name not in self._files:
            # unbuffered: a line reaches the file in one write, or is seen to be torn
            self._files[name] = (self.run_dir / name).open("ab", buffering=0)
        file = self._files[name]
        try:
            file.write(line)
            os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(
                f"{self.run_dir / name}: cannot be written ({error.strerror}); make room and run "
                "again: it goes on from here"
            ) from error


def cut_torn_line(path: Path) -> int:
    """Drop what follows the last newline; gives the number of bytes dropped."""
    whole = path.read_bytes()
    keep = whole.rfind(b"\n") + 1
    if keep < len(whole):
        with path.open("r+b") as file:
            file.truncate(keep)
            os.fsync(file.fileno())
    return len(whole) - keep


def _units_of(path: Path) -> Iterator[Unit]:
    *lines, _torn = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield Unit(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"{path}: line {number} is damaged ({_short(error)}); delete that line and run "
                "again: its item is redone"
            ) from error


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:80]
