"""Figures of the length of outputs, and of how far r′ is from its problem's words (RFEval, Tables
10 and 14)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from faithscope.experiments.analysis.charts import dot_rows, dots_by
from faithscope.experiments.analysis.colours import BLUE, GREY, ORANGE, QUIET, Style
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval.figures.lines import Cell, crossed, task_names

CONDITIONS = {
    "baseline": Style(BLUE, "o", "own output"),
    "intervened": Style(ORANGE, "s", "under r′"),
}
CONTEXTS = {
    "none": Style(BLUE, "o", "question and options"),
    "tfidf": Style(ORANGE, "s", "with the context’s most telling words"),
}
Z = 1.959964
"""z-value of a 95 % normal interval."""


def lengths_picture(lengths: pd.DataFrame) -> Picture:
    """Figure of Table 14: tokens without and with r′."""
    known = {
        (r["model"], r["task"], r["condition"]): r for r in rows(lengths) if r["mean_tokens"] > 0
    }

    def draw(ax: Axes, cells: list[Cell]) -> None:
        for y, cell in enumerate(cells):
            _tokens(ax, y, {c: known[(*cell, c)] for c in CONDITIONS if (*cell, c) in known})
        for colour, marker, label in CONDITIONS.values():
            ax.plot([], [], ls="", marker=marker, color=colour, label=label)
        token_axis(ax, lengths)

    label = "tokens of an output (logarithmic)"
    return Picture(
        "rf_lengths",
        "Does r′ make outputs shorter or longer?",
        "Mean number of tokens generated (reasoning, explanation and answer; r′ itself not "
        "counted), outputs cut off as well; a stroke at the median. The table has no interval of "
        "these.",
        lengths,
        crossed(lengths, draw, each=0.24, label=label) if len(lengths) else None,
        "No lengths of outputs are known.",
    )


def _tokens(ax: Axes, y: int, of: Mapping[str, Mapping[str, Any]]) -> None:
    """Draws the means of both conditions, joined, and the medians as strokes."""
    if not of:
        place: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center"}
        ax.text(0.02, y, "none", size=8, color=QUIET, **place)
        return
    means = [r["mean_tokens"] for r in of.values()]
    ax.plot([min(means), max(means)], [y, y], color=GREY, lw=1, zorder=1)
    for condition, row in of.items():
        colour, marker, _ = CONDITIONS[condition]
        ax.plot(row["mean_tokens"], y, marker, color=colour, ms=4.5)
        ax.plot(row["median_tokens"] or math.nan, y, "|", color=colour, ms=8, mew=1.3)


def token_axis(ax: Axes, lengths: pd.DataFrame) -> None:
    """Gives an axis a logarithmic scale over all means and medians, with as many ticks as have
    room."""
    values = lengths[["mean_tokens", "median_tokens"]].to_numpy(dtype=float)
    values = values[values > 0]
    low, high = (values.min(), values.max()) if len(values) else (1.0, 10.0)
    # if all outputs are alike, the axis still shows more than one tick
    low, high = min(low, (low * high / 6) ** 0.5) / 1.15, max(high, (6 * low * high) ** 0.5) * 1.15
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    subs = (1, 2, 5) if high / low < 15 else (1, 3) if high / low < 200 else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_minor_locator(NullLocator())
    ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)


def thousands(value: float) -> str:
    """A number in short form: `500`, `2k`, `20k`."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def externality_picture(externality: pd.DataFrame) -> Picture:
    """Figure of Table 10: how much of r′ is not in the problem's words."""
    mean, std, n = (externality[name].astype(float) for name in ("mean", "std", "n"))
    half = Z * std / n**0.5
    data = externality.assign(mean_low=mean - half, mean_high=mean + half)
    columns = {"": dots_by(data, "mean", "context", CONTEXTS, "task")}
    label = "externality Δ, 1 where no word is shared"
    figure = dot_rows(columns, {**task_names(data["task"])}, label=label, each=0.32)
    for ax in figure.panels if figure else ():
        ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    return Picture(
        "rf_externality",
        "How far is r′ from the words of its problem?",
        "Externality penalty Δ = 1 − Jaccard index of the content words of the problem and those "
        "of r′ (the paper’s formula is lost): the mean over items with its 95 % interval "
        "(normal). It is a matter of the items alone, whatever model answers.",
        data,
        figure,
        "The items’ texts were not at hand.",
    )
