"""Parts that all figures share: axes of shares, named rows, the legend."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from faithscope.experiments.analysis.colours import GREY, INK, PAPER, QUIET, Style


def handle(style: Style) -> Line2D:
    """The legend entry of a series."""
    colour, marker, label = style
    return Line2D([], [], ls="", color=colour, marker=marker, label=label)


def rules_between(ax: Axes, groups: Sequence[int]) -> None:
    """Draws lines between rows, stronger ones between groups, whose sizes are given."""
    ends = np.cumsum(groups)
    for i in range(1, sum(groups)):
        width, alpha = (0.9, 0.8) if i in ends else (0.5, 0.2)
        ax.axhline(i - 0.5, color=GREY, lw=width, alpha=alpha)


def bare_rows(axes: Sequence[Axes]) -> None:
    """Hides the tick marks and the left spine of axes, for panels beside named rows."""
    for ax in axes:
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Writes the names of the rows on the y axis."""
    ax.set_yticks(range(len(names)), list(names))
    ax.set_ylim(len(names) - 0.5, -0.5)
    bare_rows([ax])


FITTING = 5
"""Characters of a title for each inch of a figure's width, by panel, that fit beside any names of
rows."""


def fold_titles(figure: Figure, across: int) -> None:
    """Breaks the titles of panels that are wider than their panel, after a space or a mark.

    Args:
        across: number of panels in a row.
    """
    longest = max((len(s) for ax in figure.axes for s in ax.get_title().split("\n")), default=0)
    if longest <= FITTING * figure.get_figwidth() / across:
        return
    figure.draw_without_rendering()
    for ax in figure.axes:
        room, lines = ax.get_window_extent().width, ax.get_title().split("\n")
        most = max(map(len, lines))
        while most > 1 and ax.title.get_window_extent().width > room:
            most = min(most - 1, math.floor(most * room / ax.title.get_window_extent().width))
            parts = (part for line in lines for part in _folded(line, max(1, most)))
            ax.title.set_text("\n".join(parts))


def _folded(line: str, most: int) -> Iterator[str]:
    """Parts of at most so many characters, which end in a space or a mark where there is one."""
    part = ""
    for word in re.findall(r"[^ ._/()-]*[ ._/()-]?", line):
        if part and len(part) + len(word.rstrip()) > most:
            yield part.rstrip()
            part = ""
        part += word
        while len(part.rstrip()) > most:
            yield part[:most]
            part = part[most:]
    yield part.rstrip()


def counts_beside(ax: Axes, counts: Sequence[float], head: str = "n") -> None:
    """Writes the number of items of each row at the right of a panel."""
    for y, n in [(-0.75, head), *((y, f"{int(n):,}") for y, n in enumerate(counts))]:
        at: dict[str, Any] = {
            "xycoords": ("axes fraction", "data"),
            "va": "center",
            "annotation_clip": False,
        }
        ax.annotate(str(n), (1.015, y), fontsize=7, color=QUIET, **at)


def share_axis(ax: Axes, least: float = 0.0) -> None:
    """Sets an x axis from 0 to 1 with ticks at quarters, extended below 0 down to `least`."""
    first = math.floor(4 * min(0.0, least) + 1e-9) / 4
    ticks = np.arange(first, 1.01, 0.25)
    ax.set_xticks(ticks, [quarter(t) for t in ticks])
    ax.set_xlim(first - 0.03, 1.03)
    ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.5)
    ax.axvline(0, color=INK, lw=0.6)
    ax.set_axisbelow(True)


def share_ticks(axis: Axis) -> None:
    """Sets ticks at quarters from 0 to 1."""
    axis.set_ticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])


def quarter(value: float) -> str:
    """A tick label such as `0`, `.25`, `−.5`, `1`."""
    text = f"{abs(value):g}".replace("0.", ".")
    return f"−{text}" if value < 0 else text


def signed(value: float) -> str:
    """A number with two decimals and a true minus sign instead of a hyphen."""
    return f"{value:.2f}".replace("-", "−")


def share_rise(ax: Axes) -> Axes:
    """Sets a y axis of shares from 0 to 1, with a light grid."""
    share_ticks(ax.yaxis)
    ax.set_ylim(-0.03, 1.03)
    ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def along_reasoning(ax: Axes) -> Axes:
    """Sets an x axis of the relative place of a step in its chain, 0 to 1."""
    ax.set(xlim=(0, 1), xticks=[0.05, 0.95])
    ax.set_xticklabels(["first", "last"])
    ax.tick_params(axis="x", length=0)
    return ax


def unit_square(ax: Axes, label: str = "") -> Axes:
    """Sets both axes to shares, with a dotted diagonal where the two are equal."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", zorder=0, label=label or None)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    share_ticks(ax.xaxis)
    share_ticks(ax.yaxis)
    return ax


def note(ax: Axes, text: str) -> None:
    """Writes a text in a panel without data."""
    box: dict[str, Any] = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.85, "pad": 2}
    at = {"transform": ax.transAxes, "ha": "center", "va": "center"}
    ax.text(0.5, 0.5, text, color=QUIET, fontsize=8.5, bbox=box, **at)


def part_handles(parts: Mapping[str, tuple[str, str]]) -> list[Patch]:
    """Legend entries of the parts of `share_bars`."""
    return [Patch(color=colour, label=label) for colour, label in parts.values()]


MARGIN = 0.1
"""Inches that a legend leaves free at the sides of its figure."""


def legend_above(
    figure: Figure, of: Axes | Sequence[Artist], ncols: int | None = None, fontsize: float = 8.5
) -> None:
    """A legend above the whole figure, in as many columns as fit; at least as wide as the legend.

    Constrained layout makes room for a legend's height, not for its width: in a figure of one
    panel the columns that suit three would be cut off.

    Args:
        of: axes whose labelled artists are listed, or handles with labels.
        ncols: largest number of columns; default three for three names, else two.
    """
    handles = of.get_legend_handles_labels()[0] if isinstance(of, Axes) else list(of)
    if not handles:
        return
    look = {"loc": "outside upper left", "fontsize": fontsize}
    for columns in range(ncols or (3 if len(handles) == 3 else 2), 0, -1):
        legend = figure.legend(handles=handles, ncols=columns, **look)
        width = legend.get_window_extent().width / figure.dpi + 2 * MARGIN
        if width <= figure.get_figwidth():
            return
        if columns > 1:
            legend.remove()
    figure.set_figwidth(width)
