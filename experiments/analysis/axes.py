"""What all figures share: the sheet that they are drawn on, axes of shares, named rows, the legend.

A figure is as wide as a column or as the page of a paper (`report.figure_width`), so that it needs
no scaling there and its letters have the sizes below. `sheet` makes one; no other function sets a
width.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import AutoLocator, FuncFormatter, MaxNLocator, ScalarFormatter

from faithscope.experiments.analysis.colours import GREY, INK, PALE, PAPER, QUIET, Style
from faithscope.experiments.numerals import significant

WIDTHS = {"column": 3.3, "page": 6.75}
"""Name of a width -> inches."""
LARGE, SMALL = 8, 7
"""Points of titles and labels, and of ticks, legends and notes."""
TALLEST = 9.0
"""Inches of the text on a page of a paper."""
_WIDTH: ContextVar[float] = ContextVar("width of figures", default=WIDTHS["page"])


@contextmanager
def of_width(name: str) -> Iterator[None]:
    """Makes all figures that are drawn inside as wide as a column or a page."""
    before = _WIDTH.set(WIDTHS[name])
    try:
        yield
    finally:
        _WIDTH.reset(before)


def width() -> float:
    """Inches of a figure's width."""
    return _WIDTH.get()


def narrow() -> bool:
    """Whether a figure stands in a column, where half as many panels fit side by side."""
    return width() < WIDTHS["page"]


class Sheet(Figure):
    """A figure, with the further sheets that it goes on on if one would be too tall."""

    further: Sequence[Sheet] = ()

    @property
    def panels(self) -> list[Axes]:
        """The axes of all sheets."""
        return [ax for of in (self, *self.further) for ax in of.axes]


def sheet(height: float, most: float = math.inf) -> Sheet:
    """An empty figure of the width that all have, or of `most` inches if that is less."""
    return Sheet(figsize=(min(width(), most), height), layout="constrained")


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


def hatch_ground(ax: Axes) -> None:
    """Hatches the ground of a map, which shows through cells without a value: a white one would be
    taken for zero."""
    ax.patch.set(hatch="/////", edgecolor=PALE, linewidth=0)


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Writes the names of the rows on the y axis; long ones, as those with the folder of a model,
    in two lines, which leave the panels more than half of the figure."""
    figure = ax.get_figure()
    most = math.floor(NAMED * figure.get_figwidth()) if figure else 0
    shown = [_in_two_lines(name, most) for name in names]
    ax.set_yticks(range(len(names)), shown)
    if shown != [*names]:
        ax.tick_params(axis="y", labelsize=SMALL)
    ax.set_ylim(len(names) - 0.5, -0.5)
    bare_rows([ax])


NAMED = 8
"""Characters of the names of rows for each inch of a figure's width."""


def _in_two_lines(name: str, most: int) -> str:
    """A name in at most two lines of so many characters; of a longer one the beginning and the
    end."""
    if len(name) <= most:
        return name
    first, *rest = _folded(name, most)
    return f"{first}\n{rest[0] if len(rest) == 1 else '…' + name[1 - most :]}"


FITTING = 5
"""Characters of a title for each inch of a figure's width, by panel, that fit beside any names of
rows."""


def fold_titles(figure: Figure, across: int) -> None:
    """Breaks the titles of panels that are wider than their panel, after a space or a mark.

    Args:
        across: number of panels in a row.
    """
    titles = {ax: _title(ax) for ax in figure.axes}
    longest = max((len(s) for of in titles.values() for s in of.get_text().split("\n")), default=0)
    if longest <= FITTING * figure.get_figwidth() / across:
        return
    figure.draw_without_rendering()
    for ax, title in titles.items():
        room, lines = ax.get_window_extent().width, title.get_text().split("\n")
        most = max(map(len, lines))
        while most > 1 and title.get_window_extent().width > room:
            most = min(most - 1, math.floor(most * room / title.get_window_extent().width))
            parts = (part for line in lines for part in _folded(line, max(1, most)))
            title.set_text("\n".join(parts))


