"""vLLM as its documentation has a user run it, in a process of its own interpreter.

`vllm.LLM` is started compiled, with prefix caching and, on a CPU, with blocks of 32 tokens: it
shares prefixes by whole blocks, its CPU platform takes 128 unless told, and 16 does not start
there. On a GPU it has the default size. Every call hands over all prompts at once, after the cache
was emptied, and fails if the first prompt found anything in it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch

from faithscope.interp.errors import UserError
from faithscope.interp.model import Model
from faithscope.interp.sources import cache_dir, resolve

CPU_BLOCK = 32


def python_with_vllm(asked_for: str) -> Path | None:
    """The interpreter to start vLLM with; None if vLLM is not wanted, or not installed.

    Raises:
        UserError: the requested interpreter is no file.
    """
    if asked_for == "no":
        return None
    if asked_for == "auto":
        ready = sorted(cache_dir().glob("environments/vllm*/ready"))
        return ready[-1].parent / "bin" / "python" if ready else None
    path = Path(asked_for).expanduser()
    if not path.is_file():
        raise UserError(f"--vllm {asked_for}: no such file; give an interpreter, auto or no")
    return path


def _preloaded(python: Path) -> list[Path]:
    """The libraries that vLLM's guide for CPUs preloads "for best performance", where they are."""
    allocators = sorted(Path("/usr/lib").glob("*/libtcmalloc_minimal.so.4"))
    return [*allocators[:1], *(python.parents[1] / "lib").glob("libiomp5.so")]


def environment(python: Path, model: Model) -> dict[str, str]:
    """Environment variables of vLLM: no telemetry; on a CPU as many cores as the model has here,
    and the libraries that its guide preloads. Those that are set already stay."""
    own = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if model.device.type == "cpu":
        cores = sorted(os.sched_getaffinity(0))[-torch.get_num_threads() :]
        # GiB of keys and values; the largest set of `peers.py` needs 2.1
        own |= {
            "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores)),
            "VLLM_CPU_KVCACHE_SPACE": "4",
            "LD_PRELOAD": ":".join(map(str, _preloaded(python))),
        }
    return own | os.environ


@dataclass
class Vllm:
    """A `vllm.LLM` in a process of its own."""

    process: subprocess.Popen[str]
    log: IO[str]
    version: str = ""
    """vLLM's, and the libraries that are preloaded."""

    def write(
        self,
        prompts: Sequence[Sequence[int]],
        tokens: int,
        logprobs: int | None,
        reset: bool = True,
    ) -> tuple[list[list[int]], int]:
        """Greedy tokens after every prompt, and how many tokens of the prompts were run.

        Args:
            logprobs: number of likeliest tokens whose log-probs are computed for every new token.
            reset: whether the cache is emptied before.

        Raises:
            UserError: vLLM ended.
            RuntimeError: the first prompt found tokens of an earlier call in the cache.
        """
        asked = {"reset": reset, "prompts": prompts, "tokens": tokens, "logprobs": logprobs}
        assert self.process.stdin is not None
        try:
            print(json.dumps(asked), file=self.process.stdin, flush=True)
        except BrokenPipeError as error:
            raise self._ended() from error
        reply = self.reply()
        if reply["cached"][0]:
            raise RuntimeError(
                f"vLLM's prefix cache was not emptied: it held {reply['cached'][0]} tokens of the "
                "first prompt, which an earlier call had computed"
            )
        return reply["ids"], sum(map(len, prompts)) - sum(reply["cached"])

    def reply(self) -> dict[str, Any]:
        """The next line that the process writes.

        Raises:
            UserError: the process ended.
        """
        assert self.process.stdout is not None
        while not select.select([self.process.stdout], [], [], 1)[0]:
            if self.process.poll() is not None:
                raise self._ended()
        if not (line := self.process.stdout.readline()):
            raise self._ended()
        return json.loads(line)

    def _ended(self) -> UserError:
        code = self.process.wait()
        self.log.seek(0)
        return UserError(f"vLLM ended with code {code}; it said:\n{self.log.read()[-2000:]}")


@contextmanager
def in_process(python: Path, model: Model, room: int) -> Iterator[Vllm]:
    """vLLM with the model's weights, loaded and compiled, until the block ends.

    Args:
        room: the most tokens of a prompt and its continuation.

    Raises:
        UserError: vLLM does not start.
    """
    settings = {
        "model": str(resolve(model.name).location),
        "dtype": model.dtype,
        "max_model_len": room,
        "enable_prefix_caching": True,
    }
    # half of a GPU, which holds the model here, too
    on_cpu = model.device.type == "cpu"
    settings |= {"block_size": CPU_BLOCK} if on_cpu else {"gpu_memory_utilization": 0.5}
    worker = Path(__file__).with_name("vllm_worker.py")
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [str(python), str(worker), json.dumps(settings)],
            env=environment(python, model),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        vllm = Vllm(process, log)
        try:
            libraries = [x.name.partition(".")[0] for x in _preloaded(python) if on_cpu]
            vllm.version = " ".join([vllm.reply()["vllm"], *libraries])
            yield vllm
        finally:
            # with the engine, which vLLM runs in a process below
            for end in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, end)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30)
