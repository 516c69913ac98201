"""Figures of measures: a panel, or a curve, per model and task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import along_reasoning, share_rise, share_ticks
from faithscope.experiments.analysis.charts import curve, panels
from faithscope.experiments.analysis.colours import GREY, LINES, Style
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.removal_units import told_apart
from faithscope.experiments.analysis.tidy import distinct, where
from faithscope.experiments.analysis.wording import pair_names, pairs_of

PLACE = "place of the step in the reasoning"
Draw = Callable[[pd.DataFrame], Figure | None]


def picture(
    name: str, title: str, caption: str, draw: Draw, absent: str = "No item was measured."
) -> Callable[[pd.DataFrame], Picture]:
    """Makes a function that draws a figure of a table, or says why there is none. Steps of several
    units are told apart (`removal_units.told_apart`)."""

    def drawn(table: pd.DataFrame) -> Figure | None:
        return draw(told_apart({name: table})[name]) if len(table) else None

    return lambda table: Picture(name, title, caption, table, drawn(table), absent)


def per_pair(
    x: str,
    styles: Mapping[str, Style],
    labels: tuple[str, str],
    finish: Callable[[Axes], object],
    apart: float = 0.0,
    pooled: bool = False,
    by: tuple[str, ...] = (),
) -> Draw:
    """Makes a function that draws a panel per model and task, with one curve per measure and its
    band.

    Args:
        x: column on the x axis.
        styles: column to draw -> style of its curve.
        labels: labels of the x and y axis, drawn once for the figure.
        apart: horizontal distance between curves, so that equal ones do not hide each other.
        pooled: whether to draw the mean of all rows at one place, without a band.
        by: further columns with a panel for each of their values.
    """

    def draw(table: pd.DataFrame) -> Figure | None:
        def panel(ax: Axes, of_pair: pd.DataFrame) -> None:
            for i, (name, style) in enumerate(styles.items()):
                aside = apart * (i - (len(styles) - 1) / 2)
                line = of_pair.dropna(subset=[name]).assign(**{x: lambda t, d=aside: t[x] + d})
                interval = "band" if f"{name}_low" in line else ""
                # Curves without markers are told apart by their dashes.
                dashes = "-" if style.marker else ("-", "--", "-.", ":")[i % 4]
                curve(ax, line, x, name, style, interval=interval, ms=3, lw=1.3, ls=dashes)
            finish(ax)

        if pooled:
            of_places = table.groupby(["model", "task", x], as_index=False, sort=False)
            table = pd.DataFrame(of_places[list(styles)].mean())
        return pair_panels(table, panel, by, height=2.1, labels=labels)

    return draw


def pair_panels(
    table: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], object],
    by: tuple[str, ...] = (),
    **look: Any,
) -> Figure | None:
    """A figure with one panel per model and task, drawn from the rows of that pair.

    Args:
        by: further columns with a panel for each of their values.
        look: options of `charts.panels`.
    """
    pairs = pairs_of(table)
    keys = sorted(
        distinct(table, "model", "task", *by), key=lambda k: pairs.index((k["model"], k["task"]))
    )
    names = pair_names([(k["model"], k["task"]) for k in keys], "\n")
    titles = [", ".join((n, *(k[b] for b in by))) for n, k in zip(names, keys, strict=True)]
    return panels(keys, lambda ax, key: draw(ax, where(table, **key)), titles, **look)


def of_pairs(ax: Axes, table: pd.DataFrame, x: str, y: str) -> Axes:
    """One curve per model and task on the same axes, each with its band."""
    pairs = pairs_of(table)
    for i, (pair, name) in enumerate(zip(pairs, pair_names(pairs), strict=True)):
        style = Style(*LINES[i % len(LINES)], name)
        curve(ax, where(table, model=pair[0], task=pair[1]), x, y, style, lw=1)
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def shares_along(ax: Axes) -> Axes:
    """Sets axes to shares from 0 to 1 over the relative place of a step."""
    return along_reasoning(share_rise(ax))


def over_depth(ax: Axes) -> Axes:
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1.02), xlabel="depth (layer over layers)")
    return ax
