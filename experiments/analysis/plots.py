"""What is drawn on one pair of axes: each function takes and returns `Axes`.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; every colour goes
with a marker of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREEN, GREY, ORANGE, PURPLE
from faithscope.experiments.analysis.short_names import middle_cut, pairs_of, short
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import where

SHORTEST = 12
"""Characters that a line of a title keeps, whatever the width."""

LINES = [(c, m) for m in ("o", "s", "^", "D", "v") for c in (BLUE, ORANGE, GREEN, PURPLE)]
"""Colours and markers of as many lines as a figure may have, a model and task each."""


def along_reasoning(ax: Axes) -> Axes:
    """The axis of a step's relative place, 0 to 1, with a light grid across."""
    ax.set(xlim=(0, 1), xticks=[0.05, 0.95])
    ax.set_xticklabels(["first", "last"])
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def share_ticks(axis: Axis) -> None:
    """Quarters from 0 to 1."""
    axis.set_ticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])


def panels(
    table: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], Axes],
    *,
    across: int,
    width: float,
    height: float,
) -> tuple[Figure, np.ndarray]:
    """A figure with a panel for each model and task, at most so many in a row."""
    pairs = pairs_of(table)
    across = min(across, len(pairs))
    down = math.ceil(len(pairs) / across)
    size = (0.9 + width * across, 0.9 + height * down)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, sharey=True)
    for ax in axes.flat[len(pairs) :]:
        ax.remove()
    for ax, (model, task) in zip(axes.flat, pairs, strict=False):
        draw(ax, where(table, model=model, task=task))
        name_panel(ax, (short(model), visible(task)), width)
    return figure, axes


def name_panel(ax: Axes, lines: Sequence[str], inches: float, fontsize: float = 8.5) -> None:
    """A title of these lines; those wider than the panel lose their middle."""
    title = ax.set_title("\n".join(lines), fontsize=fontsize)
    figure = title.get_figure(root=True)
    assert figure is not None
    longest = max(map(len, lines))
    while title.get_window_extent().width > inches * figure.dpi and longest > SHORTEST:
        longest -= 1
        title.set_text("\n".join(middle_cut(line, longest) for line in lines))
