"""Several processes on one machine, each with a shard of a run and GPUs of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from faithscope.experiments.console import BAD_INPUT, DONE, FAILED_ITEMS, INTERRUPTED
from faithscope.experiments.engine.memory_kills import add_kill
from faithscope.experiments.engine.planfile import Shard
from faithscope.interp.errors import UserError

VISIBLE = "CUDA_VISIBLE_DEVICES"
KILLED = 128 + 9
"""Exit code that a shell gives for a process that SIGKILL ended."""


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` names them."""
    if (named := os.environ.get(VISIBLE)) is not None:
        return [name for name in named.split(",") if name.strip()]
    # importing torch takes seconds
    import torch

    return [str(i) for i in range(torch.cuda.device_count())]


def gpu_groups(workers: int | None, each: int) -> list[list[str]]:
    """The GPUs of each process.

    Args:
        workers: number of processes; None makes as many as there are groups of GPUs.
        each: number of GPUs that a process needs.

    Raises:
        UserError: there are too few GPUs, or none by which processes could be counted.
    """
    if not each:
        if workers is None:
            raise UserError("--workers auto: these models need no GPU; give a number of processes")
        return [[]] * workers
    gpus = visible_gpus()
    n = len(gpus) // each if workers is None else workers
    if not n or n * each > len(gpus):
        wanted = f"{n or 1} processes with {each} each"
        raise UserError(f"--workers: {wanted} need more GPUs than the {len(gpus)} that are here")
    return [gpus[i * each : (i + 1) * each] for i in range(n)]


def shares(shard: Shard, n: int) -> list[Shard]:
    """The shards of n processes that together do one shard: of 3/8 in two, 3/16 and 11/16."""
    return [replace(shard, index=shard.index + shard.of * j, of=shard.of * n) for j in range(n)]


class Processes:
    """The processes of a run, which end together when this one is stopped."""

    def __init__(self, run_dir: Path, say: Callable[[str], None]) -> None:
        """
        Args:
            say: prints a line of a process's messages.
        """
        self.run_dir, self.say = run_dir, say
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._readers: list[threading.Thread] = []

    def run(self, command: Sequence[str], parts: Sequence[Shard], gpus: Sequence[list[str]]) -> int:
        """Run a command of faithscope once for each shard; returns the gravest exit code, or
        `KILLED` if the machine killed a process.

        Raises:
            KeyboardInterrupt: this process was stopped; the others have stopped, too.
        """
        threads = str(max(1, (os.cpu_count() or 1) // len(parts)))
        for part, own in zip(parts, gpus, strict=True):
            env = (
                {"OMP_NUM_THREADS": threads}
                | os.environ
                | ({VISIBLE: ",".join(own)} if own else {})
            )
            process = subprocess.Popen(
                [sys.executable, "-m", "faithscope.experiments.cli", *command, *_options(part)],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                # a Ctrl-C reaches this process alone, which passes it on once
                start_new_session=True,
            )
            self._running[part.worker] = process
            reader = threading.Thread(target=self._read, args=(part.worker, process), daemon=True)
            reader.start()
            self._readers.append(reader)
        try:
            codes = [process.wait() for process in self._running.values()]
        except KeyboardInterrupt:
            self._stop()
            raise
        for reader in self._readers:
            reader.join()
        killed = [w for w, p in self._running.items() if p.returncode == -signal.SIGKILL]
        for worker in killed:
            self.say(f"{worker}: was killed, most likely for lack of memory")
            add_kill(self.run_dir, worker, f"process-{self._running[worker].pid}")
        self._running.clear()
        return KILLED if killed else _gravest(codes)

    def _read(self, worker: str, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self.say(f"{worker}: {line.rstrip()}")

    def _stop(self) -> None:
        for process in self._running.values():
            if process.poll() is None:
                process.terminate()
        for process in self._running.values():
            process.wait()


def _options(part: Shard) -> list[str]:
    options = ["--shard", f"{part.index + 1}/{part.of}"]
    options += ["--model", part.model] if part.model else []
    return options + (["--only", part.only] if part.only else [])


def _gravest(codes: Sequence[int]) -> int:
    # a process that a signal ended has left work undone, like one that was stopped
    known = {code if code in (DONE, BAD_INPUT, FAILED_ITEMS) else INTERRUPTED for code in codes}
    return next(c for c in (BAD_INPUT, INTERRUPTED, FAILED_ITEMS, DONE) if c in known)
