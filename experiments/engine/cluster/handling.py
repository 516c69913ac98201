"""Submits the jobs of a run, submits again what is missing, waits for jobs, and cancels them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine import outputs
from faithscope.experiments.engine.cluster import FOLDER, commands
from faithscope.experiments.engine.cluster.batch import text_of
from faithscope.experiments.engine.cluster.jobs import (
    JOBS,
    Job,
    Submitter,
    chain,
    jobs_of,
    submissions,
    write_files,
)
from faithscope.experiments.engine.cluster.profile import Profile
from faithscope.experiments.engine.cluster.state import (
    ClusterState,
    active_jobs,
    cluster_state,
    count_memory_kills,
    ids,
    to_resubmit,
)
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import AnyPlan
from faithscope.experiments.files import StoreError, make_folder, write_atomically
from faithscope.interp.errors import UserError
from faithscope.interp.locks import Lock

SECONDS = 10.0
"""Time between two looks at the queue while jobs are waited for."""


def submit(
    whole: AnyPlan,
    shards: int,
    profile: Profile,
    gpus: int | None = None,
    workers: str = "",
    dry: bool = False,
) -> Submitter:
    """Write the batch files of a run and hand them in.

    Args:
        shards: number of shards of every model.
        gpus, workers: as of `jobs_of`.
        dry: whether the files are only written.

    Raises:
        StoreError: jobs of the run wait or are at work, or its folder was made with another config.
        UserError: Slurm refuses a job.
    """
    run_dir = whole.config.run_dir.absolute()
    jobs, most = jobs_of(whole, shards, gpus, workers), _largest_index(dry)
    here = Path.cwd()
    files = {job.file: text_of(job, run_dir, profile, here, most) for job in jobs}
    with _alone(run_dir):
        if not dry and submissions(run_dir):
            _refuse_active(run_dir)
        write_files(whole, files, profile)
        submitter = Submitter(run_dir, most, dry)
        listed = run_dir / FOLDER / JOBS
        before = listed.read_bytes() if listed.is_file() else b""
        try:
            chain(submitter, jobs, _passes(run_dir))
        except UserError as error:
            if not (handed_in := [submission.id for submission in submitter.submissions]):
                raise
            # without the jobs that lack, these would work on a run that nothing merges
            commands.cancel(handed_in)
            write_atomically(listed, before)
            raise UserError(
                f"{error}; the jobs {', '.join(handed_in)}, which Slurm had taken, were cancelled"
            ) from error
    return submitter


def idle(whole: AnyPlan, shards: int) -> list[str]:
    """Sentences on shards that will have no items, a model each."""
    if whole.prepares or study_of(whole.config.model_dump(mode="json")).reads_runs:
        return []
    planned = whole.stored()
    lines = (planned.idle(Shard(of=shards, model=model)) for model in planned.of_model)
    return [line for line in lines if line]


def _alone(run_dir: Path) -> Lock:
    """Lock held while jobs of a run are handed in or cancelled, by one process at a time."""
    return Lock(make_folder(run_dir / FOLDER) / ".lock")


def _largest_index(dry: bool) -> int | None:
    """The largest index of an array that the cluster takes; a dry run may do without a cluster."""
    try:
        return commands.largest_index()
    except UserError:
        if dry:
            return None
        raise


def _refuse_active(run_dir: Path) -> None:
    if active := active_jobs(run_dir):
        raise StoreError(
            f"{run_dir}: its jobs {', '.join(active)} wait or are at work; `faithscope "
            "status` shows them, `faithscope cancel` ends them"
        )


def _passes(run_dir: Path) -> int:
    """Number of times that shards are gone through: twice where a run of the run reads all of an
    earlier one, which is whole only after all shards."""
    return 2 if study_of(stored_config(run_dir)).reads_runs else 1


def resubmit(
    run_dir: Path, options: Sequence[str] = (), failed: bool = False, dry: bool = False
) -> Submitter:
    """Hand in again what lacks work and is in no queue, and the merge behind it.

    Args:
        options: options of sbatch for shards, which take precedence over those in the files.
        failed: whether shards are done again whose items failed.
        dry: whether commands are only collected.

    Raises:
        StoreError: no jobs were submitted for the run.
        UserError: Slurm cannot be asked, or refuses a job.
    """
    run_dir = run_dir.absolute()
    with _alone(run_dir):
        return _resubmit(run_dir, options, failed, dry)


def _resubmit(run_dir: Path, options: Sequence[str], failed: bool, dry: bool) -> Submitter:
    state = _submitted(run_dir, failed)
    submitter = Submitter(run_dir, _largest_index(dry), dry)
    lacking = to_resubmit(state)
    states = {task.job.file: task.state for task in state.others}
    # a submit that was killed may have handed in no merge
    jobs = list({j.file: j for j in (Job("merge"), *(task.job for task in state.tasks))}.values())
    unbuilt = any(task.job.kind == "build" and task.state == "failed" for task in state.others)
    if unbuilt:
        # the items are planned by the job that prepares them, so all shards are still to do
        lacking = {job.file: list(range(1, job.shards + 1)) for job in jobs if job.is_array}
    active = [task for task in state.active if task.job.kind != "merge"]
    merged = "merge.sbatch" in states and states["merge.sbatch"] == "done"
    if not lacking and (active or (merged and outputs.is_current(run_dir))):
        return submitter
    if not dry:
        count_memory_kills(state)
        if merges := [task for task in state.active if task.job.kind == "merge"]:
            commands.cancel(ids(merges))

    def tasks(job: Job) -> Sequence[int] | None:
        if job.kind == "build":
            return () if unbuilt else None
        return () if job.kind == "merge" else lacking.get(job.file)

    def for_shards(job: Job) -> Sequence[str]:
        return () if job.kind == "merge" else options

    order = ("build", "shards", "judges", "merge")
    jobs.sort(key=lambda job: order.index(job.kind))
    chain(submitter, jobs, _passes(run_dir), tasks, for_shards, ids(active))
    return submitter


def _submitted(run_dir: Path, failed: bool = False) -> ClusterState:
    if not submissions(run_dir):
        raise StoreError(f"{run_dir}: has no jobs; `faithscope submit` makes them")
    state = cluster_state(run_dir, failed)
    if state.notes:
        raise StoreError("; ".join(state.notes))
    return state


def cancel(run_dir: Path) -> list[str]:
    """Cancel all jobs of a run that wait or are at work; returns their ids."""
    run_dir = run_dir.absolute()
    with _alone(run_dir):
        _submitted(run_dir)
        if active := active_jobs(run_dir):
            commands.cancel(active)
    return active


def wait(run_dir: Path, tell: Callable[[str], None], seconds: float = SECONDS) -> ClusterState:
    """Wait until no job of a run waits or is at work; returns their state.

    Args:
        tell: is called with a line whenever the state of a job or the number of items changed.
    """
    run_dir = run_dir.absolute()
    told = ""
    while True:
        state = cluster_state(run_dir)
        left = sum(task.left or 0 for task in state.shards)
        # a restart of Slurm's controller must not look like the end of all jobs
        line = "; ".join([state.counts(), f"{left} items left", *state.notes])
        if line != told:
            tell(line)
            told = line
        if not state.active and not state.notes:
            return state
        time.sleep(seconds)
