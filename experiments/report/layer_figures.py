"""The layer-wise probes over depth: when the answer is settled, where reasoning is alike to it."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.report.picture import Picture, legend_above
from faithscope.experiments.report.plots import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    share_ticks,
    short,
)
from faithscope.experiments.tables.textual import visible
from faithscope.experiments.tables.tidy import distinct, rows, where
from faithscope.experiments.tables.verdict import model_order

_LINES = [(c, m) for m in ("o", "s", "^", "D", "v") for c in (BLUE, ORANGE, GREEN, PURPLE)]
_WIDE = (9, 4)


def by_depth(ax: Axes, table: pd.DataFrame, measure: str) -> Axes:
    """A line per model and task over depth, with its 95 % interval as a band."""
    pairs = sorted(distinct(table, "model", "task"), key=lambda p: model_order(p["model"]))
    for i, pair in enumerate(pairs):
        colour, marker = _LINES[i % len(_LINES)]
        line = rows(where(table, **pair))
        x = [r["depth"] for r in line]
        label = f"{short(pair['model'])} · {visible(pair['task'])}"
        ax.plot(x, [r[measure] for r in line], f"{marker}-", color=colour, lw=1, ms=4, label=label)
        low, high = ([r[f"{measure}_{end}"] for r in line] for end in ("low", "high"))
        ax.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1.02), xlabel="depth (layer over layers)")
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def newly_stable(by_layer: pd.DataFrame) -> pd.DataFrame:
    """`rigidity_by_layer` with `share`: of items whose stable layer is this very one."""
    table = by_layer.copy()
    before = table.groupby(["model", "task", "lens"], sort=False)["stable"].shift(fill_value=0.0)
    return table.assign(share=table["stable"] - before)


def rigidity_picture(by_layer: pd.DataFrame) -> Picture:
    """Histogram of the stable layer, and the share of items stable from each depth on."""
    data = newly_stable(by_layer)
    figure = None
    if len(data):
        figure = Figure(figsize=_WIDE, layout="constrained")
        left, right = figure.subplots(1, 2)
        pairs = sorted(distinct(data, "model", "task"), key=lambda p: model_order(p["model"]))
        for i, pair in enumerate(pairs):
            line = rows(where(data, **pair))
            width = 0.8 / len(line) / len(pairs)
            at = [r["depth"] + (i - (len(pairs) - 1) / 2) * width for r in line]
            left.bar(at, [r["share"] for r in line], width, color=_LINES[i % len(_LINES)][0])
        share_ticks(left.xaxis)
        share_ticks(left.yaxis)
        left.set(xlim=(0, 1.15), ylim=(0, 1.04))
        left.set(xlabel="depth (layer over layers)", ylabel="items whose stable layer it is")
        by_depth(right, data, "stable")
        share_ticks(right.yaxis)
        right.set(ylim=(0, 1.04), ylabel="items stable by this layer")
        legend_above(figure, right)
    return Picture(
        "rigidity",
        "When the answer is settled",
        "From which layer on the lens gives the token that the model itself puts first after the "
        "answer cue: how many items settle at a layer (left), and how many have settled by it, "
        "with 95 % Wilson intervals (right). Early is what the SLRC paper calls rigid; but the "
        "first token may be one that follows any reasoning: the table says how often it begins "
        "an answer.",
        data,
        figure,
        "No item was measured.",
    )


def flow_picture(by_layer: pd.DataFrame) -> Picture:
    """Cosine of reasoning and answer token over depth."""
    figure = None
    if len(by_layer):
        figure = Figure(figsize=(6, 4), layout="constrained")
        ax = by_depth(figure.add_subplot(), by_layer, "cosine")
        ax.set(ylabel="cosine")
        legend_above(figure, ax)
    return Picture(
        "flow",
        "Where the reasoning is like the answer token",
        "Cosine between the mean state of the reasoning and the answer token's at the same "
        "layer, mean over items with 95 % bootstrap intervals. States of one layer share a "
        "direction in most models, so the height alone says little.",
        by_layer,
        figure,
        "No item was measured.",
    )
