"""What every figure shares: colours and markers, axes of shares, rows with names, the legend.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; every colour goes with a
marker of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
AMBER, SKY, GREY, PALE = "#E69F00", "#56B4E9", "#777777", "#BBBBBB"
INK_ON_DARK, INK_ON_PALE = "#FFFFFF", "#222222"
"""`INK_ON_PALE` is not quite black: black follows the page, and is white on a dark one, where
cells stay pale."""
MARKERS = "os^DvP*X"
LINES = [(c, m) for m in MARKERS[:5] for c in (BLUE, ORANGE, GREEN, PURPLE)]
"""Colours and markers of as many lines as a figure may have, a model and task each."""


class Style(NamedTuple):
    """How one series looks, and its name in the legend."""

    colour: str
    marker: str
    label: str


PLAIN = Style(BLUE, "o", "")


def styles_for(names: Iterable[str], labels: Mapping[str, str] | None = None) -> dict[str, Style]:
    """A colour and a marker for each name, in their order; the first 49 are all different."""
    colours = (BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, GREY)
    return {
        name: Style(colours[i % 7], MARKERS[(i + i // 7) % 7], (labels or {}).get(name, name))
        for i, name in enumerate(names)
    }


def handle(style: Style) -> Line2D:
    """A series in a legend."""
    colour, marker, label = style
    return Line2D([], [], ls="", color=colour, marker=marker, label=label)


def rules_between(ax: Axes, groups: Sequence[int]) -> None:
    """Lines between rows, stronger between groups of so many rows."""
    ends = np.cumsum(groups)
    for i in range(1, sum(groups)):
        width, alpha = (0.9, 0.8) if i in ends else (0.5, 0.2)
        ax.axhline(i - 0.5, color=GREY, lw=width, alpha=alpha)


def bare_rows(axes: Sequence[Axes]) -> None:
    """Axes beside the one that names the rows."""
    for ax in axes:
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """A name for each row of the figure."""
    ax.set_yticks(range(len(names)), list(names))
    ax.set_ylim(len(names) - 0.5, -0.5)
    bare_rows([ax])


def counts_beside(ax: Axes, counts: Sequence[float], head: str = "n") -> None:
    """How many each row is of, at the right of a panel."""
    for y, n in [(-0.75, head), *((y, f"{int(n):,}") for y, n in enumerate(counts))]:
        at: dict[str, Any] = {
            "xycoords": ("axes fraction", "data"),
            "va": "center",
            "annotation_clip": False,
        }
        ax.annotate(str(n), (1.015, y), fontsize=7, color=GREY, **at)


def share_axis(ax: Axes, least: float = 0.0) -> None:
    """Quarters from 0 to 1 across, and below 0 as far as needed."""
    first = math.floor(4 * min(0.0, least) + 1e-9) / 4
    ticks = np.arange(first, 1.01, 0.25)
    ax.set_xticks(ticks, [quarter(t) for t in ticks])
    ax.set_xlim(first - 0.03, 1.03)
    ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.5)
    ax.axvline(0, color="black", lw=0.6)
    ax.set_axisbelow(True)


def share_ticks(axis: Axis) -> None:
    """Quarters from 0 to 1."""
    axis.set_ticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])


def quarter(value: float) -> str:
    """`0`, `.25`, `−.5`, `1`."""
    text = f"{abs(value):g}".replace("0.", ".")
    return f"−{text}" if value < 0 else text


def signed(value: float) -> str:
    """Two decimals, with the sign that is no hyphen."""
    return f"{value:.2f}".replace("-", "−")


def share_rise(ax: Axes) -> Axes:
    """Shares from 0 to 1 down the side, with a light grid."""
    share_ticks(ax.yaxis)
    ax.set_ylim(-0.03, 1.03)
    ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def along_reasoning(ax: Axes) -> Axes:
    """The axis of a step's relative place, 0 to 1."""
    ax.set(xlim=(0, 1), xticks=[0.05, 0.95])
    ax.set_xticklabels(["first", "last"])
    ax.tick_params(axis="x", length=0)
    return ax


def unit_square(ax: Axes, label: str = "") -> Axes:
    """Shares on both axes, and dotted where the two are equal."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", zorder=0, label=label or None)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    share_ticks(ax.xaxis)
    share_ticks(ax.yaxis)
    return ax


def note(ax: Axes, text: str) -> None:
    """What stands in a panel of which nothing can be drawn."""
    box: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2}
    at = {"transform": ax.transAxes, "ha": "center", "va": "center"}
    ax.text(0.5, 0.5, text, color=GREY, fontsize=8.5, bbox=box, **at)


DARK_BLUE, DARK_ORANGE, DARK_PURPLE = "#0A6DA8", "#C65102", "#A03E8F"
DARK_GREY, LIGHT_GREY = "#6E6E6E", "#BDBDBD"
"""Colours of bars: pages lighten blue and purple on a dark ground, where white numbers would be
lost in them."""


def part_handles(parts: Mapping[str, tuple[str, str]]) -> list[Patch]:
    """The parts of `share_bars` in a legend."""
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
        of: axes whose artists are named, or the handles themselves with their labels.
        ncols: most columns; three for three names, else two.
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
