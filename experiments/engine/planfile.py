"""The stored plan of a run: which units it must have, by id.

With this file the progress of a run can be told wherever its folder was copied to, without its data
and models.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from faithscope.experiments.config.study import Stage, Stages, study_of
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.units import Key
from faithscope.experiments.files import StoreError, write_atomically
from faithscope.experiments.garbage import gc_paused
from faithscope.interp.errors import UserError, did_you_mean

FILE = "plan.jsonl"


class Planned:
    """Base of planned items: the units of work of one model on one question, by stage."""

    __slots__ = ()
    model: str
    task: str
    item: str
    """Id of the item, unique among the items of one model and task."""
    units: dict[str, str]
    """Stage -> unit id, in the order of work."""
    stages: Stages = MappingProxyType({})
    """Declarations of the item's stages."""

    def key(self, stage: str) -> Key:
        """Key under which the unit of a stage is stored."""
        return (stage, self.model, self.task, self.item)

    def declared(self, stage: str) -> Stage:
        """The declaration of a stage; a stage that is not declared needs no other."""
        name = stage.partition(".")[0]
        return self.stages.get(name, Stage(name))

    def needs(self, stage: str) -> tuple[str, ...]:
        """The stages whose exclusion of this item leaves it out of `stage`."""
        return self.declared(stage).needs


@dataclass(frozen=True, slots=True)
class StoredItem(Planned):
    """A planned item with the fields that the run folder keeps."""

    model: str
    task: str
    item: str
    units: dict[str, str]
    runs_on_excluded: tuple[str, ...] = ()
    """Stages that run even if a stage that others need excluded the item; empty for items without
    such a needed stage."""
    stages: Stages = field(default_factory=dict, repr=False)

    def needs(self, stage: str) -> tuple[str, ...]:
        return () if stage in self.runs_on_excluded else Planned.needs(self, stage)


