"""Batch files: the text of each job of a run, as a person could have written it."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from faithscope.experiments.engine.cluster import FOLDER
from faithscope.experiments.engine.cluster.profile import Profile
from faithscope.experiments.engine.memory_kills import FOLDER as KILLED
from faithscope.experiments.engine.planfile import as_file_name
from faithscope.interp.errors import UserError

SHARDS = "FAITHSCOPE_SHARDS"
"""Environment variable of an array job: number of shards, where it is not that of the file."""


@dataclass(frozen=True)
class Server:
    """A server that a job starts beside its workers."""

    model: str
    """The model that is served."""
    key: str
    """Config key of the server's addresses, which a run may set anew; empty where the address in
    the config must stay as it is."""
    port: int
    """Port of the address in the config."""
    gpus: int = 1
    """Number of GPUs that the server has; the rest of the job's are for faithscope."""


@dataclass(frozen=True)
class Job:
    """One job of a run: an array of shards, or a single job before or after them."""

    kind: Literal["build", "shards", "judges", "merge"]
    """`judges` are shards in which only models behind APIs are asked."""
    shards: int = 1
    model: str | None = None
    """The model whose items the job does, of several."""
    gpus: int = 0
    """Number of GPUs of every task, those of its server included."""
    only: Literal["weights", "apis"] | None = None
    """Models that are asked: those whose weights are here, or those behind APIs."""
    server: Server | None = None
    workers: str = ""
    """Value of `--workers`: number of processes in every task, or `auto`."""

    @property
    def file(self) -> str:
        """Name of the job's batch file in `FOLDER`."""
        return f"{self.kind}{'-' + as_file_name(self.model) if self.model else ''}.sbatch"

    @property
    def is_array(self) -> bool:
        """Whether the job is an array of shards."""
        return self.kind in ("shards", "judges")


def text_of(
    job: Job, run_dir: Path, profile: Profile, working_dir: Path, most: int | None = None
) -> str:
    """The batch file of a job.

    Args:
        run_dir: the run folder, as a full path.
        working_dir: folder in which faithscope runs, to which paths in the config are relative.
        most: the largest index of an array that the cluster takes; None if it is not known.

    Raises:
        UserError: a value has a character that a batch file cannot hold.
    """
    parts = [_head(job, run_dir, most), *_options(job, run_dir, profile, most), ""]
    parts += [*_start(job, run_dir), f"cd {quoted(working_dir)} || exit 2", *_PROFILE, ""]
    if job.kind == "merge":
        return "\n".join([*parts, _SETUP, "", *_MERGE]) + "\n"
    parts += [*([_BEYOND, ""] if job.is_array else []), *_SIGNALS, "", _SETUP, ""]
    if job.server:
        parts += [*_server(job, job.server), ""]
    end = _END.format(requeue=profile.requeue)
    return "\n".join([*parts, *_work(job), "", end]) + "\n"


def quoted(value: object, directive: bool = False) -> str:
    """A value as one word of a batch file.

    Args:
        directive: whether it stands in a line for sbatch, which reads double quotes and backslashes
            in them, instead of in one for bash.

    Raises:
        UserError: the value has a line break or another control character, which would end the line
            and let the rest run as a command.
    """
    text = str(value)
    if control := next((c for c in text if unicodedata.category(c) in _REFUSED), None):
        raise UserError(
            f"{text!r}: has the character {control!r}, which no batch file can hold; take a name "
            "or path without control characters"
        )
    if not directive or not re.search(r"[^\w@%+=:,./-]", text, re.A):
        return shlex.quote(text)
    return '"{}"'.format(re.sub(r'(["\\])', r"\\\1", text))


