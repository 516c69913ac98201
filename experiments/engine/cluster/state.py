"""The state of a run's jobs: what Slurm says of them, joined with what the run folder holds.

Whether a shard is done is said by the store alone: a job may have failed after its last item, or
ended well with other items than are planned now.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.cluster import FOLDER, commands
from faithscope.experiments.engine.cluster.batch import Job
from faithscope.experiments.engine.cluster.commands import Task
from faithscope.experiments.engine.cluster.jobs import Submission, submissions
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns
from faithscope.experiments.engine.memory_kills import add_kill
from faithscope.experiments.engine.merge import own_runs
from faithscope.experiments.engine.planfile import Planned, Shard, StoredPlan
from faithscope.experiments.files import StoreError

OUT_OF_MEMORY = "OUT_OF_MEMORY"
_REASONS = {
    OUT_OF_MEMORY: "was killed for lack of memory; give it more: --mem",
    "TIMEOUT": "was killed at its time limit before it could stop; give it more: --time",
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not start",
    "PREEMPTED": "was preempted by another job",
    "CANCELLED": "was cancelled",
    "DEADLINE": "was ended at its deadline",
}
"""State in Slurm's words -> what happened to the job."""


State = Literal["done", "running", "waiting", "failed", "unknown"]
"""State of a job; `unknown` where Slurm cannot be asked."""


class Note(NamedTuple):
    """What a task wrote of its last start and end."""

    job: str = ""
    """Slurm job id of the task; an array's task has one of its own."""
    restart: str = "0"
    node: str = ""
    code: int | None = None
    """Exit code; None if it wrote of no end."""
    signal: str = ""
    """Signal that it got from Slurm."""
    text: str = ""
    """Reason that the task gave for its end."""


def note_of(run_dir: Path, name: str) -> Note | None:
    """What a task wrote of its last start; None if it never started."""
    path = run_dir / FOLDER / "tasks" / name
    text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    *_, last = ["", *re.split(r"^\S+ start ", text, flags=re.M)[1:]]
    start = re.match(r"job=(\d+) restart=(\d+) node=(\S+)\n", last)
    if start is None:
        return None
    end = re.search(r" end code=(\d+)(?: signal=\w*)? ?(.*)", last)
    got = re.findall(r" got (\w+)$", last, re.M)
    code, said = (int(end[1]), end[2]) if end else (None, "")
    return Note(start[1], start[2], start[3], code, got[-1] if got else "", said)


@dataclass(frozen=True)
class TaskState:
    """State of one job, or of one shard of an array."""

    submission: Submission
    name: str
    """Name of the job or task in squeue."""
    shard: int
    """Number of the shard; 0 for a job that is no array."""
    state: State
    left: int | None
    """Number of items with work left for this job; None before they are planned."""
    time_left: str
    why: str
    note: Note | None
    task: Task | None

    @property
    def job(self) -> Job:
        return self.submission.job

    @property
    def is_active(self) -> bool:
        return self.state in ("running", "waiting")


@dataclass(frozen=True)
class WorkLeft:
    """Work that is left in a run folder, by shard."""

    run_dir: Path

    @cached_property
    def _parts(self) -> list[tuple[StoredPlan | None, Index]]:
        """Plan and index of the run, or of each run that it makes."""
        folders = [*own_runs(self.run_dir).values()] or [self.run_dir]
        return [(planfile.read(f) if f.is_dir() else None, Index.of(f)) for f in folders]

    def items(self, job: Job, shard: int, failed: bool = False) -> int | None:
        """Number of items with work left for a shard of a job; None before they are planned.

        Args:
            failed: whether items that failed count.
        """
        if len(self._parts) == 1 and self._parts[0][0] is None:
            return None
        of = Shard(shard - 1, job.shards, job.model)
        return sum(
            # a run that an earlier one must precede has no plan yet
            1 if plan is None else sum(_lacks(index, i, job, failed) for i in plan.part(of))
            for plan, index in self._parts
        )


def _lacks(index: Index, item: Planned, job: Job, failed: bool) -> bool:
    missing = planfile.missing(index, item)
    if not failed:
        missing = [s for s in missing if not index.failed(item.key(s), item.units[s])]
    wanted = {"weights": False, "apis": True}
    return any(job.only is None or _asks_api(item, s) == wanted[job.only] for s in missing)


def _asks_api(item: Planned, stage: str) -> bool:
    """Whether a stage is done by a model behind an API: the judge in its name, or the item's."""
    judge = stage.partition(".")[2]
    return judge.startswith("api-") if judge else item.model.startswith("api:")


@dataclass(frozen=True)
class ClusterState:
    """State of all jobs of a run, each shard by the last job that was handed in for it."""

    run_dir: Path
    tasks: tuple[TaskState, ...]
    notes: tuple[str, ...] = ()
    """Sources that could not be asked."""

    @property
    def active(self) -> list[TaskState]:
        return [task for task in self.tasks if task.is_active]

    @property
    def shards(self) -> list[TaskState]:
        return [task for task in self.tasks if task.job.is_array]

    @property
    def others(self) -> list[TaskState]:
        return [task for task in self.tasks if not task.job.is_array]

    def counts(self) -> str:
        """Number of shards in each state, in words."""
        counts = Counter(task.state for task in self.shards)
        states = get_args(State)
        told = ", ".join(f"{counts[state]} {state}" for state in states if counts[state])
        return f"{len(self.shards)} shards: {told}"

    def lines(self) -> list[str]:
        """The state as lines of text for a person."""
        lines = [f"jobs of Slurm; {self.counts()}"]
        listed = [task for task in self.tasks if task.state != "done"]
        if listed:
            whys = ["why", *(task.why for task in listed)]
            header = ("job", "does", "state", "time left", "items left")
            rows = columns([header, *map(_row, listed)])
            lines += [f"{row}  {why}".rstrip() for row, why in zip(rows, whys, strict=True)]
        lines += self.notes
        if any(task.state == "failed" for task in self.tasks):
            lines.append(f"do: faithscope resubmit {shlex.quote(str(self.run_dir))}")
        return lines


