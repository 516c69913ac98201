"""Attention to the reasoning by layer, real against shuffled."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from faithscope.experiments.report.picture import Picture, legend_above
from faithscope.experiments.report.plots import BLUE, GREEN, GREY, ORANGE, panels

STYLES = {
    "real": (BLUE, "-", "real reasoning"),
    "shuffled": (ORANGE, "--", "steps shuffled"),
    "gap": (GREEN, "-.", "gap"),
}


def by_layer(ax: Axes, table: pd.DataFrame) -> Axes:
    """Shares of the answer's attention over the layers of one model on one task."""
    ax.axhline(0, color=GREY, lw=0.7)
    for name, (colour, line, label) in STYLES.items():
        ax.plot(table["layer"], table[name], color=colour, ls=line, lw=1.4, label=label)
        ax.fill_between(
            table["layer"],
            table[f"{name}_low"],
            table[f"{name}_high"],
            color=colour,
            alpha=0.18,
            lw=0,
        )
    ax.set_xlim(1, max(2, len(table)))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    return ax


def attention_picture(table: pd.DataFrame) -> Picture:
    """One panel per model and task."""
    figure = None
    if len(table):
        figure, axes = panels(table, by_layer, across=3, width=2.8, height=2.1)
        figure.supxlabel("layer", fontsize=9)
        figure.supylabel("share of the answer's attention", fontsize=9)
        legend_above(figure, axes[0, 0])
    return Picture(
        "attention",
        "Attention of the answer to the reasoning",
        "Share of the attention of the token before the answer that goes to the reasoning, mean "
        "over heads, with 95 % bootstrap intervals over items. Where the gap is above zero the "
        "order of the steps matters to the attention: it reads more than a place.",
        table,
        figure,
        "No item was measured.",
    )
