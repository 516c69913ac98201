"""The frames and tables of a comparison: `load_run(...).<name>`.

compared = faithscope.load_run("runs/compare")
compared.items.pivot(index=["model", "task", "item"], columns="measure", values="value")
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from faithscope.experiments.analysis.comparison.join import Joined
from faithscope.experiments.analysis.comparison.scores import ITEMS, STEPS, TRACES
from faithscope.experiments.analysis.run import Frame, Run
from faithscope.experiments.analysis.tidy import only
from faithscope.experiments.studies.compare.results import Compared

_TRACE = {"trace": "digest of what traces must have in common to share a row"}
_SOURCE = {"source": "name of the run that the score is from"}


def _of(
    read: Callable[[Joined], pd.DataFrame], columns: list[str]
) -> Callable[[Run], pd.DataFrame]:
    return lambda run: only(read(run.once(Compared).joined), columns)


def _frame(name: str, meaning: str, columns: dict[str, str]) -> Frame:
    return Frame(name, meaning, columns, make=_of(lambda j: getattr(j, name), list(columns)))


FRAMES = (
    _frame(
        "items",
        "A row per trace and measure, labels among them: its score, or why there is none.",
        {**ITEMS, **_TRACE, **_SOURCE},
    ),
    _frame(
        "steps",
        "A row per trace, measure and step: how much the measure credits the step with.",
        {**STEPS, **_TRACE, **_SOURCE},
    ),
    _frame("traces", "A row per trace: what is known of it.", {**TRACES, **_TRACE}),
)
