"""Resources that a config names and this machine lacks: models that cannot be fetched, devices.

A dry run reports them as notes, since it is often made on another machine than the run: a login
node has no GPU, and a job's node may have no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import FolderConfig
from faithscope.interp import hub

_NAMES = ("model", "writer", "validator", "reference", "simulators")
"""Config keys whose value names a model, besides `name` in a section `model`."""
_ANYWHERE = ("auto", "cpu", "")


def not_at_hand(config: FolderConfig) -> list[str]:
    """A line for each hub model and each device that is not available on this machine."""
    values = settings_of(config)
    lacking = sorted(m for m in models_of(config) if is_of_hub(m) and not hub.is_cached(m))
    problem = hub.unreachable() if lacking else None
    lines = [
        f"model {name!r} is not in this machine's cache, and {problem}; the run needs a network, "
        "or a folder with the weights"
        for name in (lacking if problem else ())
    ]
    devices = {(".".join(key), str(v)) for key, v in values if key[-1] == "device" and v}
    for key, device in sorted(devices):
        if device not in _ANYWHERE and (why := _lacks(device)):
            lines.append(
                f"{key}: {device!r} is not usable on this machine ({why}); the run needs it"
            )
    return lines


def settings_of(config: FolderConfig) -> list[tuple[tuple[str, ...], Any]]:
    """(key, value) of every setting of a config; a list gives its key once per entry."""
    return list(_flat(config.model_dump(mode="json")))


def models_of(config: FolderConfig) -> list[str]:
    """Names of all models in a config: subjects, judges, writers."""
    named = (
        str(value)
        for key, value in settings_of(config)
        if value and (key[-1] in _NAMES or key[-2:] == ("model", "name"))
    )
    return list(dict.fromkeys(named))


def gpus_of(config: FolderConfig, models: Iterable[str]) -> int:
    """Number of GPUs of a process that works with these models: none for planted models and those
    behind APIs, else the largest `tensor_parallel_size` of the config, or one."""
    sizes = [value for key, value in settings_of(config) if key[-1] == "tensor_parallel_size"]
    weights = any(not name.startswith((API, "planted:")) for name in models)
    return max((size for size in sizes if size), default=1) if weights else 0


def is_of_hub(name: str) -> bool:
    """Whether a model's name is an id of the hub."""
    return name.count("/") == 1 and ":" not in name and not Path(name).expanduser().exists()


def _lacks(device: str) -> str | None:
    """Why a device cannot be used here; None if it can."""
    # imported only if a device is named: importing torch takes seconds
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        return " ".join(str(error).split(".")[0].split())
    return None


def _flat(value: Any, key: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, (*key, str(name)))
    elif isinstance(value, list):
        for inner in value:
            yield from _flat(inner, key)
    elif key:
        yield key, value
