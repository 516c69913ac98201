"""What a run can be made of: tasks, probes, models, and which fit each other.

Cheap to import: nothing here reads weights or loads torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from faithscope.experiments.config.api import API
from faithscope.experiments.config.model import model_names
from faithscope.experiments.data.tasks import TASKS, get_task
from faithscope.interp.errors import did_you_mean
from faithscope.probes import PROBES


def probe_problem(name: str) -> str | None:
    """Why `name` is no probe, or None if it is one."""
    return None if name in PROBES else _unknown("probe", name, list(PROBES))


def probes_of(model: str, probes: Sequence[str]) -> list[str]:
    """The probes that can be taken of a model: of one behind an API those that only ask it."""
    return [p for p in probes if PROBES[p].from_outside is not None or not model.startswith(API)]


def outside_probes() -> list[str]:
    """The probes that can be taken of a model behind an API."""
    return [name for name, probe in PROBES.items() if probe.from_outside is not None]


def possible_from_outside(probe: str) -> Mapping[str, tuple[str, ...]]:
    """Setting -> what of it a model behind an API can be asked by; nothing where it has no part
    in the probe."""
    return PROBES[probe].from_outside or {}


def _unknown(what: str, name: str, known: list[str], more: str = "") -> str:
    guess = did_you_mean(name, known)
    return f"unknown {what} {name!r}" + (guess or f"; known: {', '.join(known)}{more}")


def fits(model: str, task: str) -> bool:
    """Whether a model can be asked a task: planted models know only their own language."""
    return any(fnmatchcase(model, pattern) for pattern in get_task(task).models)


def pairs(models: list[str], tasks: list[str]) -> list[tuple[str, str]]:
    """(model, task) for all that fit, models outermost."""
    return [(m, t) for m in models for t in tasks if fits(m, t)]


def partner_hint_for_model(model: str) -> str:
    """What to add so that `model` has something to do."""
    fitting = [t for t in TASKS if fits(model, t)]
    return f"add one of the tasks {', '.join(fitting)}, or take the model out"


def partner_hint_for_task(task: str) -> str:
    """What to add so that `task` has someone to do it."""
    fitting = [m for m in model_names() if fits(m, task)]
    return f"add one of the models {', '.join(fitting)}, or take the task out"
