"""Questions of a task and any probe of a trace, without a config or a run folder: for notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from faithscope.experiments.config import ConfigError, RunConfig
from faithscope.experiments.measures import PROBES
from faithscope.experiments.registry import probe_problem
from faithscope.experiments.tasks import LoadSettings, Task, get_task
from faithscope.experiments.traces import exclusion
from faithscope.interp.errors import did_you_mean
from faithscope.interventions.trace import Question, Trace
from faithscope.probes.record import Record

if TYPE_CHECKING:
    from faithscope.interp.model import Model


_MADE = "where traces are made (`TraceSettings`)"
_FITTED = "where the tables of a run are made"
_ELSEWHERE: dict[str, dict[str, str]] = {
    "slrc": dict.fromkeys(("segmentation", "min_step_chars", "conclusion"), _MADE),
    "linear_probe": dict.fromkeys(
        ("folds", "controls", "inverse_regularisation", "min_items"), _FITTED
    ),
}
"""Settings of a config's section that a measurement of one trace does not read."""


def questions(
    task: Task | str, limit: int, *, seed: int = 0, path: str | Path | None = None
) -> list[tuple[Task, Question]]:
    """The first questions of a task, as `make_traces` takes them.

    Args:
        limit: how many.
        seed: of what a task draws.
        path: local data instead of the hub's, as `data.path` of a config.

    Raises:
        UserError, ValueError, OSError: no such task, or its data cannot be read.
    """
    chosen = get_task(task) if isinstance(task, str) else task
    settings = LoadSettings(Path(path) if path is not None else None, limit, seed)
    return [(chosen, question) for question in chosen.load(settings)]


def measure(
    model: Model,
    trace: Trace,
    probe: str,
    *,
    task: Task | str | None = None,
    seed: int = 0,
    **settings: Any,
) -> list[Record]:
    """The records of one probe of one trace, as a run would store them.

    Raw arrays (per layer, head, token) stand under `"arrays"` of a record, by name; the
    docstring of the probe gives their shapes.

    Args:
        probe: as in a config's `probes`; `faithscope list probes` names them.
        task: whose words to ask in; by default the one that the question's dataset names.
        settings: what a config's section of the probe can hold, e.g. `shuffles=5`.

    Raises:
        UserError: an unknown probe or setting, or a wrong value.
        ValueError: the trace is one that a run would exclude, with the reason.
    """
    if problem := probe_problem(probe):
        raise ConfigError([problem])
    if (reason := exclusion(trace)) and not PROBES[probe].on_excluded:
        raise ValueError(
            f"trace of {trace.question.id!r} cannot be probed ({reason}); make another"
        )
    chosen = get_task(task) if isinstance(task, str) else task or get_task(trace.question.dataset)
    if elsewhere := [name for name in settings if name in _ELSEWHERE.get(probe, {})]:
        where = _ELSEWHERE[probe][elsewhere[0]]
        raise ConfigError([f"probe {probe!r}: {elsewhere[0]!r} acts {where}, not on a measurement"])
    section = RunConfig.model_fields.get(probe)
    if section is None and settings:
        raise ConfigError([f"probe {probe!r} has no settings, got {', '.join(settings)}"])
    told = {} if section is None else {probe: _checked(section.annotation, probe, settings)}
    # the rest of a config, that a probe may look at, is as it stands by default
    config = RunConfig.model_construct(seed=seed, **told)
    return PROBES[probe].measure(model, chosen, trace, config)


def _checked(section: Any, probe: str, settings: dict[str, Any]) -> Any:
    try:
        return section.model_validate(settings)
    except ValidationError as error:
        problems = []
        for found in error.errors():
            name = ".".join(map(str, found["loc"]))
            if found["type"] == "extra_forbidden":
                known = section.model_fields
                guess = did_you_mean(name, known) or f"; it has {', '.join(known)}"
                problems.append(f"probe {probe!r} has no setting {name!r}{guess}")
            else:
                problems.append(f"{probe}.{name}: {found['msg']}, got {found['input']!r}")
        raise ConfigError(problems) from None
