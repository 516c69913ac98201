"""What every study tells of one trace beside its scores, for the page on which traces are explored.

A study gives it in its module `details`: `details(run)` yields, for every trace of `scores(run)`,
its place there and a function that reads the rest when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from faithscope.experiments.analysis.page import Block

Number = float | None


@dataclass(frozen=True)
class Curve:
    """Lines over one axis."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    """Ascending."""
    lines: Mapping[str, Sequence[Number]]
    """Name -> as many numbers as `x`; None where there is none."""
    words: Sequence[str] = ()
    """What to say at each of `x`, as the token that a lens puts first; empty for nothing."""


@dataclass(frozen=True)
class HeatMap:
    """Numbers by row and column."""

    title: str
    row_label: str
    column_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[Number]]
    """(rows, columns)."""


Drawn = Curve | HeatMap


@dataclass(frozen=True)
class Detail:
    """One trace as a run has it."""

    question: str
    answer: str | None
    gold: str | None
    steps: Sequence[str]
    """Texts by the index that `scores.STEPS` has; they tile the reasoning where it is known. Empty
    where the run knows no steps."""
    blocks: Sequence[Block]
    """As the study's own page shows it: what each judge wrote, what every branch answered."""
    drawn: Sequence[Drawn] = field(default_factory=tuple)


Place = tuple[str, ...]
"""The values of `scores.PLACE`."""
Details = Iterator[tuple[Place, Callable[[], Detail]]]
