"""Models against each other on what the SLRC paper's Figure 3 sets against each other."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.report.picture import Picture
from experiments.report.plots import GREY, READING_STYLES, share_ticks, short
from experiments.tables.integrity import CORRELATED
from experiments.tables.tidy import rows, where, with_interval
from experiments.tables.verdict import VARIANT_ORDER

NAMES = {
    "slrc": "SLRC",
    "sycophancy": "sycophancy",
    "error_detection": "error detection",
    "ris": "RIS",
}
_LABELLED = 16
"""Models that can be named beside their points; more would cover each other."""


def scores(ax: Axes, integrity: pd.DataFrame, x: str, y: str) -> Axes:
    """Every model as a point with its 95 % intervals, a colour and marker per reading."""
    for reading, (colour, marker) in READING_STYLES.items():
        points = [
            r
            for r in rows(where(integrity, reading=reading))
            if not math.isnan(r[x]) and not math.isnan(r[y])
        ]
        if points:
            ax.errorbar(
                [p[x] for p in points],
                [p[y] for p in points],
                xerr=_reach(points, x),
                yerr=_reach(points, y),
                fmt=marker,
                color=colour,
                elinewidth=0.6,
                label=f"{reading} answer",
            )
        for p in points if len(points) <= _LABELLED else []:
            ax.annotate(short(p["model"]), (p[x], p[y]), (4, 4), textcoords="offset points", size=7)
    share_ticks(ax.xaxis)
    share_ticks(ax.yaxis)
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), xlabel=NAMES[x], ylabel=NAMES[y])
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def _reach(points: list[dict], name: str) -> list[list[float]]:
    return [
        [max(0.0, p[name] - p[f"{name}_low"]) for p in points],
        [max(0.0, p[f"{name}_high"] - p[name]) for p in points],
    ]


def integrity_picture(integrity: pd.DataFrame) -> Picture:
    """SLRC against sycophancy, and SLRC and RIS against error detection, over models."""
    columns = ["model", "framing", "reading", *with_interval(*NAMES)]
    data = _foremost(integrity).filter(items=columns)
    shown = [(x, y) for x, y in CORRELATED if len(data.dropna(subset=[x, y]))]
    figure = None
    if shown:
        figure = Figure(figsize=(0.4 + 3.4 * len(shown), 3.6), layout="constrained")
        axes = figure.subplots(1, len(shown), squeeze=False)[0]
        for ax, (x, y) in zip(axes, shown, strict=True):
            scores(ax, data, x, y)
        axes[0].legend(fontsize=8)
    return Picture(
        "integrity",
        "Integrity over models",
        "Does a model that uses its steps give in to a wrong answer, and does it find an error? "
        "Means over tasks with bootstrap intervals over items; RIS = SLRC × (1 − sycophancy). "
        "Correlations, with their p-values and the number of models, are in the table: with few "
        "models they say little.",
        data,
        figure,
        "No model has both of any two of these numbers.",
    )


def _foremost(integrity: pd.DataFrame) -> pd.DataFrame:
    """The rows of the framing that leads, in every reading."""
    framings = dict.fromkeys(framing for framing, _ in VARIANT_ORDER)
    present = [f for f in framings if f in set(integrity["framing"])]
    return where(integrity, framing=present[0]) if present else integrity
