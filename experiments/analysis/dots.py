"""Estimates as dots with their intervals, a line of the figure for each, and the axes they need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from faithscope.experiments.analysis.charts import GREY


def dots(
    ax: Axes,
    lines: Sequence[Mapping[str, Any]],
    measures: Mapping[str, tuple[str, str, str]],
    *,
    silent: str,
    low: float = 0.0,
) -> Axes:
    """Estimates with their intervals, a row of the figure per line.

    Args:
        measures: column -> colour, marker, label.
        silent: written where a line has none of the measures.
        low: where the axis begins, further left where an interval does.
    """
    least = low
    # two stand nearer to each other than to the next line's
    height = {1: 0.0, 2: 0.36}.get(len(measures), 0.56)
    for i, (name, (colour, marker, label)) in enumerate(measures.items()):
        apart = height * (i / max(1, len(measures) - 1) - 0.5)
        at = [(y + apart, r) for y, r in enumerate(lines) if not math.isnan(r[name])]
        if not at:
            continue
        reach = [
            [max(0.0, r[name] - or_else(r[f"{name}_low"], r[name])) for _, r in at],
            [max(0.0, or_else(r[f"{name}_high"], r[name]) - r[name]) for _, r in at],
        ]
        ax.errorbar(
            [r[name] for _, r in at],
            [y for y, _ in at],
            xerr=reach,
            fmt=marker,
            color=colour,
            ms=4.5,
            elinewidth=1,
            label=label,
        )
        least = min(least, *(r[name] - d for (_, r), d in zip(at, reach[0], strict=True)))
    for y, row in enumerate(lines):
        if all(math.isnan(row[name]) for name in measures):
            ax.text(0.01, y, silent, va="center", fontsize=8, color=GREY)
    share_axis(ax, least)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    for y in range(len(lines) - 1):
        ax.axhline(y + 0.5, color=GREY, alpha=0.2, lw=0.5)
    return ax


def moved(
    ax: Axes,
    y: float,
    before: float,
    after: tuple[float, float, float],
    colour: str,
    marker: str,
) -> None:
    """Hollow where it was, filled where it is, joined; `after` with its interval, a pale bar."""
    value, low, high = after
    reach = [[max(0.0, value - or_else(low, value))], [max(0.0, or_else(high, value) - value)]]
    ax.errorbar(value, y, xerr=reach, fmt="none", ecolor=colour, alpha=0.3, elinewidth=3)
    ax.plot([before, value], [y, y], color=colour, lw=1.2, zorder=3)
    ax.plot(before, y, marker, mec=colour, mfc="white", ms=5, zorder=4, clip_on=False)
    ax.plot(value, y, marker, color=colour, ms=5, zorder=5, clip_on=False)


def rules_between(ax: Axes, groups_of: Sequence[int]) -> None:
    """Lines between rows, stronger between groups of so many rows."""
    ends = np.cumsum(groups_of)
    for i in range(1, sum(groups_of)):
        width, alpha = (0.9, 0.8) if i in ends else (0.5, 0.2)
        ax.axhline(i - 0.5, color=GREY, lw=width, alpha=alpha)


def bare_rows(axes: Sequence[Axes]) -> None:
    """Axes beside the one that names the rows."""
    for ax in axes:
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)


def name_lines(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), list(names))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def share_axis(ax: Axes, least: float = 0.0) -> None:
    """Quarters from 0 to 1, and below 0 as far as needed."""
    first = math.floor(4 * min(0.0, least) + 1e-9) / 4
    ticks = np.arange(first, 1.01, 0.25)
    ax.set_xticks(ticks, [quarter(t) for t in ticks])
    ax.set_xlim(first - 0.03, 1.03)
    ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.5)
    ax.axvline(0, color="black", lw=0.6)
    ax.set_axisbelow(True)


def quarter(value: float) -> str:
    """`0`, `.25`, `−.5`, `1`."""
    text = f"{abs(value):g}".replace("0.", ".")
    return f"−{text}" if value < 0 else text


def or_else(value: float, other: float) -> float:
    """The first, unless it is NaN."""
    return other if math.isnan(value) else value
