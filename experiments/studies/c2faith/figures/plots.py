"""What C2-Faith's figures are put together from: voices, and their panels, dots and curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis import panels
from faithscope.experiments.analysis.charts import GREY, legend_above
from faithscope.experiments.analysis.dots import dots, name_lines
from faithscope.experiments.analysis.panels import behind, curve
from faithscope.experiments.analysis.plots import share_ticks
from faithscope.experiments.analysis.short_names import short_names
from faithscope.experiments.analysis.tidy import rows, where

SILENT = "no verdict"


@dataclass(frozen=True)
class Voice:
    """One judge in one reading, by the first of its prompts in the table."""

    judge: str
    reading: str
    prompt: str
    label: str
    """The judge, short, and different from every other judge in the same figure."""
    aside: str
    """The reading, where the figure has both."""

    @property
    def name(self) -> str:
        return f"{self.label} · {self.aside}" if self.aside else self.label

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        return where(table, judge=self.judge, reading=self.reading, prompt=self.prompt)


def voices(table: pd.DataFrame) -> list[Voice]:
    """Every judge and reading of a table, in its order."""
    found: dict[tuple[str, str], str] = {}
    for row in rows(table):
        found.setdefault((row["judge"], row["reading"]), row["prompt"])
    names = short_names([judge for judge, _ in found])
    mixed = len({reading for _, reading in found}) > 1
    return [Voice(j, r, prompt, names[j], r if mixed else "") for (j, r), prompt in found.items()]


def grid(
    found: Sequence[Voice],
    draw: Callable[[Axes, Voice], object],
    *,
    titles: Mapping[str, str] | None = None,
    **how: Any,
) -> Figure:
    """A panel per voice, of one at least, its name above it (`report.panels.grid`).

    Args:
        titles: name -> what stands below it, in a second line.
    """
    said = []
    for voice in found:
        below = [t for t in (voice.aside, (titles or {}).get(voice.name, "")) if t]
        said.append("\n".join([voice.label, " · ".join(below)][: 1 + bool(below)]))
    return panels.grid(found, draw, said, **how)


def say_silent(ax: Axes, count: int) -> None:
    """Written in a panel of which nothing can be drawn."""
    panels.say(ax, f"{SILENT}\nin {count} judgements" if count else "nothing to draw")


def forest(
    table: pd.DataFrame, measures: Mapping[str, tuple[str, str, str]], label: str
) -> Figure | None:
    """`dots` of every voice of a table as a whole figure, the legend above it."""
    found = voices(table)
    if not found:
        return None
    height = 1.1 + (0.18 + 0.1 * len(measures)) * len(found)
    figure = Figure(figsize=(9, height), layout="constrained")
    ax = dots(figure.add_subplot(), [rows(v.of(table))[0] for v in found], measures, silent=SILENT)
    name_lines(ax, [v.name for v in found])
    ax.set_xlabel(label)
    legend_above(figure, ax)
    return figure


def curves(
    table: pd.DataFrame,
    x: str,
    y: str,
    labels: tuple[str, str],
    unsaid: Callable[[np.ndarray], int],
) -> Figure | None:
    """`curve` of every voice in a panel of its own, the others pale behind it.

    Args:
        labels: of the axis across and of the axis down.
        unsaid: from the column `n_without_verdict` of a voice of which nothing can be drawn, how
            many judgements those are.
    """
    found = voices(table)
    lines = {v: v.of(table).dropna(subset=[y]) for v in found}

    def draw(ax: Axes, voice: Voice) -> None:
        behind(ax, [line for v, line in lines.items() if v != voice], x, y)
        if len(lines[voice]):
            curve(ax, lines[voice], x, y)
        else:
            say_silent(ax, unsaid(voice.of(table)["n_without_verdict"].to_numpy(dtype=int)))
        share_ticks(ax.yaxis)
        ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)

    return grid(found, draw, labels=labels) if found else None
