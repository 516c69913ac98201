"""The store: one worker's access to a run folder, in which a kill loses nothing that was stored.

Every unit of work (the trace of one item, one probe of it) is one line of JSON in a file that only
one worker appends to. A line counts once it ends in a newline, so a killed worker loses at most the
unit that it was working on.
"""

from __future__ import annotations

import json
import platform
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import Timeout

from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.study import Stages, study_of
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.append import Appender, cut_torn_line
from faithscope.experiments.engine.arrays import take_arrays, to_blob
from faithscope.experiments.engine.folder import (
    check_config,
    existing_run,
    has_records,
    new_keys,
    read_environment,
    stored_config,
    take_report,
    to_yaml,
    write_environment,
)
from faithscope.experiments.engine.index import Index, beside, drop_lost
from faithscope.experiments.engine.planfile import StoredPlan, counted
from faithscope.experiments.engine.units import Key, Unit, check_heads
from faithscope.experiments.files import (
    StoreError,
    make_folder,
    remove,
    unwritable,
    write_atomically,
)
from faithscope.interp.errors import UserError
from faithscope.interp.locks import Lock


def read_records(run_dir: str | Path, *probes: str) -> list[dict[str, Any]]:
    """The records of some probes (`trace`, `slrc`), in an order that does not depend on the run's
    history; failed units are left out."""
    units = sorted(counted(existing_run(run_dir)).each(probes), key=lambda u: u.key)
    return [r for u in units if u.failed is None for r in u.records]


def read_failures(run_dir: str | Path) -> list[Unit]:
    """The units of a run that failed and did not succeed later."""
    return counted(existing_run(run_dir)).failures()


LOST = "unknown"
"""Worker name of a session whose entry in environment.json was lost, so that only its records are
left."""


def record_file(stage: str, worker: str, stages: Stages) -> str:
    """Path, below the run folder, of the file to which a worker appends the units of a stage.

    Args:
        stages: declarations of the study's stages.
    """
    declared = stages.get(stage.partition(".")[0])
    return f"records/{(declared and declared.makes) or stage}.{worker}.jsonl"


@contextmanager
def hold(run_dir: Path, worker: str) -> Iterator[None]:
    """Hold the lock of a worker in a run folder, so that only one process works under its name.

    Raises:
        StoreError: another process holds it, or the folder cannot be written.
    """
    lock = Lock(make_folder(run_dir / ".locks") / f"{worker}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreError(
            f"{run_dir}: another process is at work here as worker {worker!r}; "
            "wait for it, or give this run another name (--set name=…)"
        ) from None
    except OSError as error:
        raise unwritable(run_dir, error) from error
    begun = run_dir / ".locks" / f"{worker}.at"
    try:
        write_atomically(begun, platform.node())
        yield
    finally:
        remove(begun)
        lock.release()


