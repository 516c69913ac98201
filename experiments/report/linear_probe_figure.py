"""Where in the text, and at which layer, a linear classifier reads the answer."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.report.picture import Picture
from faithscope.experiments.report.plots import (
    INK_ON_DARK,
    INK_ON_PALE,
    name_panel,
    pairs_of,
    short,
)
from faithscope.experiments.tables.textual import visible
from faithscope.experiments.tables.tidy import distinct, rows, where

_TARGETS = {"answer": "its own answer", "gold": "the right answer"}
_LIGHT = 0.55
"""Cells above it are dark, and written on in white."""


def readable_from(ax: Axes, table: pd.DataFrame) -> Axes:
    """Accuracy by position and layer, of one model, task and target; framed where decodable."""
    positions = [d["position"] for d in distinct(table, "position")]
    layers = [d["layer"] for d in distinct(table, "layer")]
    grid = np.full((len(layers), len(positions)), math.nan)
    for row in rows(table):
        y, x = layers.index(row["layer"]), positions.index(row["position"])
        grid[y, x] = row["accuracy"]
        if math.isnan(row["accuracy"]):
            continue
        ink = INK_ON_DARK if row["accuracy"] > _LIGHT else INK_ON_PALE
        weight = "bold" if row["decodable"] else "normal"
        text = f"{100 * row['accuracy']:.0f}" + ("*" if row["decodable"] else "")
        ax.text(x, y, text, ha="center", va="center", fontsize=7, color=ink, weight=weight)
    ax.imshow(grid, cmap="Blues", vmin=0, vmax=1, aspect="auto", origin="lower")
    ax.set_xticks(range(len(positions)), [p.removeprefix("during ") for p in positions])
    ax.set_yticks(range(len(layers)), [str(x) for x in layers])
    first = rows(table)[0]
    if first["reason"]:
        said = first["reason"].replace("_", " ")
        ax.text(0.5, 0.5, said, ha="center", va="center", transform=ax.transAxes, fontsize=8)
    return ax


def linear_probe_picture(table: pd.DataFrame) -> Picture:
    """A row of panels per model and task, one panel per target."""
    figure = None
    if len(table):
        pairs = pairs_of(table)
        figure = Figure(figsize=(9, 0.9 + 2.0 * len(pairs)), layout="constrained")
        axes = figure.subplots(len(pairs), len(_TARGETS), squeeze=False)
        for line, (model, task) in zip(axes, pairs, strict=True):
            for ax, (target, said) in zip(line, _TARGETS.items(), strict=True):
                mine = where(table, model=model, task=task, target=target)
                readable_from(ax, mine)
                chance = rows(mine)[0]["majority"]
                told = "" if math.isnan(chance) else f", largest class {100 * chance:.0f}"
                name_panel(ax, (f"{short(model)} · {visible(task)}", f"{said}{told}"), 4.1)
            line[0].set_ylabel("layer")
        figure.supxlabel("place: before, along and after the reasoning", fontsize=9)
    return Picture(
        "linear_probe",
        "Where the answer can be read",
        "Accuracy in percent of a linear classifier on the hidden states at each place and layer, "
        "tested on items it was not fitted on. A star: decodable, that is above the largest class "
        "and above the same classifier on shuffled answers, each with its 95 % interval.",
        table,
        figure,
        "No item was measured.",
    )
