"""What the question tells of each part of the reasoning, and each part of the answer."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.report.picture import Picture, legend_above
from faithscope.experiments.report.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, pairs_of, short
from faithscope.experiments.tables.textual import visible
from faithscope.experiments.tables.tidy import where

_LINES = [(c, m) for m in ("o", "s", "^", "D", "v") for c in (BLUE, ORANGE, GREEN, PURPLE)]


def by_place(ax: Axes, table: pd.DataFrame, measure: str, dashed: str | None = None) -> Axes:
    """A line per model and task over the reasoning, with its 95 % interval as a band.

    Args:
        dashed: a second measure, in the same colours, without bands.
    """
    for i, (model, task) in enumerate(pairs_of(table)):
        colour, marker = _LINES[i % len(_LINES)]
        line = where(table, model=model, task=task)
        x = line["position"]
        label = f"{short(model)} · {visible(task)}"
        ax.plot(x, line[measure], f"{marker}-", color=colour, lw=1, ms=4, label=label)
        low, high = line[f"{measure}_low"], line[f"{measure}_high"]
        ax.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)
        if dashed is not None:
            ax.plot(x, line[dashed], f"{marker}--", color=colour, lw=1, ms=3, mfc="none")
    ax.set(xlim=(0, 1), xticks=[0.05, 0.95], xlabel="place of the step in the reasoning")
    ax.set_xticklabels(["first", "last"])
    ax.tick_params(axis="x", length=0)
    ax.set_ylim(bottom=0)
    ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def information_picture(table: pd.DataFrame) -> Picture:
    """Surprisal with and without the question (left), step mutual information (right)."""
    figure = None
    if len(table):
        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        by_place(left, table, "surprisal", "surprisal_without")
        left.set(ylabel="nats per token")
        by_place(right, table, "mi")
        right.set(ylabel="nats about the answer")
        legend_above(figure, left)
    return Picture(
        "information",
        "What question, steps and answer tell of each other",
        "Left: how surprising the reasoning's tokens are to the model that wrote them, with the "
        "question (lines) and with its text cut out of the prompt (dashed); what lies between is "
        "what the question tells of the step. Right: step mutual information, what it tells of "
        "the answer which text stands in the step's place: its own, none, a corrupted one, "
        "another step's. Means over items, with 95 % bootstrap intervals.",
        table,
        figure,
        "No item was measured.",
    )
