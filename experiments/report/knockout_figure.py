"""Knockout of a step against removal of its text."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.report.picture import Picture, legend_above
from faithscope.experiments.report.plots import BLUE, GREY, ORANGE, panels, share_ticks
from faithscope.experiments.tables.tidy import rows, where

STYLES = {
    "later": (BLUE, "o", "no later token sees the step"),
    "answer": (ORANGE, "D", "only the answer does not see it"),
}
_SMALL, _LARGE = 18, 90


def against_removal(ax: Axes, table: pd.DataFrame) -> Axes:
    """Total variation of either, a point per place of the step: the later, the larger."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":")
    for queries, (colour, marker, label) in STYLES.items():
        points = rows(where(table, queries=queries))
        if not points:
            continue
        ax.scatter(
            [r["removed_tv"] for r in points],
            [r["tv"] for r in points],
            [_SMALL + (_LARGE - _SMALL) * r["position"] for r in points],
            color=colour,
            marker=marker,
            alpha=0.65,
            linewidths=0,
            label=label,
        )
    for axis in (ax.xaxis, ax.yaxis):
        share_ticks(axis)
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def knockout_picture(by_step: pd.DataFrame) -> Picture:
    """One panel per model and task, all layers at once."""
    data = where(by_step, window="all")
    figure = None
    if len(data):
        figure, axes = panels(data, against_removal, across=4, width=2.1, height=2.0)
        figure.supxlabel("total variation, step removed", fontsize=9)
        figure.supylabel("total variation, step knocked out", fontsize=9)
        legend_above(figure, axes[0, 0])
    return Picture(
        "knockout",
        "Removed, or only not looked at?",
        "How far the answer distribution moves when a step's text is removed, and when it stays "
        "but is not attended to in any layer: mean over items, a point for each fifth of the "
        "reasoning, the last the largest. Points far right and at the bottom are steps whose "
        "absence disturbs the model although it does not read them.",
        data,
        figure,
        "No item was measured.",
    )
