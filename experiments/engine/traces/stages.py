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
"""Most traces that are read to find the limit of characters under which they have enough steps."""


def remedies(items: Iterable[Planned], index: Index, stored: Mapping[str, Any]) -> dict[str, str]:
    """The `steps.min_chars` under which traces with too few steps would have two.

    Args:
        stored: the config of their run.
    """
    keys = [i.key(TRACE) for i in items if TRACE in i.units]
    short = [key for key in keys if index.excluded(key) == FEW_STEPS][:MOST_READ]
    steps = stored.get("steps")
    if not short or not isinstance(steps, dict):
        return {}
    texts = [[step["text"] for step in index.records(key)[0]["steps"]] for key in short]
    return {FEW_STEPS: min_chars_that_helps(texts, steps.get("min_chars", 0))}


STAGES = by_name(
    Stage(TRACE, measures=False, makes="traces", remedies=remedies),
    *(Stage(name, () if of.on_excluded else (TRACE,)) for name, of in PROBES.items()),
)
