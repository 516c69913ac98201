"""Judges in figures: a judge reading is one judge in one reading, with a row or a panel of its own.

A judge that gave no verdict keeps its place in every figure, with a word that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import note
from faithscope.experiments.analysis.charts import behind, curve, dot_rows, dots_of, panels
from faithscope.experiments.analysis.colours import Style
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import short_names

SILENT = "no verdict"


@dataclass(frozen=True)
class JudgeReading:
    """One judge in one reading, by the first of its prompts in the table."""

    judge: str
    reading: str
    prompt: str
    label: str
    """Short name of the judge, different from every other judge's in the same figure."""
    aside: str
    """The reading, if the figure has both; else ""."""

    @property
    def name(self) -> str:
        return f"{self.label} · {self.aside}" if self.aside else self.label

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        return where(table, judge=self.judge, reading=self.reading, prompt=self.prompt)


def judge_readings(table: pd.DataFrame) -> list[JudgeReading]:
    """Every judge and reading of a table, in its order."""
    prompts: dict[tuple[str, str], str] = {}
    for row in rows(table):
        prompts.setdefault((row["judge"], row["reading"]), row["prompt"])
    names = short_names([judge for judge, _ in prompts])
    mixed = len({reading for _, reading in prompts}) > 1
    return [
        JudgeReading(j, r, prompt, names[j], r if mixed else "")
        for (j, r), prompt in prompts.items()
    ]


def judge_reading_rows(
    table: pd.DataFrame, measures: Mapping[str, Style], label: str
) -> Figure | None:
    """A row of dots for every judge reading of a table."""
    every = judge_readings(table)
    dots = [d for v in every for d in dots_of(v.of(table).head(1), measures, lambda _, v=v: v)]
    return dot_rows({"": dots}, {v: v.name for v in every}, label=label, silent=SILENT)


@dataclass(frozen=True)
class Line:
    """A curve of every judge reading in its panel."""

    y: str
    """Column of the curve's values; rows without a value are passed over."""
    style: Style
    look: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `analysis.charts.curve`."""
    of: Mapping[str, Any] = field(default_factory=dict)
    """Column -> value, of the rows that the curve is drawn of."""
    aside: bool = False
    """Whether the curve is known without a verdict of the judge reading."""


def judge_reading_curves(
    table: pd.DataFrame,
    x: str,
    lines: Sequence[Line],
    ground: Callable[[Axes], object],
    *,
    pale: str = "",
    others: str = "",
    **how: Any,
) -> Figure | None:
    """A panel for every judge reading of a table, with its curves over one column.

    Args:
        ground: draws what stands in every panel.
        pale: the column whose values of the other judge readings are drawn pale behind; "" draws
            none.
        others: name of the other judge readings in the legend.
    """

    def draw(ax: Axes, rater: JudgeReading, judged: pd.DataFrame) -> bool:
        ground(ax)
        if pale:
            behind(ax, other_lines(table, rater, pale), x, pale, others)
        drawn = False
        for line in lines:
            known = where(judged, **line.of).dropna(subset=[line.y])
            if len(known):
                curve(ax, known, x, line.y, line.style, **line.look)
                drawn |= not line.aside
        return drawn

    return judge_reading_panels(table, draw, **how)


def judge_reading_panels(
    table: pd.DataFrame,
    draw: Callable[[Axes, JudgeReading, pd.DataFrame], bool],
    *,
    titles: Mapping[str, str] | None = None,
    count: Callable[[pd.DataFrame], int] = lambda rows: int(rows["n_without_verdict"].iloc[0]),
    **how: Any,
) -> Figure | None:
    """A panel for every judge reading of a table (`analysis.charts.panels`).

    Args:
        draw: from axes, a judge reading and its rows; gives whether there was anything to draw.
        titles: name of a judge reading -> what stands below it, in a second line.
        count: from the rows of a judge reading without a drawing to its number of judgements.
    """
    every = judge_readings(table)

    def panel(ax: Axes, rater: JudgeReading) -> None:
        judged = rater.of(table)
        if not draw(ax, rater, judged):
            n = count(judged)
            note(ax, f"{SILENT}\nin {n} judgements" if n else "nothing to draw")

    def title(rater: JudgeReading) -> str:
        below = [t for t in (rater.aside, (titles or {}).get(rater.name, "")) if t]
        return "\n".join([rater.label, " · ".join(below)][: 1 + bool(below)])

    return panels(every, panel, list(map(title, every)), **how)


def other_lines(table: pd.DataFrame, rater: JudgeReading, column: str) -> Sequence[pd.DataFrame]:
    """The rows of all other judge readings that have a value in a column."""
    return [v.of(table).dropna(subset=[column]) for v in judge_readings(table) if v != rater]