def is_held(run_dir: Path, worker: str) -> bool:
    """Whether a process holds the lock of a worker in a run folder."""
    lock = Lock(run_dir / ".locks" / f"{worker}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def killed(run_dir: Path) -> set[str]:
    """Names of the workers of a run folder that ended on this machine without a word: their
    processes are gone, and did not let go of the folder themselves (a kill, a lost machine)."""
    gone = set[str]()
    for begun in (run_dir / ".locks").glob("*.at"):
        # a file system that cannot be written, or has no locks, tells nothing
        with suppress(OSError, UserError):
            if begun.read_text("utf-8") == platform.node() and not is_held(run_dir, begun.stem):
                gone.add(begun.stem)
    return gone


def outputs_lock(run_dir: Path) -> Lock:
    """Lock that is held while tables, figures and page are written, by one process at a time."""
    return Lock(make_folder(run_dir / ".locks") / "outputs.lock")


class Store:
    """Context manager for one worker's access to a run folder.

    Raises on entering:
        StoreError: the folder belongs to another config, or this worker already runs.
    """

    def __init__(
        self,
        config: FolderConfig,
        environment: dict[str, Any],
        worker: str = "main",
        plan: StoredPlan | None = None,
        mixed: bool = False,
    ):
        """
        Args:
            environment: facts on this session (`environment.environment`).
            worker: name of the worker (`Shard.worker`).
            plan: the plan to store in the folder.
            mixed: whether items may be finished on another device, dtype or library version than
                they were begun with (`provenance.check_same`).
        """
        self.config = config
        self.mixed = mixed
        self.plan = plan
        self.environment = environment
        self.worker = worker
        self.run_dir = config.run_dir
        self.session = 0
        self.files = Appender(sync=True)
        """The worker's files; what is added to them is on the disk at once."""
        # timings are no results, so that losing the last of them costs nothing
        self._timings = Appender()
        self._held = ExitStack()
        self._lost: Counter[str] = Counter()

    def __enter__(self) -> Store:
        check_config(self.config)
        make_folder(self.run_dir / "records")
        with ExitStack() as stack:
            stack.enter_context(hold(self.run_dir, self.worker))
            for path in self._own_files():
                cut_torn_line(path)
            for path in self._own_records():
                self._lost[beside(path).name] = drop_lost(path)
            with self.shared():
                others = self._others_at_work()
                check_config(self.config, in_use=others)
                self._begin_session(others)
            self._held = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.files.close()
        self._timings.close()
        self._held.close()

    @cached_property
    def index(self) -> Index:
        """Index of the units that any worker had stored when it was first read, and of those that
        `add` stored since."""
        index = Index.of(self.run_dir)
        index.lost += self._lost
        return index

    @cached_property
    def _stages(self) -> Stages:
        return study_of(self.config.model_dump(mode="json")).stages()

    def add(
        self,
        unit: str,
        key: Key,
        records: list[dict[str, Any]],
        failed: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """Store one unit with the arrays of its records; it is on the disk when this returns.

        Args:
            unit: id of the unit.
            key: key of the unit.
            records: its records, with arrays.
            failed: why it failed; None if it did not.
            seconds: time that it took, kept in the timing file; None keeps none.

        Raises:
            ValueError: a record lacks one of `probes.record.KEYS`.
        """
        stage, model, task, item = key
        check_heads(records)
        path = self.run_dir / record_file(stage, self.worker, self._stages)
        records, arrays = take_arrays(records)
        place = None
        if arrays:
            blob = to_blob(arrays)
            place = (self.files.add(beside(path), blob), len(blob), zlib.crc32(blob))
        stored = Unit(unit, stage, model, task, item, self.session, records, failed, place)
        line = stored.to_line()
        self.index.put(stored.head, path, self.files.add(path, line), len(line))
        if seconds is not None:
            timing = dict(zip(("stage", "model", "task", "item"), key, strict=True))
            timing |= {"session": self.session, "seconds": round(seconds, 4)}
            line = json.dumps(timing).encode() + b"\n"
            self._timings.add(self.run_dir / f"timing.{self.worker}.jsonl", line)

    def note(self, text: str) -> None:
        """Add a note on this start of the run to environment.json."""
        with self.shared():
            environment = read_environment(self.run_dir)
            environment["sessions"][self.session - 1].setdefault("notes", []).append(text)
            write_environment(self.run_dir, environment)

    def note_model(self, name: str, facts: dict[str, Any]) -> None:
        """Add facts on a loaded model to environment.json, both for the run and for this
        session."""
        with self.shared():
            environment = read_environment(self.run_dir)
            session = environment["sessions"][self.session - 1]
            for models in (environment["models"], session.setdefault("models", {})):
                models.setdefault(name, {}).update(facts)
            write_environment(self.run_dir, environment)

    @cached_property
    def _shared_lock(self) -> Lock:
        return Lock(self.run_dir / ".locks" / "folder.lock")

    def shared(self) -> Lock:
        """Lock that is held while a file is written that all workers of a run folder share."""
        return self._shared_lock

    def _others_at_work(self) -> bool:
        folder = self.run_dir / ".locks"
        own_locks = {f"{self.worker}.lock", "folder.lock", "outputs.lock"}
        others = (p.stem for p in folder.glob("*.lock") if p.name not in own_locks)
        return any(is_held(self.run_dir, worker) for worker in others)

    def _begin_session(self, others: bool) -> None:
        self._keep_plan(others)
        environment = read_environment(self.run_dir)
        sessions = environment["sessions"]
        # environment.json may have been lost; sessions known from records alone keep their numbers
        last = max((entry.session for _, entry in self.index.places()), default=0)
        sessions += [{"worker": LOST} for _ in range(len(sessions), last)]
        sessions.append({"worker": self.worker, **self.environment})
        self.session = len(sessions)
        if not others and not has_records(self.run_dir):
            write_atomically(self.run_dir / "config.yaml", to_yaml(self.config))
            environment.pop("config", None)
            environment.pop("chosen", None)
        else:
            take_report(self.config)
        if added := new_keys(self.config):
            sessions[-1]["new_keys"] = added
        environment.setdefault("config", stored_config(self.run_dir))
        environment.setdefault("chosen", dict(self.config.chosen))
        write_environment(self.run_dir, environment)

    def _keep_plan(self, others: bool) -> None:
        if self.plan is None or planfile.digest(self.run_dir) == self.plan.digest:
            return
        if others and (theirs := planfile.read(self.run_dir)) is not None:
            raise StoreError(
                f"{self.run_dir}: another process is at work here on other questions or weights: "
                f"{self.plan.difference(theirs)}; wait for it, or give this run another name "
                "(--set name=…)"
            )
        planfile.write(self.run_dir, self.plan)

    def _own_records(self) -> Iterator[Path]:
        yield from (self.run_dir / "records").glob(f"*.{self.worker}.jsonl")

    def _own_files(self) -> Iterator[Path]:
        yield from self._own_records()
        for kind in ("timing", "spend"):
            yield from self.run_dir.glob(f"{kind}.{self.worker}.jsonl")
