"""The stages of every run over traces: the trace, and a stage for each probe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from faithscope.experiments.config.study import Stage, by_name
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.tallies.reasons import FEW_STEPS, min_chars_that_helps
from faithscope.probes import PROBES

TRACE = "trace"
"""Name of the stage in which the reasoning is written; all other stages are probes by name."""
MOST_READ = 200
"""Maximum number of traces that `remedies` reads to find a `steps.min_chars` that helps."""


def remedies(items: Iterable[Planned], index: Index, stored: Mapping[str, Any]) -> dict[str, str]:
    """Suggests a smaller `steps.min_chars` for traces that were excluded for too few steps.

    Args:
        items: the planned items of a run.
        index: the stored units of the run.
        stored: the stored config of the run.

    Returns:
        The reason for excluding them -> the setting; empty if there are no such traces.
    """
    keys = [i.key(TRACE) for i in items if TRACE in i.units]
    short = [key for key in keys if index.excluded(key) == FEW_STEPS][:MOST_READ]
    steps = stored.get("steps")
    if not short or not isinstance(steps, dict):
        return {}
    texts = [[step["text"] for step in index.records(key)[0]["steps"]] for key in short]
    return {FEW_STEPS: min_chars_that_helps(texts, steps.get("min_chars", 0))}


STAGES = by_name(
    Stage(TRACE, measures=False, makes="traces", seconds=2.5, remedies=remedies),
    *(Stage(name, () if of.on_excluded else (TRACE,)) for name, of in PROBES.items()),
)