@dataclass(frozen=True)
class StoredPlan:
    """Every item of a run, in the order of work."""

    batch_size: int
    items: tuple[StoredItem, ...]

    @classmethod
    def of(cls, items: Iterable[Planned], batch_size: int) -> StoredPlan:
        """The stored form of planned items."""
        kept: list[StoredItem] = []
        declared: Stages | None = None
        needed: Set[str] = frozenset()
        for item in items:
            # the items of a plan share their many declarations
            if item.stages is not declared:
                declared = item.stages
                needed = {name for stage in declared.values() for name in stage.needs}
            kept.append(_stored(item, needed))
        return cls(batch_size, tuple(kept))

    @cached_property
    def by_key(self) -> dict[Key, str]:
        """Key of a unit -> unit id, for every unit of the plan."""
        return {i.key(stage): unit for i in self.items for stage, unit in i.units.items()}

    @cached_property
    def of_model(self) -> dict[str, list[StoredItem]]:
        """Model -> its items, in the order of work."""
        items: dict[str, list[StoredItem]] = {}
        for item in self.items:
            items.setdefault(item.model, []).append(item)
        return items

    @cached_property
    def digest(self) -> str:
        """Digest that is equal for two runs that do the same on the same questions and weights."""
        return _digest("".join(_lines(self.items)).encode())

    def part(self, shard: Shard) -> list[StoredItem]:
        """The items of one shard."""
        dealt = shard.deal(self.of_model, self.batch_size).values()
        return [item for batches in dealt for batch in batches for item in batch]

    def idle(self, shard: Shard) -> str:
        """A sentence on shards, of as many as this one is of, that have no items; else empty."""
        own = [len(items) for m, items in self.of_model.items() if shard.model in (None, m)]
        if not 0 < (n := sum(-(-items // self.batch_size) for items in own)) < shard.of:
            return ""
        batches = "is one batch" if n == 1 else f"are {n} batches"
        return (
            f"of {shard.of} shards those from {n + 1} on do nothing: items are shared out in whole "
            f"batches of batch_size, {self.batch_size}, and there {batches} of "
            f"{shard.model or 'the run'}; take {n} shard{'s' * (n > 1)}, or a smaller batch_size"
        )

    def difference(self, other: StoredPlan) -> str:
        """Clause on the first item in which another plan differs from this one."""
        here, there = self.by_key, other.by_key
        for key in (k for k in [*here, *there] if here.get(k) != there.get(k)):
            _, model, task, item = key
            what = (
                "is in one of them only"
                if key not in here or key not in there
                else "has another question, other weights, or another version of the measure"
            )
            return f"item {item!r} of task {task!r} for {model} {what}"
        return "their items come in another order"


def _stored(item: Planned, needed: Set[str]) -> StoredItem:
    free: tuple[str, ...] = ()
    if needed & item.units.keys():
        free = tuple(s for s in item.units if s not in needed and not item.needs(s))
    return StoredItem(item.model, item.task, item.item, item.units, free, item.stages)


def write(run_dir: Path, planned: StoredPlan) -> None:
    """Write a plan into the run folder."""
    head = {"plan": 1, "batch_size": planned.batch_size, "digest": planned.digest}
    text = json.dumps(head) + "\n" + "".join(_lines(planned.items))
    write_atomically(run_dir / FILE, text)


def digest(run_dir: Path) -> str | None:
    """Digest of a run's stored plan; None without a plan."""
    try:
        with (run_dir / FILE).open("rb") as file:
            return json.loads(file.readline())["digest"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def read(run_dir: Path, stages: Stages | None = None) -> StoredPlan | None:
    """The stored plan of a run; None without a plan.

    Args:
        stages: declarations of the stages; None takes those of the run's study.

    Raises:
        StoreError: the file is damaged.
    """
    path = run_dir / FILE
    if not path.is_file():
        return None
    if stages is None:
        return _read_with_stages(run_dir, _stamp_of(path, run_dir / "config.yaml"))
    return _read(path, stages)


@lru_cache(maxsize=1)
@gc_paused()
def _read_with_stages(run_dir: Path, stamp: object) -> StoredPlan:
    """The stored plan, shared by all who ask before a file changes: one command asks several
    times, and a plan of many items takes long to read."""
    return _read(run_dir / FILE, study_of(stored_config(run_dir)).stages())


def _read(path: Path, stages: Stages) -> StoredPlan:
    try:
        first, _, lines = path.read_bytes().partition(b"\n")
        head = json.loads(first)
        whole = _digest(lines) == head["digest"]
        rows = json.loads(b"[%b]" % b",".join(lines.splitlines())) if whole else []
        planned = StoredPlan(head["batch_size"], tuple(_item(row, stages) for row in rows))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            f"{path}: is damaged ({error}); faithscope repair puts it aside"
        ) from error
    if not whole:
        raise StoreError(f"{path}: is not as it was written; faithscope repair puts it aside")
    return planned


def _digest(lines: bytes) -> str:
    return hashlib.sha256(lines).hexdigest()[:16]


def _lines(items: Iterable[StoredItem]) -> Iterable[str]:
    return (
        json.dumps([i.model, i.task, i.item, i.units, i.runs_on_excluded]) + "\n" for i in items
    )


def _item(row: Sequence[Any], stages: Stages) -> StoredItem:
    model, task, item, units, runs_on_excluded = row
    return StoredItem(model, task, item, units, tuple(runs_on_excluded), stages)


def counted(run_dir: Path) -> Index:
    """Index of the stored units that the run's plan names; of all units in a folder without a plan.

    Units from an earlier state of the data or the weights are in no plan, hence in no table. The
    index is shared with whoever asks again before a file of the folder changes, and may not be
    changed.
    """
    return _counted(run_dir, stamp(run_dir))


def stamp(run_dir: Path) -> tuple[tuple[str, int, int], ...]:
    """Size and time of change of config, plan, benchmark and records, by which a change is seen."""
    folders = (run_dir / "records", run_dir / "benchmark")
    files = (run_dir / FILE, run_dir / "config.yaml", *(f for of in folders for f in of.glob("*")))
    return _stamp_of(*files)


def _stamp_of(*files: Path) -> tuple[tuple[str, int, int], ...]:
    found = ((str(file), file.stat()) for file in files if file.is_file())
    return tuple(sorted((name, at.st_size, at.st_mtime_ns) for name, at in found))


@lru_cache(maxsize=1)
@gc_paused()
def _counted(run_dir: Path, stamp: object) -> Index:
    index, planned = Index.of(run_dir), read(run_dir, stages={})
    return index if planned is None else index.only(planned.by_key)


def missing(index: Index, item: Planned) -> list[str]:
    """The stages that an item still lacks; stages that it is left out of are not counted."""
    return [
        stage
        for stage, unit in item.units.items()
        if not index.is_done(item.key(stage), unit) and not is_left_out(index, item, stage)
    ]


def is_left_out(index: Index, item: Planned, stage: str) -> bool:
    """Whether a stage that `stage` needs has excluded the item."""
    return any(
        index.is_done(item.key(name), item.units[name])
        and index.excluded(item.key(name)) is not None
        for name in item.needs(stage)
        if name in item.units
    )


def is_finished(index: Index, item: Planned) -> bool:
    """Whether nothing is left to do for an item."""
    return not missing(index, item)


def is_whole(run_dir: Path) -> bool:
    """Whether nothing is left to do in a run folder, whichever shards did it; a unit that failed
    counts as done."""
    planned, index = read(run_dir), Index.of(run_dir)
    items = planned.items if planned else ()
    return planned is not None and not any(
        missing(index, i) and not failures(index, i) for i in items
    )


def failures(index: Index, item: Planned) -> list[tuple[str, str]]:
    """(stage, reason) of the units of an item that failed."""
    return [
        (stage, failed)
        for stage, unit in item.units.items()
        if (failed := index.failed(item.key(stage), unit))
    ]


T = TypeVar("T", bound=Planned)


@dataclass(frozen=True)
class Shard:
    """One of several shards of a run; every batch belongs to one shard."""

    index: int = 0
    """Number of the shard, counted from 0."""
    of: int = 1
    """Number of shards of the run."""
    model: str | None = None
    """The one model whose items are done, of several in the plan; None does those of all."""
    only: Literal["weights", "apis"] | None = None
    """Models that are asked: those whose weights are here, or those behind APIs; None is both."""

    @property
    def worker(self) -> str:
        """Name of the worker that does the shard: `main`, `3of8`, or `3of8@MODEL` for one model."""
        name = "main" if self.of == 1 else f"{self.index + 1}of{self.of}"
        return name if self.model is None else f"{name}@{as_file_name(self.model)}"

    @property
    def is_all(self) -> bool:
        """Whether the shard is the whole run."""
        return self == Shard()

    def deal(self, of_model: Mapping[str, Sequence[T]], size: int) -> dict[str, list[list[T]]]:
        """Model -> the batches of this shard, of all items of a run by model.

        Neither a resume nor another number of shards changes which items are generated together.
        Batches are dealt out in turn over all models, so that many small ones occupy all shards.
        """
        n, dealt = 0, dict[str, list[list[T]]]()
        for model, items in of_model.items():
            if self.model in (None, model):
                batches = [list(items[i : i + size]) for i in range(0, len(items), size)]
                dealt[model] = [b for i, b in enumerate(batches, n) if i % self.of == self.index]
                n += len(batches)
        return dealt


def cut_again(batches: Mapping[str, Sequence[Sequence[T]]], size: int) -> list[list[T]]:
    """Batches of a judge, each cut from one batch of a subject model, so that the number of shards
    does not change which items are judged together."""
    return [
        list(b[i : i + size]) for of in batches.values() for b in of for i in range(0, len(b), size)
    ]


def as_file_name(model: str) -> str:
    """The name of a model as a part of the name of a file."""
    return re.sub(r"[^A-Za-z0-9]+", "-", model).strip("-")


def workers_shard(worker: str) -> tuple[int, int] | None:
    """(K, N) of the shard that a worker does, by its name; None for a worker that does no shard."""
    part = re.fullmatch(r"(\d+)of(\d+)(@.*)?", worker)
    return (int(part[1]), int(part[2])) if part else None


ONLY = ("weights", "apis")


def parse_workers(text: str) -> int | None:
    """The number of processes that `--workers N` means; None for `auto`.

    Raises:
        UserError: it is neither.
    """
    if text == "auto":
        return None
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise UserError(f"--workers {text[:40]}: expected a number of processes, or auto")
    return int(text)


def parse_shard(text: str | None, model: str | None = None, only: str | None = None) -> Shard:
    """The shard that `--shard K/N` means: `2/8` is the second of eight; None is the whole run.

    Args:
        model: the one model whose items are done.
        only: `Shard.only`.

    Raises:
        UserError: the text is not K/N with 1 <= K <= N, or `only` is unknown.
    """
    if only is not None and only not in ONLY:
        guess = did_you_mean(only, ONLY) or f"; known: {', '.join(ONLY)}"
        raise UserError(f"--only: unknown {only!r}{guess}")
    doers: Any = only
    if text is None:
        return Shard(model=model, only=doers)
    part = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip())
    if part is None or not 1 <= int(part[1]) <= int(part[2]):
        raise UserError(f"--shard {text[:40]}: expected K/N with 1 <= K <= N, e.g. --shard 2/8")
    return Shard(int(part[1]) - 1, int(part[2]), model, doers)
