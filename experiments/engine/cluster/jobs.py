"""The jobs of a run: which it needs, their batch files, and the ids that they got.

RUN/slurm/profile         as it was when the jobs were submitted
RUN/slurm/*.sbatch        a file per job
RUN/slurm/jobs.jsonl      a line per submission
RUN/slurm/tasks/          what each task said of its start and end
RUN/slurm/logs/           what each task printed
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from faithscope.experiments.config.api import API, service_of
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.append import Appender, whole_lines
from faithscope.experiments.engine.cluster import FOLDER, commands
from faithscope.experiments.engine.cluster.batch import Job, Server, parts_of
from faithscope.experiments.engine.cluster.profile import Profile
from faithscope.experiments.engine.folder import check_config, has_records, take_report, to_yaml
from faithscope.experiments.engine.models.at_hand import models_of, settings_of
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.interp.errors import UserError
from faithscope.probes.judge.connection import is_here

if TYPE_CHECKING:
    from faithscope.experiments.engine.run import AnyPlan

JOBS = "jobs.jsonl"


@dataclass(frozen=True)
class Submission:
    """One job that was handed in."""

    id: str
    """Id of the job; for an array, without the index of a task."""
    job: Job
    tasks: tuple[int, ...] = ()
    """Numbers of the shards that an array does."""
    time: float = 0.0
    offset: int = 0
    """Number of a shard less its index in the array."""

    def names(self) -> dict[str, int]:
        """Name of each task as squeue has it (`12_3`, or `12` of a single job) -> its shard."""
        names = {f"{self.id}_{n - self.offset}": n for n in self.tasks}
        return names or {self.id: 0}


class Submitter:
    """Hands in jobs, and stores their ids in the run folder as soon as they have one."""

    def __init__(self, run_dir: Path, most: int | None = None, dry: bool = False) -> None:
        """
        Args:
            most: the largest index of an array that the cluster takes; None if it is not known.
            dry: whether commands are only collected, with `$JOB1` for the id of the first.
        """
        self.run_dir, self.most, self.dry = run_dir, most, dry
        self.commands: list[str] = []
        """The commands, as a person would type them."""
        self.submissions: list[Submission] = []

    def submit(
        self,
        job: Job,
        tasks: Sequence[int] = (),
        options: Sequence[str] = (),
        after: Mapping[str, Sequence[str]] | None = None,
    ) -> list[str]:
        """Hand in a job; returns its id, or those of the arrays in which its shards are done.

        Args:
            tasks: numbers of the shards that an array does; none means those of its file.
            options: options of sbatch.
            after: `afterany` or `afterok` -> ids of jobs that must have ended.
        """
        needed = {kind: list(ids) for kind, ids in (after or {}).items()}
        if not job.is_array:
            return [self._hand_in(job, [], 0, options, needed)]
        numbers = tasks or range(1, job.shards + 1)
        ids: list[str] = []
        parts = parts_of(numbers, self.most)
        limit = self._limit(job)
        for offset, part in parts:
            words = []
            if tasks or len(parts) > 1:
                words = [f"--array={commands.as_indices(n - offset for n in part)}{limit}"]
            ids.append(self._hand_in(job, part, offset, [*words, *options], needed))
            if limit:
                needed["afterany"] = [*needed.get("afterany", ()), ids[-1]]
        return ids

    def _limit(self, job: Job) -> str:
        """How many shards may run at a time, as the batch file has it: `%4`, or nothing."""
        text = (self.run_dir / FOLDER / job.file).read_text("utf-8")
        found = re.search(r"^#SBATCH --array=\S*?(%\d+)$", text, re.M)
        return found[1] if found else ""

    def _hand_in(
        self,
        job: Job,
        shards: Sequence[int],
        offset: int,
        options: Sequence[str],
        after: Mapping[str, Sequence[str]],
    ) -> str:
        clauses = [f"{kind}:{':'.join(jobs)}" for kind, jobs in after.items() if jobs]
        dependency = [f"--dependency={','.join(clauses)}"] if clauses else []
        # else a job stays in the queue for ever whose preparation failed
        words = ["--kill-on-invalid-dep=yes"] if after.get("afterok") else []
        words += [*options, str(self.run_dir / FOLDER / job.file)]
        words += [str(offset)] if offset else []
        name = f"JOB{len(self.commands) + 1}"
        # ids of a dry run are variables, which quotes would hide
        typed = " ".join(["sbatch --parsable", *dependency, *map(shlex.quote, words)])
        self.commands.append(f"{name}=$({typed})")
        command = ["sbatch", "--parsable", *dependency, *words]
        of = f"${name}" if self.dry else commands.submit(command)
        submission = Submission(of, job, tuple(shards), time.time(), offset)
        self.submissions.append(submission)
        if not self.dry:
            with Appender(sync=True) as jobs:
                line = json.dumps(asdict(submission)).encode() + b"\n"
                jobs.add(self.run_dir / FOLDER / JOBS, line)
        return of


def submissions(run_dir: Path) -> list[Submission]:
    """All jobs that were handed in for a run, in order."""
    path = run_dir / FOLDER / JOBS
    if not path.is_file():
        return []
    return [_submission(json.loads(line)) for _, line in whole_lines(path)]


def _submission(values: dict[str, Any]) -> Submission:
    job = values["job"]
    server = Server(**job["server"]) if job["server"] else None
    return Submission(
        **values | {"job": Job(**job | {"server": server}), "tasks": tuple(values["tasks"])}
    )


def jobs_of(whole: AnyPlan, shards: int, gpus: int | None = None, workers: str = "") -> list[Job]:
    """The jobs of a run, in order: preparation, shards of each model, judges, merge.

    Args:
        gpus: number of GPUs of every shard; None takes what the models need.
        workers: number of processes in every shard, or `auto`.

    Raises:
        UserError: a run that this one makes would need a server in its job.
    """
    config = whole.config
    if any(c is not config and _server(c, "") for c in whole.configs):
        raise UserError(
            f"{config.run_dir}: a run that it makes asks a server on the job's own node; submit "
            "that run first, and name its folder here instead"
        )
    models = _models(whole)
    several: list[str | None] = [*models] if len(models) > 1 else [None]
    jobs = [Job("build", gpus=_or(gpus, whole.gpus()))] if whole.prepares else []
    for model in several:
        own = whole.gpus(None if whole.prepares else model)
        server = _server(config, model or (models[0] if models else ""))
        if server and gpus is not None:
            server = replace(server, gpus=min(gpus, max(gpus - own, 1)))
        needed = _or(gpus, own + (server.gpus if server else 0))
        here = not any(m.startswith(API) for m in ([model] if model else models))
        split = needed and here and not server and not whole.alternates
        judged = split and _asks_apis(config, models)
        only = "weights" if judged else None
        jobs.append(Job("shards", shards, model, needed, only, server, workers))
        if judged:
            jobs.append(Job("judges", shards, model, 0, "apis"))
    return [*jobs, Job("merge")]


def _or(given: int | None, needed: int) -> int:
    return needed if given is None else given


def _models(whole: AnyPlan) -> list[str]:
    if whole.prepares:
        # its items are of the model that writes; the run's own are not planned yet
        named = [value for key, value in settings_of(whole.config) if key[-2:] == ("model", "name")]
        return list(dict.fromkeys(map(str, named)))
    return list(dict.fromkeys(item.model for item in whole.items if item.model))


def _asks_apis(config: FolderConfig, subjects: Sequence[str]) -> bool:
    """Whether models behind APIs are asked about what the subjects wrote."""
    if study_of(config.model_dump(mode="json")).reads_runs:
        return False
    return any(m.startswith(API) and m not in subjects for m in models_of(config))


def _server(config: FolderConfig, subject: str) -> Server | None:
    """The server on the job's own node that a config asks; None if it asks none there."""
    values = settings_of(config)
    for key, value in values:
        if key[-1] not in ("endpoints", "base_url") or not value or not is_here(str(value)):
            continue
        own = [str(v) for k, v in values if k == (*key[:-1], "model")]
        model = own[0] if own else subject
        if model.startswith(API):
            model = model.removeprefix(API).removeprefix(service_of(model)).lstrip("/")
        name = ".".join(key) if key[-1] == "endpoints" else ""
        return Server(model, name, urlsplit(str(value)).port or 80)
    return None


