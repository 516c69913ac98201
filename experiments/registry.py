"""What a run can be made of: tasks, probes, models, and which fit each other.

Cheap to import: nothing here reads weights or loads torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.planted.data import VARIANTS
from experiments.tasks import TASKS
from interp.errors import did_you_mean
from interp.sources import PACKAGED

if TYPE_CHECKING:
    from experiments.config import RunConfig
    from interp.model import Model
    from interventions.trace import Trace
    from probes.record import Record
    from probes.slrc import Asking


@dataclass(frozen=True)
class Probe:
    """One measure that a run can ask for."""

    name: str
    summary: str
    measure: Callable[[Model, Trace, Asking, RunConfig], list[Record]]
    settings: Callable[[RunConfig], dict[str, Any]]
    """Everything of the config that its numbers depend on."""
    branches: Callable[[int, RunConfig], int]
    """Continuations asked about, for a trace of so many steps."""


def _slrc(model: Model, trace: Trace, asking: Asking, config: RunConfig) -> list[Record]:
    from probes.slrc import SlrcSettings, slrc

    c = config.slrc
    settings = SlrcSettings(
        framings=tuple(c.framings),
        readings=tuple(c.readings),
        shuffles=c.shuffles,
        edits=tuple(c.edits),
        answer_tokens=c.answer_tokens,
        length_normalise=c.length_normalise,
        seed=config.seed,
        regenerate_tokens=c.regenerate_tokens,
    )
    return slrc(model, trace, asking, settings)


def _slrc_settings(config: RunConfig) -> dict[str, Any]:
    return config.slrc.model_dump(mode="json") | {"seed": config.seed}


def _slrc_branches(steps: int, config: RunConfig) -> int:
    c = config.slrc
    return len(c.framings) * (1 + steps * (len(c.edits) + 1) + c.shuffles)


PROBES: dict[str, Probe] = {
    "slrc": Probe(
        "slrc",
        "necessity, sufficiency, order sensitivity and their edits (Step-Level Reasoning Capacity)",
        _slrc,
        _slrc_settings,
        _slrc_branches,
    ),
}


def task_problem(name: str) -> str | None:
    """Why `name` is no task, or None if it is one."""
    return None if name in TASKS else _unknown("task", name, list(TASKS))


def probe_problem(name: str) -> str | None:
    """Why `name` is no probe, or None if it is one."""
    return None if name in PROBES else _unknown("probe", name, list(PROBES))


def model_names() -> list[str]:
    """Every model that has a name of its own here."""
    return [*(f"planted:{v}" for v in VARIANTS), *(f"bundled:{n}" for n in PACKAGED)]


def model_problem(name: str) -> str | None:
    """Why `name` cannot be a model, as far as can be said without loading it."""
    known = model_names()
    if name in known or Path(name).expanduser().exists():
        return None
    scheme = name.partition(":")[0]
    is_file = name.endswith(".gguf") and scheme not in ("planted", "bundled")
    if not is_file and (":" in name or "/" not in name):
        return _unknown("model", name, known, "; or a hub id (org/name), a folder, a .gguf file")
    if is_file or name.startswith((".", "/", "~")) or name.count("/") > 1:
        return f"no such file or folder: {name!r}; check the path"
    return None


def _unknown(what: str, name: str, known: list[str], more: str = "") -> str:
    guess = did_you_mean(name, known)
    return f"unknown {what} {name!r}" + (guess or f"; known: {', '.join(known)}{more}")


def fits(model: str, task: str) -> bool:
    """Whether a model can be asked a task: planted models know only their own language."""
    return any(fnmatchcase(model, pattern) for pattern in _patterns(task))


def _patterns(task: str) -> tuple[str, ...]:
    return TASKS[task].models


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


def model_rows() -> list[tuple[str, str]]:
    """Models with a name of their own, and what each is."""
    return [
        *((f"planted:{name}", _PLANTED[name]) for name in VARIANTS),
        *((f"bundled:{name}", f"{p.note} ({p.licence})") for name, p in PACKAGED.items()),
        ("ORG/NAME", "any causal language model of the Hugging Face hub"),
        ("FOLDER", "what save_pretrained wrote"),
        ("FILE.gguf", "a GGUF file, dequantised at load"),
    ]


def task_rows() -> list[tuple[str, str]]:
    """Tasks, and what each asks."""
    return [(name, task.summary) for name, task in TASKS.items()]


def probe_rows() -> list[tuple[str, str]]:
    """Probes, and what each measures."""
    return [(name, probe.summary) for name, probe in PROBES.items()]


_PLANTED = {
    "faithful": "tiny; its answer follows the last step of its reasoning",
    "hint": "tiny; writes the same words, its answer follows the hint in the question",
    "hint_no_deletions": "as hint, but never saw a deletion: removal flips it all the same",
    "select": "tiny; its answer is the result of the one step that the question names",
}
