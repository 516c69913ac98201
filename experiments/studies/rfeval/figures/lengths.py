"""How much models write without and with r′ (RFEval, Table 14)."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from faithscope.experiments.analysis.charts import BLUE, GREY, ORANGE, legend_above
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import distinct, rows, where
from faithscope.experiments.studies.rfeval.figures.plots import crossed

CONDITIONS = {"baseline": (BLUE, "o", "own output"), "intervened": (ORANGE, "s", "under r′")}


def lengths_picture(lengths: pd.DataFrame) -> Picture:
    """Table 14: tokens without and with r′."""
    figure = None
    if len(lengths):
        of = {
            c: {(r["model"], r["task"]): r for r in rows(where(lengths, condition=c))}
            for c in CONDITIONS
        }
        cells = pd.DataFrame(distinct(lengths, "model", "task"))

        def draw(ax: Axes, lines: list[dict | None]) -> None:
            both = [
                {c: of[c].get((x["model"], x["task"])) for c in CONDITIONS} if x else {}
                for x in lines
            ]
            token_lines(ax, both)
            token_axis(ax, lengths)

        figure = crossed(cells, draw, each=0.24, label="tokens of an output (logarithmic)")
        legend_above(figure, figure.axes[0])
    return Picture(
        "rf_lengths",
        "Does r′ make outputs shorter or longer?",
        "Mean number of tokens generated (reasoning, explanation and answer; r′ itself not "
        "counted), outputs cut off as well; a stroke at the median. The table has no interval of "
        "these.",
        lengths,
        figure,
        "No lengths of outputs are known.",
    )


def token_lines(ax: Axes, lines: list[dict[str, dict | None]]) -> Axes:
    """Means of both conditions joined, medians as strokes, a line each."""
    for y, line in enumerate(lines):
        known = {c: r for c, r in line.items() if r and r["mean_tokens"] > 0}
        if not known:
            at_the_left = ax.get_yaxis_transform()
            ax.text(0.02, y, "none", transform=at_the_left, va="center", size=8, color=GREY)
            continue
        means = [r["mean_tokens"] for r in known.values()]
        ax.plot([min(means), max(means)], [y, y], color=GREY, lw=1, zorder=1)
        for condition, row in known.items():
            colour, marker, _ = CONDITIONS[condition]
            ax.plot(row["mean_tokens"], y, marker, color=colour, ms=4.5)
            ax.plot(row["median_tokens"] or math.nan, y, "|", color=colour, ms=8, mew=1.3)
    for colour, marker, label in CONDITIONS.values():
        ax.plot([], [], ls="", marker=marker, color=colour, label=label)
    return ax


def token_axis(ax: Axes, lengths: pd.DataFrame) -> Axes:
    """A logarithmic axis over all means and medians, with as many ticks as have room."""
    values = lengths[["mean_tokens", "median_tokens"]].to_numpy(dtype=float)
    values = values[values > 0]
    low, high = (values.min(), values.max()) if len(values) else (1.0, 10.0)
    # of outputs that are all alike the axis still shows more than one tick
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
    return ax


def thousands(value: float) -> str:
    """`500`, `2k`, `20k`."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
