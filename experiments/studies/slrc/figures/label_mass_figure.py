"""How much of a model's probability the labels of the scored reading have."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREY, ORANGE, legend_above
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import share_ticks, short
from faithscope.experiments.analysis.tidy import distinct, where


def mass_strips(ax: Axes, table: pd.DataFrame) -> Axes:
    """A strip of points per model and task, a point per item; the median as a line."""
    lines = distinct(table, "model", "task")
    points = {False: ([], []), True: ([], [])}
    for y, line in enumerate(lines):
        own = where(table, **line)
        for left_out, (masses, heights) in points.items():
            values = where(own, left_out=left_out)["label_mass"].tolist()
            masses += values
            # points of one strip side by side, in an order that no history changes
            heights += (
                [y] if len(values) == 1 else (y + np.linspace(-0.28, 0.28, len(values))).tolist()
            )
        median = float(np.median(own["label_mass"].to_numpy(float)))
        ax.plot([median, median], [y - 0.38, y + 0.38], color=GREY, lw=1.5)
    for left_out, colour, label in ((False, BLUE, "counted"), (True, ORANGE, "left out")):
        if points[left_out][0]:
            look = {"s": 12, "color": colour, "alpha": 0.6, "linewidths": 0}
            ax.scatter(*points[left_out], label=label, **look)
    ax.set_yticks(
        range(len(lines)), [f"{short(x['model'])} · {x['task']}" for x in lines], fontsize=8
    )
    ax.set(xlim=(-0.02, 1.02), ylim=(len(lines) - 0.5, -0.5))
    ax.set_xlabel("label mass after the whole reasoning", fontsize=9)
    share_ticks(ax.xaxis)
    ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def label_mass_picture(table: pd.DataFrame) -> Picture:
    """An item counts once: of the records that score it after its reasoning, the first."""
    reasoned = table.loc[table["probe"] != "direct", :]
    data = reasoned.drop_duplicates(["model", "task", "item"])
    assert isinstance(data, pd.DataFrame)
    figure = None
    if len(data):
        figure = Figure(
            figsize=(9, 1.2 + 0.42 * len(distinct(data, "model", "task"))), layout="constrained"
        )
        ax = mass_strips(figure.subplots(), data)
        legend_above(figure, ax)
    return Picture(
        "label_mass",
        "What share of the model's probability do the labels have?",
        "The scored reading weighs the answers of a task against each other. Here is what all of "
        "them have together, in every spelling that is scored; the rest of the probability goes "
        "to other words. A point is an item, the line the median. Where the mass is small, shares "
        "of it say little: items below `report.least_label_mass` are left out.",
        data,
        figure,
        "No item was scored.",
    )