def _row(task: TaskState) -> tuple[str, ...]:
    does = f"{task.job.kind} {task.shard}/{task.job.shards}" if task.shard else task.job.kind
    of = f" of {task.job.model}" if task.job.model else ""
    left = "" if task.left is None else str(task.left)
    return task.name, does + of, task.state, task.time_left, left


def cluster_state(run_dir: Path, failed: bool = False) -> ClusterState:
    """State of the jobs that were submitted for a run.

    Args:
        failed: whether a shard with failed items counts as failed.
    """
    handed_in = submissions(run_dir)
    latest: dict[tuple[str, int], tuple[Submission, str]] = {}
    for submission in handed_in:
        for name, shard in submission.names().items():
            # of a file that was submitted in other shards the last number holds
            latest[submission.job.file, shard] = submission, name
    last = {s.job.file: s.job.shards for s in handed_in}
    chosen = [(s, name, n) for (file, n), (s, name) in latest.items() if n <= last[file]]
    known, notes = commands.tasks_of(list(dict.fromkeys(s.id for s, *_ in chosen)))
    ended = commands.completed() if any(name not in known for _, name, _ in chosen) else {}
    work = WorkLeft(run_dir)
    tasks = []
    for submission, name, shard in chosen:
        note, task = note_of(run_dir, name), known.get(name)
        if task is None and name in ended:
            task = Task(ended[name])
        left = work.items(submission.job, shard, failed) if shard else None
        tasks.append(_state(run_dir, submission, name, shard, left, note, task, not notes))
    return ClusterState(run_dir, tuple(tasks), tuple(notes))


def _state(
    run_dir: Path,
    submission: Submission,
    name: str,
    shard: int,
    left: int | None,
    note: Note | None,
    task: Task | None,
    asked: bool,
) -> TaskState:
    def of(state: State, why: str = "") -> TaskState:
        time_left = task.left if task and state == "running" else ""
        return TaskState(submission, name, shard, state, left, time_left, why, note, task)

    if task and task.waits:
        again = f"queued again ({_why(run_dir, submission, name, note, None)}); " if note else ""
        return of("waiting", again + task.reason)
    if task and task.is_at_work:
        return of("running", f"on {task.node}")
    ended_well = note is not None and note.code in (0, 3)
    if left == 0 or (not shard and ended_well):
        return of("done")
    if not asked and task is None and (note is None or note.code is None):
        return of("unknown")
    return of("failed", _why(run_dir, submission, name, note, task))


def _why(
    run_dir: Path, submission: Submission, name: str, note: Note | None, task: Task | None
) -> str:
    """Why a job ended, in words."""
    if task and task.reason == "DependencyNeverSatisfied":
        return "was not started, since a job before it failed"
    if task and task.state in _REASONS and not (note and note.signal == "USR1"):
        return _REASONS[task.state]
    log = run_dir / FOLDER / "logs" / f"{Path(submission.job.file).stem}-{name}.log"
    text = log.read_text("utf-8", errors="replace") if log.is_file() else ""
    if note is None:
        return _why_not_started(log, text, task)
    if note.signal == "USR1":
        return "stopped before its time limit"
    if note.signal:
        return "was stopped by Slurm (preempted or cancelled)"
    match note.code:
        case None:
            return "ended without a word: it was killed, or its node failed"
        case 137:
            return _REASONS[OUT_OF_MEMORY]
        case 0 | 3:
            return "ended, and work is left"
        case 130:
            return "stopped early; see its log"
    if note.text:
        return note.text
    errors = [line for line in text.splitlines() if line.startswith("error: ")]
    return errors[-1] if errors else f"ended with code {note.code}; see {log}"


def _why_not_started(log: Path, text: str, task: Task | None) -> str:
    if task is None:
        return "is not known to Slurm, nor started"
    said = f"never started ({', '.join(filter(None, (task.state, task.reason, task.node)))})"
    if lines := text.strip().splitlines():
        return f"{said}; its log ends with: {lines[-1]}"
    return f"{said}; it has no log, so its node cannot write {log}, which all nodes must share"


def active_jobs(run_dir: Path) -> list[str]:
    """Ids of all jobs of a run that wait or are at work.

    Raises:
        StoreError: Slurm cannot be asked.
    """
    known, notes = commands.tasks_of([s.id for s in submissions(run_dir)])
    if notes:
        raise StoreError("; ".join(notes))
    active = [name for name, task in known.items() if task.waits or task.is_at_work]
    return list(dict.fromkeys(name.partition("_")[0] for name in active))


def count_memory_kills(state: ClusterState) -> None:
    """Count the kills for lack of memory that Slurm knows of, so that the workers start with a
    smaller token budget."""
    for task in state.shards:
        if task.task and task.task.state == OUT_OF_MEMORY and task.note:
            worker = Shard(task.shard - 1, task.job.shards, task.job.model).worker
            add_kill(state.run_dir, worker, f"{task.note.job}.{task.note.restart}")


def to_resubmit(state: ClusterState) -> dict[str, list[int]]:
    """File of a job -> the shards that lack work and for which no job waits or runs."""
    lacking: dict[str, list[int]] = {}
    for task in state.shards:
        if task.state == "failed":
            lacking.setdefault(task.job.file, []).append(task.shard)
    return lacking


def ids(tasks: Sequence[TaskState]) -> list[str]:
    """Ids of the jobs of some tasks, each once."""
    return list(dict.fromkeys(task.submission.id for task in tasks))