def write_files(whole: AnyPlan, files: Mapping[str, str], profile: Profile) -> None:
    """Write config, plan, profile and batch files into the run folder.

    Args:
        files: name -> text of each batch file.

    Raises:
        StoreError: the run folder was made with another config.
    """
    run_dir = whole.config.run_dir.absolute()
    make_folder(run_dir / "records")
    for name in ("logs", "tasks"):
        make_folder(run_dir / FOLDER / name)
    if has_records(run_dir):
        check_config(whole.config)
        take_report(whole.config)
    else:
        write_atomically(run_dir / "config.yaml", to_yaml(whole.config))
    if not whole.prepares:
        planfile.write(run_dir, whole.stored())
    write_atomically(run_dir / FOLDER / "profile", profile.text)
    for name, text in files.items():
        write_atomically(run_dir / FOLDER / name, text)


def chain(
    submitter: Submitter,
    jobs: Sequence[Job],
    passes: int = 1,
    tasks: Callable[[Job], Sequence[int] | None] = lambda job: (),
    options: Callable[[Job], Sequence[str]] = lambda job: (),
    after: Sequence[str] = (),
) -> None:
    """Hand in jobs so that each begins after those that it needs.

    Args:
        passes: number of times that the shards are gone through, where a shard may need what others
            do.
        tasks: maps an array to the shards that it does; nothing means all, None leaves the job out.
        options: maps a job to options of sbatch.
        after: ids of earlier jobs after which the merge begins.
    """
    built: list[str] = []
    ended: list[str] = list(after)
    before: dict[str | None, list[str]] = {}
    for job in jobs:
        chosen = tasks(job)
        if chosen is None:
            continue
        if job.kind == "merge":
            submitter.submit(job, options=options(job), after={"afterany": ended})
            continue
        for _ in range(passes if job.is_array else 1):
            needed = {"afterok": built, "afterany": before.get(job.model, ())}
            ids = submitter.submit(job, chosen, options(job), needed)
            if job.kind == "build":
                built += ids
            else:
                before[job.model] = ids
        ended += before[job.model] if job.is_array else ()
