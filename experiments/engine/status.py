"""Status of a run: how much is done, how fast it goes, and what failed.

The status is read from the run folder alone: its stored plan, records and timing files. No lock is
kept and nothing is written, so it can be read while the run is at work, without the run's data and
models, and in a folder without permission to write.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faithscope.experiments.config.load import load_config
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.cluster import FOLDER as SLURM
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns, total
from faithscope.experiments.engine.models.account import calls_of, in_words
from faithscope.experiments.engine.planfile import StoredItem, StoredPlan, workers_shard
from faithscope.experiments.engine.progress import duration
from faithscope.experiments.engine.provenance import made_by
from faithscope.experiments.engine.store import killed
from faithscope.experiments.engine.tallies.tally import Tally, tally_of_run
from faithscope.experiments.files import StoreError
from faithscope.experiments.garbage import gc_paused
from faithscope.experiments.numerals import significant
from faithscope.interp.errors import UserError

SILENT = 120.0
"""Minimum number of seconds without a stored unit after which a worker counts as stopped."""


def run_rows(folder: Path) -> list[tuple[str, str]]:
    """(path, state) of every run in a folder, for `faithscope list runs`.

    Raises:
        StoreError: the folder holds no run.
    """
    rows = []
    for path in sorted(p.parent for p in folder.glob("*/config.yaml")):
        try:
            state = status_lines(path, counted=False)[0]
        except UserError as error:
            state = str(error)
        rows.append((str(path), state.removeprefix(f"{path}: ")))
    if not rows:
        raise StoreError(f"{folder}: holds no runs; say where they are (--out DIR), or make one")
    return rows


def status_lines(run_dir: Path, counted: bool = True) -> list[str]:
    """What `faithscope status` prints of a run: of one that only reads others, what it reads.

    Raises:
        StoreError: a record line is damaged, or the folder has no stored plan.
    """
    if planfile.read(run_dir) is None and study_of(stored_config(run_dir)).reads_runs:
        read = load_config(run_dir / "config.yaml", at_hand=False).made_of.values()
        state = "complete" if (run_dir / "report.html").is_file() else "no report yet"
        return [f"{run_dir}: {state}, compares {' and '.join(map(str, read))}"]
    return status(run_dir, counted=counted).lines()


_Work = tuple[str, str, str]
"""Key of timed work: (stage, model, task)."""


@dataclass(frozen=True)
class Group:
    """Progress of one model on one task; `items` = `done` + `failed` + `left`.

    The needed stage is the one that other stages depend on, such as the trace.
    """

    model: str
    task: str
    items: int
    """Number of planned items."""
    made: int
    """Number of items with a unit of the needed stage; 0 without such a stage."""
    done: int
    """Number of finished items: every unit is stored, or the needed stage excluded the item."""
    excluded: int
    """Number of finished items that the needed stage excluded."""
    failed: int
    """Number of items with a failed unit."""
    left: int
    """Number of items with work left and no failed unit."""
    seconds_per_item: float | None
    """Measured seconds per item for one worker; None before a unit of every stage was timed."""


@dataclass(frozen=True)
class Kind:
    """Class of failures: those of one stage whose errors differ only in numbers and names."""

    stage: str
    reason: str
    """The error without its numbers and quoted names."""
    n: int
    """Number of failures in the class."""
    example: str
    """One failed item: task · item · model."""


@dataclass(frozen=True)
class Worker:
    """One worker of the run: a shard, or `main`."""

    name: str
    silent: float
    """Seconds since the worker stored a unit, by this machine's clock."""
    at_work: bool
    """Whether the worker stored a unit recently (`SILENT`, or a few of the slowest units), and its
    process is not gone."""
    gone: bool = False
    """Whether the worker's process was on this machine and ended without a word, as by a kill."""


