"""The environment of a run: versions, commit, devices."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, get_args

from faithscope.interp.extensions import Kind, entries

ROOT = Path(__file__).resolve().parents[2]
"""Folder of the running source: the installed package, or the checkout that it links to."""
_PACKAGES = (
    "faithscope",
    "torch",
    "transformers",
    "tokenizers",
    "accelerate",
    "safetensors",
    "numpy",
    "scipy",
    "pandas",
    "bitsandbytes",
    "gguf",
    "peft",
)


def environment(weights: bool = True) -> dict[str, Any]:
    """Versions, commit and devices, as stored in environment.json.

    Args:
        weights: whether weights are loaded; without, torch is not imported, and devices, which do
            nothing then, are not listed.
    """
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        **(_devices() if weights else {}),
        "packages": {name: v for name in (*_PACKAGES, *added_by()) if (v := version(name))},
        "commit": commit(),
        "source": source(),
    }


def _devices() -> dict[str, Any]:
    import torch

    return {
        "threads": torch.get_num_threads(),
        "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        "cuda": torch.version.cuda,
    }


def source(root: Path = ROOT) -> str:
    """Digest of the code below `root`, committed or not: eight hex digits."""
    rooms = ("experiments", "interp", "interventions", "probes")
    kinds = ("py", "yaml", "json", "css", "js", "jinja")
    files = (f for room in rooms for kind in kinds for f in (root / room).rglob(f"*.{kind}"))
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:8]


def added_by() -> list[str]:
    """Names of the installed packages that add probes, tasks or studies."""
    every = (entry.dist for kind in get_args(Kind) for entry in entries(kind))
    return sorted({dist.name for dist in every if dist})


def version(package: str) -> str | None:
    """The installed version of a package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """The git commit of the running source, with `+changes` if it was edited since; None outside a
    checkout."""
    if not (ROOT / ".git").exists():
        return None
    head = _git(ROOT, "rev-parse", "HEAD")
    return head and head + ("+changes" if _git(ROOT, "status", "--porcelain", "-uno") else "")


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if sys.platform == "linux" and info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def install_command(extra: str = "") -> str:
    """The pip command that adds `extra` to this installation."""
    wanted = f"[{extra}]" if extra else ""
    pip = f"{sys.executable} -m pip install"
    if (ROOT / "pyproject.toml").is_file():
        return f"{pip} -c {ROOT / 'constraints.txt'} -e '{ROOT}{wanted}'"
    return f"{pip} 'faithscope{wanted}'"