_REFUSED = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories: control characters, bytes that are no UTF-8, and separators of lines."""


def _log_pattern(path: Path) -> str:
    # Slurm takes % for the beginning of a pattern, and with a backslash it knows no pattern
    if "\\" in str(path):
        raise UserError(
            f"{path}: has a backslash, with which Slurm does not tell the logs of jobs apart; take "
            "another folder (--set out=…)"
        )
    return str(path).replace("%", "%%")


def _head(job: Job, run_dir: Path, most: int | None) -> str:
    file = quoted(run_dir / FOLDER / job.file)
    does = {
        "build": "Prepares the items of the run",
        "shards": "Does the shards of the run",
        "judges": "Asks the models behind APIs about the shards of the run",
        "merge": "Joins the shards and writes tables, figures and page of the run",
    }[job.kind]
    of = f" for {quoted(job.model)}" if job.model else ""
    lines = ["#!/bin/bash", f"# {does} {quoted(run_dir.name)}{of}.", "#"]
    lines += [
        "# Written by `faithscope submit`; it may be edited. Shards that lack work are handed in",
        f"# again by: faithscope resubmit {quoted(run_dir)}",
        "# By hand:",
        f"#   sbatch {file}",
    ]
    if job.is_array:
        lines += [
            "#   sbatch --array=3,7 …                          some shards alone",
            f"#   {SHARDS}=64 sbatch --array=1-64 …   another number of shards",
        ]
        for offset, numbers in parts_of(range(1, job.shards + 1), most)[1:]:
            beyond = f"#   sbatch --array=1-{len(numbers)} … {offset}"
            lines.append(f"{beyond:<47}shards from {numbers[0]} on, beyond MaxArraySize")
    return "\n".join(lines)


def parts_of(numbers: Iterable[int], most: int | None) -> list[tuple[int, list[int]]]:
    """(offset, shards) of the arrays that do some shards; an index is a shard's number less the
    offset.

    Args:
        most: the largest index that the cluster takes; None takes one array.
    """
    parts: dict[int, list[int]] = {}
    for n in sorted(numbers):
        parts.setdefault((n - 1) // most * most if most else 0, []).append(n)
    return list(parts.items())


def _options(job: Job, run_dir: Path, profile: Profile, most: int | None) -> list[str]:
    short = job.kind == "merge"
    partition = profile.partition if job.gpus else profile.cpu_partition or profile.partition
    stem = Path(job.file).stem
    name = run_dir.name + ("" if stem == "shards" else f"-{stem}")
    task = "%A_%a" if job.is_array else "%j"
    array = f"1-{min(job.shards, most or job.shards)}"
    # one address for all: two tasks on a node would want one port
    at_once = "1" if job.server and not job.server.key else profile.at_once
    array += f"%{at_once}" if at_once else ""
    options = {
        "--job-name=": name,
        "--array=": array if job.is_array else "",
        "--account=": profile.account,
        "--partition=": partition,
        "--qos=": profile.qos,
        "--constraint=": profile.constraint if job.gpus else "",
        profile.gpu_request: str(job.gpus or ""),
        "--cpus-per-task=": profile.report_cpus if short else profile.cpus,
        "--mem=": profile.report_mem if short else profile.mem,
        "--time=": profile.report_time if short else profile.time,
    }
    lines = [f"#SBATCH {k}{quoted(v, directive=True)}" for k, v in options.items() if v]
    if not short:
        # with B: the signal reaches the shell below; without it, it reaches no one
        lines.append(f"#SBATCH --signal=B:USR1@{profile.notice}")
        lines.append("#SBATCH --requeue" if profile.requeue != "0" else "#SBATCH --no-requeue")
    lines.append("#SBATCH --open-mode=append")
    log = f"{_log_pattern(run_dir / FOLDER / 'logs' / stem)}-{task}.log"
    lines.append(f"#SBATCH --output={quoted(log, directive=True)}")
    return [*lines, *(f"#SBATCH {quoted(option, directive=True)}" for option in profile.extra)]


def _start(job: Job, run_dir: Path) -> list[str]:
    lines = [f"run={quoted(run_dir)}"]
    if not job.is_array:
        return [*lines, "task=$SLURM_JOB_ID name=main"]
    of_model = f"@{as_file_name(job.model)}" if job.model else ""
    return [
        *lines,
        f"shards=${{{SHARDS}:-{job.shards}}}",
        "index=$((${SLURM_ARRAY_TASK_ID:-1} + ${1:-0}))",
        "shard=$(((index + shards - 1) % shards + 1))   # of 16 shards, 1-16 and 0-15 are all",
        "task=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_}${SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}",
        f"name=${{shard}}of$shards{of_model}; ((shards > 1)) || name=main{of_model}",
    ]


def _work(job: Job) -> list[str]:
    if job.kind == "build":
        command = ['"${container[@]}" faithscope build "$run/config.yaml"']
    else:
        command = ['"${container[@]}" faithscope run "$run/config.yaml" --shard "$shard/$shards"']
        if job.model:
            command.append(f"--model {quoted(job.model)}")
        if job.only:
            command.append(f"--only {job.only}")
        if job.workers:
            command.append(f"--workers {quoted(job.workers)}")
        if job.server and job.server.key:
            command.append(f'--set "{job.server.key}=[http://127.0.0.1:$port/v1]"')
    return [" \\\n    ".join(command) + " &", *_WAIT]


def _server(job: Job, server: Server) -> list[str]:
    port = "$((20000 + SLURM_JOB_ID % 20000))" if server.key else str(server.port)
    lines = [
        "# The server on this node; it ends with this script, however that ends.",
        f"model={quoted(server.model)} gpus={server.gpus} port={port}",
    ]
    if job.gpus <= server.gpus:
        return [*lines, *_SERVER]
    devices = ",".join(map(str, range(job.gpus)))
    return [
        *lines,
        "# It has the first GPUs of the job, and faithscope the rest.",
        f"devices=${{CUDA_VISIBLE_DEVICES:-{devices}}}",
        'export CUDA_VISIBLE_DEVICES=$(cut -d, -f"-$gpus" <<< "$devices")',
        *_SERVER,
        'export CUDA_VISIBLE_DEVICES=$(cut -d, -f"$((gpus + 1))-" <<< "$devices")',
    ]


_PROFILE = """\
container=()
setup() { :; }
source "$run/slurm/profile"