@dataclass(frozen=True)
class Status:
    """Status of a run, as `faithscope status` shows it."""

    run_dir: Path
    groups: tuple[Group, ...]
    kinds: tuple[Kind, ...]
    workers: tuple[Worker, ...]
    seconds_left: float | None
    """Estimated seconds of work left for one worker; None if some of it is unlike all timed
    work."""
    reported: bool
    """Whether the run folder has a report.html."""
    spent: str = ""
    """Calls and cost of APIs so far, in words."""
    makes: str = ""
    """Plural noun for the products of the needed stage (`traces`); empty without such a stage."""
    tally: Tally | None = None
    """Counts of measured items, and why others are not; None if they were not asked for."""
    remarks: tuple[str, ...] = ()
    """Sentences on lost arrays and on differences between sessions (`provenance.made_by`)."""

    @property
    def at_work(self) -> int:
        """Number of workers at work."""
        return sum(w.at_work for w in self.workers)

    def lines(self) -> list[str]:
        """The status as lines of text for a person."""
        items, done, failed = (
            sum(getattr(g, name) for g in self.groups) for name in ("items", "done", "failed")
        )
        left = items - done - failed
        state = f"{done} of {items} items done, {left} left, {failed} failed"
        if left == 0 and not failed:
            state = f"complete, {items} items" + ("" if self.reported else "; no report yet")
        gone = [w for w in self.workers if w.gone]
        if left and gone and not self.at_work:
            state += "; stopped (process is gone)"
        out = [f"{self.run_dir}: {state}"]
        if left:
            out.append(self._speed())
        out += [_told(w) for w in self.workers if left and (w.at_work or w.gone)]
        if left and not self.at_work:
            out.append(f"to go on: {self._again(gone)}")
        names = ("model", "task", "items", "made", "done", "excluded", "failed", "left")
        if not self.makes:
            names = tuple(name for name in names if name not in ("made", "excluded"))
        header = [self.makes if name == "made" else name for name in names]
        rows = [tuple(getattr(g, name) for name in names) for g in self.groups]
        last = [(*r, _rate(g)) for r, g in zip(rows, self.groups, strict=True)]
        out += ["", *columns([(*header, "a minute"), *last, (*total(rows), "")])]
        if self.spent:
            out += ["", f"spent: {self.spent}"]
        if self.tally is not None and (counted := self.tally.lines()):
            out += ["", *counted]
        if self.kinds:
            out += ["", "failed, by kind:"]
            out += [f"{k.n:>5} × {k.stage}: {k.reason}  (e.g. {k.example})" for k in self.kinds]
        if self.remarks:
            out += ["", *self.remarks]
        return out

    def _again(self, gone: Sequence[Worker]) -> str:
        """The command that goes on with the run; of the shard of the one worker that is gone."""
        if (self.run_dir / SLURM).is_dir():
            return f"faithscope resubmit {shlex.quote(str(self.run_dir))}"
        command = f"faithscope run {shlex.quote(str(self.run_dir / 'config.yaml'))}"
        parts = [workers_shard(worker.name) for worker in gone]
        if len(self.workers) > 1 and len(parts) == 1 and parts[0]:
            command += f" --shard {parts[0][0]}/{parts[0][1]}"
        return command

    def _speed(self) -> str:
        if self.seconds_left is None:
            return "time left: not known before something was timed"
        if not self.at_work:
            return f"no one is at work; about {duration(self.seconds_left)} of work left"
        left = sum(g.left for g in self.groups)
        rate = 60 * left * self.at_work / self.seconds_left if self.seconds_left else 0.0
        who = "1 worker" if self.at_work == 1 else f"{self.at_work} workers"
        about = duration(self.seconds_left / self.at_work)
        return f"{significant(rate, 3)} items a minute by {who}; about {about} left"


@gc_paused()
def status(run_dir: Path, now: float | None = None, counted: bool = True) -> Status:
    """The status of the run in a folder.

    Args:
        counted: whether to count what was measured, which reads all records.
        now: time in seconds on the clock that dates files; None takes the present. Only
            `Worker.silent` and `Worker.at_work` depend on it.

    Raises:
        StoreError: a record line is damaged, or the folder has no stored plan.
    """
    planned = planfile.read(run_dir)
    if planned is None:
        raise StoreError(
            f"{run_dir}: has no {planfile.FILE}, which says what there is to do; "
            "it is written as soon as `faithscope run` goes on with it"
        )
    index = planfile.counted(run_dir)
    pace = {work: seconds / n for work, (seconds, n) in _timed(run_dir).items() if n}
    there = dict.fromkeys(name for item in planned.items for name in item.units)
    stages = study_of(stored_config(run_dir)).stages()
    needed = [stages[name] for name in there if name in stages and stages[name].makes]
    gate, makes = (needed[0].name, needed[0].makes) if needed else ("", "")
    by_group: dict[tuple[str, str], list[StoredItem]] = defaultdict(list)
    for item in planned.items:
        by_group[item.model, item.task].append(item)
    return Status(
        run_dir,
        tuple(_group(index, pace, gate, *pair, items) for pair, items in by_group.items()),
        _kinds(index, planned),
        _workers(run_dir, max(pace.values(), default=0.0), time.time() if now is None else now),
        _left(index, planned, pace),
        (run_dir / "report.html").is_file(),
        in_words(calls_of(run_dir)),
        makes,
        tally_of_run(run_dir) if counted else None,
        (*index.losses(), *made_by(run_dir)),
    )


