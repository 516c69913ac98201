"""The commands of Slurm, and what they say of jobs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from faithscope.interp.errors import UserError

_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_AT_WORK = {"RUNNING", "COMPLETING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "RESIZING", "STOPPED"}


@dataclass(frozen=True)
class Task:
    """What Slurm says of a job, or of one task of an array."""

    state: str
    """State in Slurm's words: `RUNNING`, `OUT_OF_MEMORY`, …"""
    left: str = ""
    """Time until the time limit, of a running task."""
    reason: str = ""
    """Why a waiting task waits, in Slurm's words; the exit code of an ended one."""
    node: str = ""

    @property
    def waits(self) -> bool:
        return self.state in _WAITING

    @property
    def is_at_work(self) -> bool:
        return self.state in _AT_WORK


def slurm(*command: str) -> str:
    """What a command of Slurm prints.

    Raises:
        UserError: the command is not on this machine, or fails; says why.
    """
    if shutil.which(command[0]) is None:
        raise UserError(f"{command[0]} is not on this machine; use a login node of the cluster")
    # Slurm's own variables change formats and defaults, and inside a job they describe that job
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SQUEUE_", "SACCT_"))}
    ended = subprocess.run(command, env=clean, capture_output=True, text=True)
    if ended.returncode:
        why = " ".join(ended.stderr.split()) or f"exit code {ended.returncode}"
        raise UserError(f"{' '.join(command[:1])}: {why}")
    return ended.stdout


def submit(command: Sequence[str]) -> str:
    """Run a command `sbatch --parsable …`; returns the id of the job.

    Raises:
        UserError: sbatch refuses it.
    """
    return slurm(*command).strip().partition(";")[0]


def cancel(jobs: Iterable[str]) -> None:
    """Cancel jobs.

    Raises:
        UserError: scancel fails.
    """
    slurm("scancel", *jobs)


def tasks_of(jobs: Sequence[str]) -> tuple[dict[str, Task], list[str]]:
    """(job or task -> what Slurm says of it, a note for each source that could not be asked).

    squeue knows jobs that wait or run, and for some minutes those that ended; sacct and a readable
    file of jobcomp know ended ones, where the cluster keeps them.
    """
    if not jobs:
        return {}, []
    try:
        now = _queue(jobs)
    except UserError as error:
        return {}, [str(error)]
    return _accounted(jobs) | now, []


def _queue(jobs: Sequence[str]) -> dict[str, Task]:
    form = "--format=%i|%T|%L|%r|%N"
    which = f"--jobs={','.join(jobs)}"
    try:
        said = slurm("squeue", "--noheader", "--array", "--states=all", which, form)
    except UserError as error:
        # said of a single job that Slurm has forgotten
        if "Invalid job id" in str(error):
            return {}
        raise
    tasks = {}
    for line in said.splitlines():
        name, state, left, reason, node = line.strip().split("|")[:5]
        task = Task(state, left, "" if reason == "None" else reason, node)
        tasks |= {single: task for single in singles(name)}
    return tasks


def _accounted(jobs: Sequence[str]) -> dict[str, Task]:
    """Ended tasks by sacct; none where the cluster has no accounting."""
    fields = "--format=JobID,State,ExitCode,NodeList"
    which = f"--jobs={','.join(jobs)}"
    try:
        said = slurm("sacct", "--noheader", "--parsable2", "--allocations", which, fields)
    except UserError:
        return {}
    tasks = {}
    for line in said.splitlines():
        name, state, code, node = line.split("|")[:4]
        # `CANCELLED by 1000`
        task = Task(state.partition(" ")[0], reason=code, node=node)
        tasks |= {single: task for single in singles(name)}
    return tasks


def settings() -> dict[str, str]:
    """The settings of the cluster, by name.

    Raises:
        UserError: scontrol cannot be asked.
    """
    said = slurm("scontrol", "show", "config")
    return dict(re.findall(r"^(\w+)\s*= (.*?)\s*$", said, re.M))


def largest_index() -> int | None:
    """The largest index of an array that the cluster takes; None if it does not say.

    Raises:
        UserError: scontrol cannot be asked, or the cluster takes no arrays.
    """
    size = settings().get("MaxArraySize", "")
    if not size.isdecimal():
        return None
    if int(size) < 2:
        raise UserError(f"this cluster takes no arrays of jobs (MaxArraySize={size})")
    return int(size) - 1


def completed() -> dict[str, str]:
    """Job or task of an array -> state, for every ended one in the file of jobcomp, where that may
    be read."""
    try:
        values = settings()
    except UserError:
        return {}
    path = Path(values.get("JobCompLoc", ""))
    if values.get("JobCompType") != "jobcomp/filetxt" or not os.access(path, os.R_OK):
        return {}
    text = path.read_text("utf-8", errors="replace")
    states = {}
    for line in text.splitlines():
        of = {name: value for name, _, value in (w.partition("=") for w in line.split())}
        task = f"{of['ArrayJobId']}_{of['ArrayTaskId']}" if "ArrayJobId" in of else of.get("JobId")
        if task and (state := of.get("JobState")):
            states[task] = state
    return states


def singles(name: str) -> list[str]:
    """The tasks that a name of squeue means: `12_[3,5-7%2]` is `12_3`, `12_5`, `12_6`, `12_7`."""
    listed = re.fullmatch(r"(\d+)_\[([\d,:-]+)(%\d+)?\]", name)
    return [f"{listed[1]}_{n}" for n in indices(listed[2])] if listed else [name]


def indices(text: str) -> list[int]:
    """The indices that `3,5-7,10-30:10` means."""
    numbers = []
    for part in text.split(","):
        ends, _, step = part.partition(":")
        first, _, last = ends.partition("-")
        numbers += range(int(first), int(last or first) + 1, int(step or 1))
    return numbers


def as_indices(numbers: Iterable[int]) -> str:
    """Indices as sbatch takes them, with ranges where they follow each other: `3,5-7`."""
    parts: list[list[int]] = []
    for n in sorted(numbers):
        if parts and parts[-1][-1] == n - 1:
            parts[-1][1:] = [n]
        else:
            parts.append([n])
    return ",".join("-".join(map(str, part)) for part in parts)
