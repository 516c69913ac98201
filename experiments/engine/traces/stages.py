"""The stages of every run over traces: the trace, and a stage for each probe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from faithscope.experiments.config.study import Stage, Stages, Together, by_name
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.tallies.chain_faults import CUT
from faithscope.experiments.engine.tallies.reasons import FEW_STEPS, min_chars_that_helps
from faithscope.experiments.engine.traces.endings import faults_of_trace
from faithscope.probes import Probe, probe_called

TRACE = "trace"
"""Name of the stage in which the reasoning is written; all other stages are probes by name."""
MORE_TOKENS = "generation.max_new_tokens=N, a larger one"
"""Setting that lets chains come to an end."""
MOST_READ = 200
"""Maximum number of traces that `remedies` reads to find a `steps.min_chars` that helps."""


def remedies(items: Iterable[Planned], index: Index, stored: Mapping[str, Any]) -> dict[str, str]:
    """Suggests a smaller `steps.min_chars` for traces with too few steps, and more tokens for
    chains that were written here and cut.

    Args:
        items: the planned items of a run.
        index: the stored units of the run.
        stored: the stored config of the run.

    Returns:
        The reason for excluding them, or the fault -> the setting.
    """
    given = (stored.get("traces") or {}).get("path") is not None
    return _more_steps(items, index, stored) | ({} if given else {CUT: MORE_TOKENS})


def _more_steps(
    items: Iterable[Planned], index: Index, stored: Mapping[str, Any]
) -> dict[str, str]:
    keys = [i.key(TRACE) for i in items if TRACE in i.units]
    short = [key for key in keys if index.excluded(key) == FEW_STEPS][:MOST_READ]
    steps = stored.get("steps")
    if not short or not isinstance(steps, dict):
        return {}
    texts = [[step["text"] for step in index.records(key)[0]["steps"]] for key in short]
    return {FEW_STEPS: min_chars_that_helps(texts, steps.get("min_chars", 0))}


class OfProbes(Mapping[str, Stage]):
    """Stages of the probes by name, each made when it is asked for, since the status of a run of
    three probes need not wait until all are imported."""

    def __init__(self, make: Callable[[Probe], Stage]) -> None:
        self._make = make
        self._made: dict[str, Stage] = {}

    def __getitem__(self, name: str) -> Stage:
        if name not in self._made:
            self._made[name] = self._make(probe_called(name))
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        from faithscope.probes import PROBES

        return iter(PROBES)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def of_probe(probe: Probe) -> Stage:
    """The stage of a probe, of which a study may say more."""
    return Stage(probe.name, () if probe.on_excluded else (TRACE,), keys=("probes",))


OF_TRACE = by_name(
    Stage(
        TRACE,
        measures=False,
        makes="traces",
        seconds=2.5,
        remedies=remedies,
        faults=faults_of_trace,
    )
)
STAGES: Stages = Together(OF_TRACE, OfProbes(of_probe))