def _group(
    index: Index,
    pace: dict[_Work, float],
    gate: str,
    model: str,
    task: str,
    items: list[StoredItem],
) -> Group:
    done = [i for i in items if planfile.is_finished(index, i)]
    failed = sum(bool(planfile.failures(index, i)) for i in items)
    stages = items[0].units
    timed = [pace.get((stage, model, task)) for stage in stages]
    return Group(
        model,
        task,
        len(items),
        sum(index.is_done(i.key(gate), i.units[gate]) for i in items if gate in stages),
        len(done),
        sum(index.excluded(i.key(gate)) is not None for i in done),
        failed,
        len(items) - len(done) - failed,
        sum(t for t in timed if t is not None) if None not in timed else None,
    )


def _rate(group: Group) -> str:
    return significant(60 / group.seconds_per_item, 3) if group.seconds_per_item else "–"


def _kinds(index: Index, planned: StoredPlan) -> tuple[Kind, ...]:
    places_by_kind: dict[tuple[str, str], list[str]] = defaultdict(list)
    for item in planned.items:
        for stage, reason in planfile.failures(index, item):
            where = f"{item.task} · {item.item} · {item.model}"
            places_by_kind[stage, kind_of(reason)].append(where)
    kinds = [Kind(*key, len(where), where[0]) for key, where in places_by_kind.items()]
    return tuple(sorted(kinds, key=lambda k: (-k.n, k.stage, k.reason)))


def kind_of(reason: str) -> str:
    """The beginning of an error without numbers and quoted names, which differ between items."""
    words = re.sub(r"'[^']*'|\"[^\"]*\"", "…", reason.partition(";")[0])
    return re.sub(r"\d+(\.\d+)?", "#", words)[:100]


def _left(index: Index, planned: StoredPlan, pace: dict[_Work, float]) -> float | None:
    """Seconds of work left, at the measured pace of the same (stage, model, task), else of the same
    stage and model, else of the same stage; None if some stage was never timed."""
    missing: Counter[_Work] = Counter()
    for item in planned.items:
        if not planfile.failures(index, item):
            stages = planfile.missing(index, item)
            missing.update((stage, item.model, item.task) for stage in stages)
    seconds = [n * p for work, n in missing.items() if (p := _pace(pace, work)) is not None]
    return sum(seconds) if len(seconds) == len(missing) else None


def _pace(pace: dict[_Work, float], work: _Work) -> float | None:
    stage, model, _ = work
    of_stage = [(w, p) for w, p in pace.items() if w[0] == stage]
    for same in ({work}, {w for w, _ in of_stage if w[1] == model}, {w for w, _ in of_stage}):
        if paces := [p for w, p in of_stage if w in same]:
            return sum(paces) / len(paces)
    return None


def _timed(run_dir: Path) -> dict[_Work, tuple[float, int]]:
    """(stage, model, task) -> total seconds and number of timed units."""
    timed: dict[_Work, tuple[float, int]] = {}
    for path in sorted(run_dir.glob("timing.*.jsonl")):
        for timing in _timings(path):
            work = timing["stage"], timing["model"], timing["task"]
            seconds, n = timed.get(work, (0.0, 0))
            timed[work] = seconds + timing["seconds"], n + 1
    return timed


def _timings(path: Path) -> Iterable[dict[str, Any]]:
    *lines, _torn = path.read_bytes().split(b"\n")
    for line in filter(None, lines):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            # timings are no results, so a damaged line only costs a little accuracy
            continue


def _workers(run_dir: Path, longest: float, now: float) -> tuple[Worker, ...]:
    workers, gone = [], killed(run_dir)
    for path in sorted(run_dir.glob("timing.*.jsonl")):
        silent = max(0.0, now - path.stat().st_mtime)
        name = path.name.removeprefix("timing.").removesuffix(".jsonl")
        at_work = silent < max(SILENT, 4 * longest) and name not in gone
        workers.append(Worker(name, silent, at_work, name in gone))
    for name in sorted(gone - {worker.name for worker in workers}):
        begun = (run_dir / ".locks" / f"{name}.at").stat().st_mtime
        workers.append(Worker(name, max(0.0, now - begun), at_work=False, gone=True))
    return tuple(workers)


def _told(worker: Worker) -> str:
    last = "stopped (process is gone), last seen" if worker.gone else "last unit"
    return f"{worker.name}: {last} {duration(worker.silent)} ago"
