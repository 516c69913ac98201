"""What a config needs before it can run, and what of that this machine lacks; loads nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.data.tasks import get_task
from faithscope.experiments.engine.environment import install_command
from faithscope.experiments.engine.models.at_hand import is_of_hub, models_of, settings_of
from faithscope.interp import hub
from faithscope.interp.errors import UserError


@dataclass(frozen=True)
class Need:
    """One thing that a config needs."""

    what: str
    lacking: str = ""
    """Why this machine does not have it, with the remedy; empty where it has it."""
    kind: str = "files"
    """What it is, in a word: keys, weights, GPU, packages, files or data."""


def needs(config: FolderConfig) -> list[Need]:
    """What a config needs, in the order: models, keys, packages, devices, data."""
    return list(_needs(config))


def _needs(config: FolderConfig) -> Iterator[Need]:
    models = models_of(config)
    weights = [name for name in models if is_of_hub(name)]
    for name in (m for m in models if m.startswith(API)):
        yield Need(f"access to {name}", _of_service(name.removeprefix(API)), "keys")
    lacking = [name for name in weights if not hub.is_cached(name)]
    if weights:
        absent = f"{len(lacking)} of {len(weights)} are not in the cache, and " if lacking else ""
        problem = hub.unreachable() if lacking else None
        why = f"{absent}{problem}" if problem else ""
        yield Need(f"weights of {', '.join(weights)}", why, "weights")
        yield Need("a GPU", _no_gpu(), "GPU")
    settings = settings_of(config)
    if any(key[-1] == "quantize" and value for key, value in settings):
        yield _package("bitsandbytes", "quant")
    if any(key[-1] == "backend" and value == "vllm" for key, value in settings):
        yield _package("vllm", "vllm")
    for name, value in ((".".join(key), value) for key, value in settings if "path" in key):
        absent = f"{value!r} is not here; name the file or folder: --set {name}=…"
        if isinstance(value, str):
            there = Path(value).expanduser().exists()
            yield Need(f"what {name} names", "" if there else absent)
        elif name == "traces.path" and not getattr(config, "tasks", None):
            yield Need("chains that were written elsewhere", f"none are named: --set {name}=…")
    if _of_hub(config) and (("data", "path"), None) in settings:
        problem = hub.unreachable()
        more = "; copies in its cache are read, or give files: --set data.path=…"
        yield Need("data sets of the hub", f"{problem}{more}" if problem else "", "data")


def _of_hub(config: FolderConfig) -> bool:
    """Whether a config reads data sets: a benchmark does, and so do tasks that take `data.path`."""
    tasks = getattr(config, "tasks", None)
    return tasks is None or any("data.path" in get_task(task).summary for task in tasks)


def _of_service(name: str) -> str:
    # imported only for models behind APIs, like the extra that they need
    from faithscope.probes.judge.connection import connect

    try:
        connect(name)
    except UserError as error:
        return str(error)
    return ""


def _package(module: str, extra: str) -> Need:
    there = find_spec(module) is not None
    return Need(
        module, "" if there else f"{module} is not installed: {install_command(extra)}", "packages"
    )


def _no_gpu() -> str:
    # importing torch takes seconds
    import torch

    there = torch.cuda.is_available() or torch.backends.mps.is_available()
    return "" if there else "this machine has none, and a CPU would take weeks"