def _title(ax: Axes) -> Text:
    """The title of axes, which stands at the left in our style."""
    left: Text = ax._left_title  # pyright: ignore
    return left if left.get_text() else ax.title


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


def counts_beside(ax: Axes, counts: Sequence[float | str], head: str = "n") -> None:
    """Writes the number of items of each row at the right of a panel."""
    words = [n if isinstance(n, str) else f"{int(n):,}" for n in counts]
    for y, n in [(-0.75, head), *enumerate(words)]:
        at: dict[str, Any] = {
            "xycoords": ("axes fraction", "data"),
            "va": "center",
            "annotation_clip": False,
        }
        ax.annotate(n, (1.015, y), fontsize=SMALL, color=QUIET, **at)


def share_axis(ax: Axes, least: float = 0.0, across: int = 1) -> None:
    """Sets an x axis from 0 to 1 with ticks at quarters, or at halves where there is little room,
    extended below 0 down to `least`.

    Args:
        across: number of panels side by side.
    """
    first = math.floor(4 * min(0.0, least) + 1e-9) / 4
    ticks = np.arange(first, 1.01, 0.25 if width() / across > ROOMY else 0.5)
    ax.set_xticks(ticks, [significant(t) for t in ticks])
    ax.set_xlim(first - MARGIN_OF_SHARES, 1 + MARGIN_OF_SHARES)
    ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.5)
    ax.axvline(0, color=INK, lw=0.6)
    ax.set_axisbelow(True)


ROOMY = 3.4
"""Inches of a panel, with its names, that has room for five ticks."""
MARGIN_OF_SHARES = 0.04
"""What an axis of shares leaves free at its ends, so that a marker at 0 or 1 lies inside."""


def plain_ticks(figure: Figure) -> None:
    """Writes the numbers at ticks as all others are written, without zeros at their ends and
    without an exponent beside the axis; an axis of whole numbers has ticks at these alone."""
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            if isinstance(axis.get_major_formatter(), ScalarFormatter):
                axis.set_major_formatter(FuncFormatter(lambda value, _: significant(value, 6)))
        # lines across the axes have no places in the data
        drawn = [line for line in ax.lines if line.get_transform() is ax.transData]
        at = np.concatenate([[], *(line.get_xdata(orig=False) for line in drawn)])
        whole = len(at) > 0 and bool(np.all(at == np.round(at)))
        if whole and isinstance(ax.xaxis.get_major_locator(), AutoLocator):
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def share_ticks(axis: Axis) -> None:
    """Sets ticks at halves from 0 to 1, with small ones at quarters."""
    axis.set_ticks([0, 0.5, 1], ["0", "0.5", "1"])
    axis.set_ticks([0.25, 0.75], minor=True)


def share_rise(ax: Axes) -> Axes:
    """Sets a y axis of shares from 0 to 1, with a light grid."""
    share_ticks(ax.yaxis)
    ax.set_ylim(-MARGIN_OF_SHARES, 1 + MARGIN_OF_SHARES)
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
    ends = (-MARGIN_OF_SHARES, 1 + MARGIN_OF_SHARES)
    ax.set(xlim=ends, ylim=ends)
    share_ticks(ax.xaxis)
    share_ticks(ax.yaxis)
    return ax


def note(ax: Axes, text: str) -> None:
    """Writes a text in a panel without data."""
    box: dict[str, Any] = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.85, "pad": 2}
    at = {"transform": ax.transAxes, "ha": "center", "va": "center"}
    ax.text(0.5, 0.5, text, color=QUIET, fontsize=SMALL, bbox=box, **at)


def part_handles(parts: Mapping[str, tuple[str, str]]) -> list[Patch]:
    """Legend entries of the parts of `share_bars`."""
    return [Patch(color=colour, label=label) for colour, label in parts.values()]


MARGIN = 0.1
"""Inches that a legend leaves free at the sides of its figure."""


def legend_above(
    figure: Figure, of: Axes | Sequence[Artist], ncols: int | None = None, fontsize: float = SMALL
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
