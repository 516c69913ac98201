"""Bars parted into kinds, a line for each model and task, numbers in the wide parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from faithscope.experiments.analysis.charts import GREY, INK_ON_DARK, INK_ON_PALE, legend_above
from faithscope.experiments.analysis.plots import share_ticks
from faithscope.experiments.studies.rfeval.figures.plots import NONE_COUNTS, Line, finish_lines

# pages lighten blue and purple on a dark ground, where white numbers would be lost in a bar
BAR_BLUE, BAR_ORANGE, BAR_PURPLE = "#0A6DA8", "#C65102", "#A03E8F"
BAR_GREY, BAR_PALE = "#6E6E6E", "#BDBDBD"
DARK = {BAR_BLUE, BAR_ORANGE, BAR_PURPLE, BAR_GREY}
"""Colours with white numbers on them."""
LEAST = 0.055
"""Of the axis: narrower parts have no number."""
Parts = Mapping[str, tuple[str, str]]
"""Part -> colour and label."""


def bars(
    ax: Axes,
    lines: Sequence[Mapping[str, float]],
    parts: Parts,
    say: Callable[[float, int], str],
) -> Axes:
    """A bar per line, parted; wide parts carry a number.

    Args:
        lines: part -> share of the line, NaN where there is nothing to part.
        say: from a share and its line's place to what stands in the part.
    """
    for y, line in enumerate(lines):
        left = 0.0
        for part, (colour, _) in parts.items():
            share = line[part]
            if np.isnan(share):
                continue
            ax.barh(y, share, left=left, color=colour, height=0.78)
            if share >= LEAST:
                ink = INK_ON_DARK if colour in DARK else INK_ON_PALE
                text = say(share, y)
                at = left + share / 2
                ax.text(at, y - 0.05, text, ha="center", va="center", fontsize=7, color=ink)
            left += share
        if not left:
            ax.text(0.01, y, NONE_COUNTS, va="center", fontsize=8, color=GREY)
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1), ylim=(len(lines) - 0.5, -0.5))
    return ax


def finish_bars(ax: Axes, lines: Sequence[Line], parts: Parts) -> None:
    """Names beside the bars, and above the figure what the parts are."""
    finish_lines([ax], lines)
    for spine in ax.spines.values():
        spine.set_visible(False)
    handles = [Patch(color=colour, label=label) for colour, label in parts.values()]
    figure = ax.figure
    assert isinstance(figure, Figure)
    legend_above(figure, handles, ncols=3)
