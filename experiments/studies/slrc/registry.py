"""What a run can be made of: tasks, probes, models, and which fit each other.

Cheap to import: nothing here reads weights or loads torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.data.tasks import TASKS, get_task
from faithscope.interp.errors import did_you_mean
from faithscope.interp.sources import PACKAGED
from faithscope.probes import PROBES

API = "api:"
"""Before the name of a model that is asked over the network; any other name is a model here."""


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


def model_names() -> list[str]:
    """Every model that has a name of its own here."""
    return [*(f"planted:{name}" for name in PLANTS), *(f"bundled:{n}" for n in PACKAGED)]


def model_problem(name: str, api: bool = False) -> str | None:
    """Why `name` cannot be a model, as far as can be said without loading it.

    Args:
        api: whether one behind an API will do.
    """
    if name.startswith(API):
        if not api:
            return f"{name!r} is behind an API and shows nothing of its inside; name a model here"
        named = "/" in name.removeprefix(API)
        return None if named else f"{name!r} names no provider; write it as {API}openai/gpt-4.1"
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


def model_rows() -> list[tuple[str, str]]:
    """Models with a name of their own, and what each is."""
    return [
        *((f"planted:{name}", plant.summary) for name, plant in PLANTS.items()),
        *((f"bundled:{name}", f"{p.note} ({p.licence})") for name, p in PACKAGED.items()),
        ("ORG/NAME", "any causal language model of the Hugging Face hub"),
        ("FOLDER", "what save_pretrained wrote"),
        ("FILE.gguf", "a GGUF file, dequantised at load"),
        ("api:PROVIDER/MODEL", "a model behind an API, of which only what it writes is to be had"),
    ]


def task_rows() -> list[tuple[str, str]]:
    """Tasks, and what each asks."""
    varied = dict.fromkeys(name for task in TASKS.values() for name in task.variants)
    return [
        *((name, task.summary) for name, task in TASKS.items()),
        *((f"TASK:{name}", f"the same questions; {_VARIANTS[name]}") for name in varied),
    ]


def probe_rows() -> list[tuple[str, str]]:
    """Probes, and what each measures."""
    return [(name, probe.summary) for name, probe in PROBES.items()]


_VARIANTS = {
    "self_justification": "each step is to say why it is necessary (SLRC, 2.6)",
    "alternative": "the key points are to be broken down one by one (SLRC, 2.6)",
}


def prompt_rows() -> list[tuple[str, str]]:
    """Prompts that judges are asked, and where their words come from."""
    from faithscope.experiments.studies.c2faith.prompts import judge_forms

    return [
        (name, f"{f.task.replace('_', ' ')}; {'our words' if f.ours else 'the words of the paper'}")
        for name, f in judge_forms().items()
    ]