tell() {   # in the job's log, and in its notes for `faithscope status`
  printf '%(%FT%T%z)T %s\\n' -1 "$*" | tee -a "$run/slurm/tasks/$task"
}
node=${SLURMD_NODENAME:-$(hostname -s)}
tell "start job=$SLURM_JOB_ID restart=${SLURM_RESTART_COUNT:-0} node=$node"\
""".splitlines()

_BEYOND = '((index <= shards)) || { tell "end code=2 no shard $index of $shards"; exit 2; }'
_SETUP = 'setup || { tell "end code=2 setup of the profile failed"; exit 2; }'

_SIGNALS = """\
# Slurm signals this shell alone, which passes it on: USR1 comes before the time limit, TERM when
# the job is preempted or cancelled. faithscope then drops the item in hand, keeps all others, and
# ends.
signal= woken= worker=
pass_on() { signal=$1 woken=1; [[ $worker ]] && kill -s "$1" "$worker" 2>/dev/null; }
trap 'tell "got USR1"; pass_on USR1' USR1
trap 'tell "got TERM"; pass_on TERM' TERM
""".splitlines()

_SERVER = """\
set -m   # so that the server is a group of processes, which can be ended as one
serve > "$run/slurm/logs/server-$task.log" 2>&1 &
server=$!
set +m
trap 'kill -- "-$server" 2>/dev/null; wait "$server"' EXIT
until curl --silent --fail --output /dev/null "http://127.0.0.1:$port/health"; do
  if [[ $signal ]]; then tell "end code=130 signal=$signal"; exit 130; fi
  if ! kill -0 "$server" 2>/dev/null; then
    tell "end code=2 the server ended before it was ready (slurm/logs/server-$task.log)"
    exit 2
  fi
  sleep 2
done
""".splitlines()

_WAIT = """\
worker=$!
[[ $signal ]] && pass_on "$signal"
while wait "$worker"; code=$?; [[ $woken ]]; do woken=; done
""".splitlines()

_END = """\
if ((code == 137)) && [[ ! $signal ]]; then
  # SIGKILL that this shell survived comes from a kernel without memory: the worker's next start
  # takes a smaller token budget
  mkdir -p "$run/KILLED"
  echo "$SLURM_JOB_ID.${{SLURM_RESTART_COUNT:-0}}" >> "$run/KILLED/$name"
fi
tell "end code=$code signal=$signal"

# At the time limit, and for lack of memory, the job queues itself again: stored items stay done.
if [[ $signal == USR1 && $code -gt 128 || ! $signal && $code == 137 ]] &&
   ((${{SLURM_RESTART_COUNT:-0}} < {requeue})); then
  tell "again" && scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code\"""".replace("KILLED", KILLED)

_MERGE = """\
"${container[@]}" faithscope merge "$run"
code=$?
tell "end code=$code"
exit "$code"
""".splitlines()
