"""Figures of many panels alike: where they stand, and the lines drawn in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREY, legend_above

PALE = "#BBBBBB"
"""What is shown for comparison, behind the one that a panel is of."""
ACROSS = 3
T = TypeVar("T")


def grid(
    found: Sequence[T],
    draw: Callable[[Axes, T], object],
    titles: Sequence[str],
    *,
    height: float = 1.9,
    across: int = ACROSS,
    widths: dict[int, float] | None = None,
    shared: bool = True,
    labels: tuple[str, str] = ("", ""),
    **subplots: Any,
) -> Figure:
    """A panel for each of those found, of one at least, its title above it.

    Args:
        across: most panels in a row.
        widths: of the whole figure in inches, by the number of panels in a row.
        shared: one axis across and one down for all, with labels at the edges alone.
        labels: of the axis across and of the axis down, once for the whole figure.
    """
    across = min(across, len(found))
    down = math.ceil(len(found) / across)
    width = (widths or {1: 4.8, 2: 7.2}).get(across, 9.0)
    figure = Figure(figsize=(width, 0.9 + height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, sharex=shared, sharey=shared, **subplots)
    for ax in axes.flat[len(found) :]:
        ax.remove()
    kept = list(axes.flat[: len(found)])
    for i, (ax, one) in enumerate(zip(kept, found, strict=True)):
        draw(ax, one)
        ax.set_title(titles[i], fontsize=8)
        if shared:
            # the last panel of each column has the labels, also where the last row is not full
            ax.tick_params(labelbottom=i + across >= len(found))
    for place, label in zip((figure.supxlabel, figure.supylabel), labels, strict=True):
        if label:
            place(label, fontsize=9)
    return figure


def say(ax: Axes, text: str) -> None:
    """Written in a panel of which nothing can be drawn."""
    ax.text(
        *(0.5, 0.5, text),
        transform=ax.transAxes,
        ha="center",
        va="center",
        color=GREY,
        fontsize=8.5,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2},
    )


def curve(
    ax: Axes, line: pd.DataFrame, x: str, y: str, colour: str = BLUE, label: str = ""
) -> None:
    """A line with its interval as a band."""
    at = line[x].to_numpy(dtype=float)
    ax.fill_between(at, line[f"{y}_low"], line[f"{y}_high"], color=colour, alpha=0.15, lw=0)
    ax.plot(at, line[y], color=colour, marker="o", ms=4, lw=1.5, label=label or None)


def behind(ax: Axes, others: Sequence[pd.DataFrame], x: str, y: str, label: str = "") -> None:
    """The lines of the others, pale."""
    for i, line in enumerate(others):
        ax.plot(line[x], line[y], color=PALE, lw=0.9, zorder=0, label=label if i == 0 else None)


def legend_of_most(figure: Figure) -> None:
    """Above the figure, the legend of the panel that shows most."""
    legend_above(figure, max(figure.axes, key=lambda ax: len(ax.get_legend_handles_labels()[0])))
