"""Figures of measures: a panel per model and task, or one panel with a curve of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import GREY, LINES, Style, curve, panels, share_ticks
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.short_names import middle_cut, pairs_of, short
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import where

LAYERS = Section(
    "layers",
    "By layer",
    "Inside the model, at the token whose logits give the answer's first token (§2.7). Depth is "
    "the layer over the number of layers; the embeddings are layer 0 and count for neither.",
)
PLACE = "place of the step in the reasoning"
Draw = Callable[[pd.DataFrame], Figure | None]


def picture(
    name: str, title: str, caption: str, draw: Draw, absent: str = "No item was measured."
) -> Callable[[pd.DataFrame], Picture]:
    """A figure of a table; nothing is drawn of an empty one."""
    return lambda table: Picture(
        name, title, caption, table, draw(table) if len(table) else None, absent
    )


def per_pair(
    x: str,
    styles: Mapping[str, Style],
    labels: tuple[str, str],
    finish: Callable[[Axes], object],
    apart: float = 0.0,
) -> Draw:
    """A panel per model and task, and in it a curve per measure, with its band.

    Args:
        x: the column across.
        styles: by column.
        labels: of the axes, once for the figure.
        apart: by how much curves are moved aside, where those that say the same would hide others.
    """

    def draw(table: pd.DataFrame) -> Figure | None:
        def panel(ax: Axes, pair: tuple[str, str]) -> None:
            of_pair = where(table, model=pair[0], task=pair[1])
            for i, (name, style) in enumerate(styles.items()):
                aside = apart * (i - (len(styles) - 1) / 2)
                line = of_pair.dropna(subset=[name]).assign(**{x: lambda t, d=aside: t[x] + d})
                interval = "band" if f"{name}_low" in line else ""
                # without markers, dashes tell apart curves that say the same
                dashes = "-" if style.marker else ("-", "--", "-.", ":")[i % 4]
                curve(ax, line, x, name, style, interval=interval, ms=3, lw=1.3, ls=dashes)
            finish(ax)

        pairs = pairs_of(table)
        return panels(pairs, panel, names_of(pairs, "\n"), height=2.1, labels=labels)

    return draw


def of_pairs(ax: Axes, table: pd.DataFrame, x: str, y: str) -> Axes:
    """A curve per model and task over one axis, each with its band."""
    pairs = pairs_of(table)
    for i, (pair, name) in enumerate(zip(pairs, names_of(pairs), strict=True)):
        style = Style(*LINES[i % len(LINES)], name)
        curve(ax, where(table, model=pair[0], task=pair[1]), x, y, style, lw=1)
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def over_depth(ax: Axes) -> Axes:
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1.02), xlabel="depth (layer over layers)")
    return ax


def names_of(pairs: list[tuple[str, str]], between: str = " · ") -> list[str]:
    return [f"{middle_cut(short(model), 30)}{between}{visible(task)}" for model, task in pairs]
