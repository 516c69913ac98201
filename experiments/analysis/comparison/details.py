"""Details of single traces (texts, curves, heat maps) that a study gives to the explorer page.

A study gives them by `Report.details`: `details(run)` yields, for every trace of `scores(run)`, its
place and a function that reads its `Detail` when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from faithscope.experiments.analysis.page import Block

Number = float | None
"""A value to draw; None where there is none."""


@dataclass(frozen=True)
class Curve:
    """A line chart: several lines over one x axis."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    """Positions on the x axis, in ascending order."""
    lines: Mapping[str, Sequence[Number]]
    """Name of a line -> its values, one for each entry of `x`; None where there is none."""
    words: Sequence[str] = ()
    """Text at each entry of `x`, such as the top token of a lens; empty shows none."""


@dataclass(frozen=True)
class HeatMap:
    """A heat map: numbers by row and column."""

    title: str
    row_label: str
    column_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[Number]]
    """The numbers, with shape (rows, columns); None where there is none."""


Drawn = Curve | HeatMap


@dataclass(frozen=True)
class Detail:
    """One trace as a run stores it: question, answer, steps, and what the study shows of it."""

    question: str
    answer: str | None
    gold: str | None
    steps: Sequence[str]
    """Texts of the steps, indexed like `step` in `scores.STEPS`. Joined they give the reasoning,
    where that is known. Empty where the run has no steps."""
    blocks: Sequence[Block]
    """Blocks of the study's own page: replies of the judges, answers of the branches."""
    drawn: Sequence[Drawn] = field(default_factory=tuple)
    """Charts of the trace."""


Place = tuple[str, ...]
"""Values of the columns `scores.PLACE`, which identify a trace."""
Details = Iterator[tuple[Place, Callable[[], Detail]]]
"""Place of each trace, with a function that reads its details."""
