"""The answer's probability along the reasoning."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.report.picture import Picture
from faithscope.experiments.report.plots import BLUE, GREY, panels, share_ticks


def traced(ax: Axes, table: pd.DataFrame) -> Axes:
    """Mean probability of the final answer by place in the reasoning, of one model and task."""
    ax.plot(table["position"], table["p"], color=BLUE, lw=1.5, marker="o", ms=2.5)
    ax.fill_between(table["position"], table["p_low"], table["p_high"], color=BLUE, alpha=0.2, lw=0)
    share_ticks(ax.yaxis)
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1), ylim=(-0.03, 1.03))
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    return ax


def tracing_picture(table: pd.DataFrame) -> Picture:
    """One panel per model and task."""
    figure = None
    if len(table):
        figure, _ = panels(table, traced, across=3, width=2.8, height=2.1)
        figure.supxlabel("share of the reasoning given", fontsize=9)
        figure.supylabel("probability of the final answer", fontsize=9)
    return Picture(
        "tracing",
        "When is the answer there?",
        "Probability of the model's final answer among the task's answers, when its reasoning is "
        "cut off and it has to answer, mean over items with 95 % bootstrap intervals. A line "
        "that starts high was settled before the reasoning; one that jumps at the end is read "
        "off the last step.",
        table,
        figure,
        "No item was measured.",
    )
