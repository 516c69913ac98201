"""The chart forms of all figures, drawn from plain data: dots, curves, points, fields, bars.

A figure prepares its data and calls one form:

    dots = list(dots_of(table, {"exact": Style(BLUE, "o", "right step named")}, "judge"))
    figure = dot_rows({"": dots}, {j: short(j) for j in judges}, label="share of chains")

    figure = panels(judges, draw, list(judges), labels=("share removed", "mean score"))
    # where draw(ax, judge) calls `curve`, `note`, ...
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from faithscope.experiments.analysis.axes import (
    SMALL,
    TALLEST,
    Sheet,
    bare_rows,
    counts_beside,
    fold_titles,
    handle,
    legend_above,
    name_rows,
    narrow,
    rules_between,
    share_axis,
    share_ticks,
    sheet,
)
from faithscope.experiments.analysis.colours import (
    AMOUNT,
    GREY,
    PALE,
    PAPER,
    PLAIN,
    QUIET,
    Style,
    colour_map,
    ink_on,
)
from faithscope.experiments.analysis.tidy import rows, where

T = TypeVar("T")


@dataclass(frozen=True)
class Dot:
    """One estimate in a row of a figure; nothing is drawn where the value is NaN."""

    row: Hashable
    value: float
    style: Style
    low: float = math.nan
    high: float = math.nan
    n: float = math.nan
    """Number of items that it is of, which stands at the right of its row; NaN shows none."""
    before: float = math.nan
    """The value that the dot is compared with; drawn hollow and joined to the dot."""
    beside: bool = False
    """Whether the dot is a reference mark in the middle of the row (such as a chance level)."""
    silent: str = ""
    """Text shown in a row without any value; empty = the text of all rows."""


Row = str | tuple[str, ...] | Callable[[Mapping[str, Any]], Hashable]
"""Assigns table rows to rows of the figure: a column, several columns, or a function."""


COUNTS = ("n", "n_items")
"""Columns with the number of items that a row of a table is of."""


def dots_of(
    table: pd.DataFrame,
    measures: Mapping[str, Style],
    row: Row,
    *,
    before: str = "",
    beside: bool = False,
) -> Iterator[Dot]:
    """A dot per table row and measure, with its interval if the table has `_low` and `_high`.

    Args:
        before: name of the column with the values that dots are compared with.
    """
    for r in rows(table):
        named = row(r) if callable(row) else r[row] if isinstance(row, str) else None
        key = tuple(r[name] for name in row) if isinstance(row, tuple) else named
        for name, style in measures.items():
            low, high = (r.get(f"{name}_{end}", math.nan) for end in ("low", "high"))
            hollow = r[before] if before else math.nan
            n = next((float(r[c]) for c in COUNTS if c in r), math.nan)
            yield Dot(key, r[name], style, low, high, n, hollow, beside)


def dots_by(
    table: pd.DataFrame,
    measure: str,
    by: str,
    styles: Mapping[Any, Style],
    row: Row,
    before: str = "",
) -> list[Dot]:
    """Dots of one measure, one series per value of column `by`, in the order of the styles."""
    return [
        dot
        for value, style in styles.items()
        for dot in dots_of(where(table, **{by: value}), {measure: style}, row, before=before)
    ]


def dot_rows(
    columns: Mapping[str, Sequence[Dot]],
    names: Mapping[Any, str],
    *,
    label: str = "",
    labels: Sequence[str] = (),
    groups: Sequence[int] = (),
    silent: str = "",
    each: float | None = None,
    legend: Sequence[Line2D] = (),
    ncols: int | None = None,
    counts: Sequence[Mapping[Any, float]] = (),
    head: str = "n",
) -> Sheet | None:
    """Rows of dots with their intervals, in one column of panels or in several side by side; of
    more than `ROWS` rows, in several sheets.

    Args:
        columns: title of a column -> its dots.
        names: row -> its name, in order. Without names, or without a known value, nothing is drawn
            and None returned.
        label: label of the x axis, once for the whole figure; `labels`: one per column.
        groups: sizes of groups of rows, separated by stronger rules.
        silent: text in a row whose dots have no value; a row without dots stays empty.
        each: height of a row in inches.
        legend: further entries, after those of the styles.
        counts: numbers at the right of each column of dots, by row; by default those of items.
        head: what the numbers count.
    """
    if not names or not any(d.value == d.value for dots in columns.values() for d in dots):
        return None
    # in a column of a paper there is no room for panels side by side
    down = len(columns) if narrow() else 1
    if len(names) > max(FEWEST_ROWS, ROWS // down):
        look = {"label": label, "labels": labels, "silent": silent, "each": each}
        look |= {"legend": legend, "ncols": ncols, "counts": counts, "head": head}
        parts = list(_parts(list(names), groups, max(FEWEST_ROWS, ROWS // down)))
        drawn = [
            dot_rows(columns, {key: names[key] for key in part}, groups=of, **look)
            for part, of in parts
        ]
        return _bound(drawn)
    shown = {title: [d for d in dots if d.row in names] for title, dots in columns.items()}
    series = max(len(_series(dots)) for dots in columns.values())
    height = (each or 0.17 + 0.08 * max(series, 1)) * len(names)
    figure = sheet(1.0 + (height + 0.45 * (down > 1)) * down)
    axes = figure.subplots(down, len(columns) // down, squeeze=False, sharey=True).ravel()
    for ax, (title, dots) in zip(axes, shown.items(), strict=True):
        draw_dots(ax, dots, list(names), silent, across=len(columns) // down)
        rules_between(ax, groups or [len(names)])
        ax.set_title(title)
    beside = [[f"{int(of.get(row, 0)):,}" for row in names] for of in counts]
    beside = beside or [list(_counts(dots, names)) for dots in shown.values()]
    same = down == 1 and all(of == beside[0] for of in beside)
    for ax, of in [*zip(axes, beside, strict=False)][-1 if same else 0 :]:
        if any(of):
            counts_beside(ax, of, head)
    for ax, text in zip(axes, labels, strict=False):
        ax.set_xlabel(text)
    for ax in axes[:: len(columns) // down]:
        name_rows(ax, list(names.values()))
    if down == 1:
        bare_rows(list(axes[1:]))
    if label:
        figure.supxlabel(label)
    styles = dict.fromkeys(d.style for dots in shown.values() for d in dots if d.value == d.value)
    legend_above(figure, [*map(handle, styles), *legend], ncols=ncols)
    fold_titles(figure, len(columns) // down)
    return figure


ROWS, FEWEST_ROWS = 20, 6
"""Most rows of one sheet, and of one where several panels stand one below the other."""


def _parts(
    order: Sequence[Hashable], groups: Sequence[int], most: int
) -> Iterator[tuple[list[Hashable], list[int]]]:
    """Rows of each sheet, with the sizes of their groups: as even as `most` allows."""
    group_of = [i for i, size in enumerate(groups or [len(order)]) for _ in range(size)]
    n = math.ceil(len(order) / most)
    for i in range(n):
        at = slice(len(order) * i // n, len(order) * (i + 1) // n)
        yield list(order[at]), list(Counter(group_of[at]).values())


def _bound(drawn: Iterable[Sheet | None]) -> Sheet | None:
    """Sheets as one figure; those on which nothing is drawn are left out."""
    sheets = [of for of in drawn if of is not None]
    for of in sheets[:1]:
        of.further = sheets[1:]
    return sheets[0] if sheets else None


def _counts(dots: Sequence[Dot], order: Iterable[Hashable]) -> Iterator[str]:
    """The number of items of each row, or the least and the greatest; "" where none is known."""
    for key in order:
        known = [d.n for d in dots if d.row == key and d.value == d.value and d.n == d.n]
        ends = [f"{int(n):,}" for n in dict.fromkeys((min(known), max(known)))] if known else []
        yield "–".join(ends)


def draw_dots(
    ax: Axes,
    dots: Sequence[Dot],
    order: Sequence[Hashable],
    silent: str = "",
    across: int = 1,
) -> Axes:
    """Draws dots in their rows, those of one row slightly apart, on an axis of shares."""
    least = 0.0
    for y, key in enumerate(order):
        in_row = [d for d in dots if d.row == key]
        known = [d for d in in_row if not math.isnan(d.value)]
        if in_row and not known:
            text = next((d.silent for d in in_row if d.silent), silent)
            ax.text(0.01, y, text, va="center", fontsize=SMALL, color=QUIET)
        series = _series(in_row)
        # two dots of a row are closer to each other than to the next row
        height = {0: 0.0, 1: 0.0, 2: 0.36}.get(len(series), 0.56)
        for dot in known:
            apart = 0.0 if dot.beside else series.index(dot.style) / max(1, len(series) - 1) - 0.5
            _draw_dot(ax, dot, y + height * apart)
            least = min([least, dot.value, *(v for v in (dot.low, dot.before) if v == v)])
    share_axis(ax, least, across)
    ax.set_ylim(len(order) - 0.5, -0.5)
    return ax


def _series(dots: Iterable[Dot]) -> list[Style]:
    return list(dict.fromkeys(d.style for d in dots if not d.beside))


def _draw_dot(ax: Axes, dot: Dot, y: float) -> None:
    colour, marker, _ = dot.style
    size: dict[str, Any] = {"color": colour, "ms": 4, "clip_on": False, "zorder": 5}
    if dot.low == dot.low and dot.high == dot.high:
        ends = [min(dot.low, dot.value), max(dot.high, dot.value)]
        look: dict[str, Any] = {"alpha": 0.3, "lw": 3} if dot.before == dot.before else {"lw": 1}
        ax.plot(ends, [y, y], color=colour, **look)
    if dot.before == dot.before:
        ax.plot([dot.before, dot.value], [y, y], color=colour, lw=1.2, zorder=3)
        hollow: dict[str, Any] = size | {"zorder": 4}
        ax.plot(dot.before, y, marker, mfc=PAPER, **hollow)
    ax.plot(dot.value, y, marker, **size)


HEAD = 0.8
"""Inches of legend and labels around panels."""


def panels(
    keys: Sequence[T],
    draw: Callable[[Axes, T], object],
    titles: Sequence[str],
    *,
    height: float = 1.9,
    across: int = 3,
    widths: Mapping[int, float] | None = None,
    shared: bool = True,
    labels: tuple[str, str] = ("", ""),
    legend: bool = True,
    **subplots: Any,
) -> Sheet | None:
    """A figure with a titled panel for each key; None without keys, or if nothing is drawn.

    Args:
        across: largest number of panels in a row; two at most in a column of a paper.
        widths: largest width of the whole figure in inches, by the number of panels in a row.
        shared: whether all panels share their x and y axes, labelled only at the edges.
        labels: labels of the x and the y axis, once for the whole figure.
        legend: whether a legend above the figure lists the labels of all panels, each once.
    """
    if not keys:
        return None
    across = min(across, len(keys), 2 if narrow() else across)
    most = max(1, int((TALLEST - HEAD) / height)) * across
    if len(keys) > most:
        look = {"height": height, "across": across, "widths": widths, "shared": shared}
        look |= {"labels": labels, "legend": legend, **subplots}
        starts = range(0, len(keys), most)
        return _bound(
            panels(keys[i : i + most], draw, titles[i : i + most], **look) for i in starts
        )
    down = math.ceil(len(keys) / across)
    figure = sheet(HEAD + height * down, (widths or {1: 3.6, 2: 5.4}).get(across, math.inf))
    axes = figure.subplots(down, across, squeeze=False, sharex=shared, sharey=shared, **subplots)
    for ax in axes.flat[len(keys) :]:
        ax.remove()
    for i, (ax, key, title) in enumerate(zip(axes.flat, keys, titles, strict=False)):
        draw(ax, key)
        ax.set_title(title)
        if shared:
            # the last panel of each column carries the labels, even if the last row is not full
            ax.tick_params(labelbottom=i + across >= len(keys))
    if not any(ax.has_data() for ax in figure.axes):
        return None
    for place, text in zip((figure.supxlabel, figure.supylabel), labels, strict=True):
        if text:
            place(text)
    if legend:
        named = [h for ax in figure.axes for h in ax.get_legend_handles_labels()[0]]
        legend_above(figure, list({str(h.get_label()): h for h in reversed(named)}.values())[::-1])
    fold_titles(figure, across)
    return figure


def curve(
    ax: Axes,
    line: pd.DataFrame,
    x: str,
    y: str,
    style: Style = PLAIN,
    *,
    interval: Literal["band", "bars", ""] = "band",
    **look: Any,
) -> Axes:
    """Draws a table as a line, with its `_low` and `_high` columns as a band or as bars."""
    at, values = line[x].to_numpy(dtype=float), line[y].to_numpy(dtype=float)
    if interval:
        low, high = (line[f"{y}_{end}"].to_numpy(dtype=float) for end in ("low", "high"))
        if interval == "band":
            ax.fill_between(at, low, high, color=style.colour, alpha=0.15, lw=0)
        else:
            reach = np.clip([values - low, high - values], 0, None)
            ax.errorbar(at, values, yerr=reach, fmt="none", ecolor=style.colour, elinewidth=0.8)
    usual: dict[str, Any] = {"color": style.colour, "marker": style.marker, "ms": 3.5, "lw": 1.3}
    ax.plot(at, values, **usual | look, label=style.label or None)
    return ax


def along_parts(
    ax: Axes, lines: Iterable[tuple[Style, pd.DataFrame]], y: str, parts: Mapping[str, str]
) -> Axes:
    """Draws lines through the parts of a text that stand side by side, each stretched to one width.

    Args:
        lines: style and rows of each line: its `part`, its `position` in the part (0 to 1), `y`.
        parts: part -> its name in words, in order; parts without rows are left out.
    """
    drawn = [(style, table) for style, table in lines if len(table)]
    shown = [part for part in parts if any((table["part"] == part).any() for _, table in drawn)]
    for style, table in drawn:
        for i, part in enumerate(shown):
            of_part = table.loc[table["part"] == part].sort_values("position")
            label = style.label if part == table["part"].iloc[0] else ""
            at = of_part.assign(at=i + of_part["position"])
            curve(ax, at, "at", y, style._replace(label=label), markevery=5)
    for i in range(1, len(shown)):
        ax.axvline(i, color=GREY, lw=0.8, ls=":")
    ax.set_xticks([i + 0.5 for i in range(len(shown))], [parts[part] for part in shown])
    ax.tick_params(axis="x", length=0)
    ax.set(xlim=(0, len(shown)))
    return ax


def behind(ax: Axes, others: Iterable[pd.DataFrame], x: str, y: str, label: str = "") -> None:
    """Draws the lines of other series in a pale colour, for comparison."""
    for i, line in enumerate(others):
        ax.plot(line[x], line[y], color=PALE, lw=0.9, zorder=0, label=label if i == 0 else None)


def points(ax: Axes, table: pd.DataFrame, x: str, y: str, style: Style) -> Axes:
    """Draws a point per row, with known intervals of either column as thin bars."""
    reach = [
        np.nan_to_num(
            [table[c] - table[f"{c}_low"], table[f"{c}_high"] - table[c]]  # below and above
        ).clip(0)
        for c in (x, y)
    ]
    thin: dict[str, Any] = {"ecolor": style.colour, "elinewidth": 0.6, "alpha": 0.4}
    ax.errorbar(table[x], table[y], xerr=reach[0], yerr=reach[1], fmt="none", **thin)
    look: dict[str, Any] = {"marker": style.marker, "color": style.colour, "alpha": 0.85}
    ax.plot(table[x], table[y], ls="", **look, label=style.label or None)
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def names_beside(ax: Axes, x: Sequence[float], y: Sequence[float], names: Sequence[str]) -> None:
    """Writes names in a column right of the axes, each joined to its point by a line."""
    order = np.argsort(np.asarray(y, dtype=float), kind="stable")
    low, high = ax.get_ylim()
    places = np.arange(len(order))
    gap = min(0.06, 0.97 / max(1, len(order) - 1))
    at = (np.asarray(y, dtype=float)[order] - low) / (high - low)
    at = np.maximum.accumulate(at - gap * places) + gap * places
    at = np.minimum(at, 0.97 - gap * places[::-1])
    line: dict[str, Any] = {"arrowstyle": "-", "lw": 0.4, "color": GREY, "relpos": (0, 0.5)}
    for i, height in zip(order.tolist(), at.tolist(), strict=True):
        name = names[int(i)]
        beside: dict[str, Any] = {"textcoords": "axes fraction", "va": "center", "fontsize": SMALL}
        ax.annotate(name, (x[i], y[i]), (1.04, height), arrowprops=line, **beside)


def field(
    ax: Axes,
    cells: np.ndarray,
    down: Sequence[str],
    across: Sequence[str],
    *,
    limits: tuple[float, float] = (0, 1),
    stops: Sequence[str] = AMOUNT,
    missing: str = "none",
    text: Callable[[float], str] | None = None,
    fontsize: float = SMALL,
    rotation: float = 45,
    **look: Any,
) -> Axes:
    """Draws a grid of coloured squares, the first row on top.

    Args:
        cells: (down, across) values; NaN where there is none.
        limits: values at the two ends of the colour scale.
        stops: colours from the lower limit to the upper one.
        missing: colour of squares without a value.
        text: gives the text in a square from its value.
    """
    # a mesh, not an image: it stays a drawing in SVG, which the report's policy admits
    usual: dict[str, Any] = {"edgecolors": PAPER, "lw": 1, "clip_on": False}
    vmin, vmax = limits
    values = np.ma.masked_invalid(cells)
    look = usual | look | {"cmap": colour_map(stops, missing)}
    mesh = ax.pcolormesh(values, vmin=vmin, vmax=vmax, **look)
    centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": fontsize}
    for i, j in np.argwhere(~np.isnan(cells)).tolist():
        if text is not None:
            red, green, blue, _ = map(float, mesh.to_rgba(cells[i, j]))
            ink = ink_on((red, green, blue))
            ax.text(j + 0.5, i + 0.5, text(cells[i, j]), color=ink, **centred)
    turned: dict[str, Any] = {"rotation": rotation, "ha": "center" if rotation == 90 else "right"}
    size = min(fontsize, SMALL)
    ax.set_xticks(np.arange(len(across)) + 0.5, across, fontsize=size, **turned)
    ax.set_yticks(np.arange(len(down)) + 0.5, down, fontsize=size)
    ax.set_ylim(len(down), 0)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def scale_of_ranks(figure: Sheet | None) -> None:
    """Draws the scale of colours below each sheet of maps of rank correlations."""
    for of in (figure, *figure.further) if figure else ():
        look = {"location": "bottom", "shrink": 0.5, "aspect": 40, "pad": 0.02}
        bar = of.colorbar(
            of.axes[0].collections[0], ax=of.axes, ticks=[-1, -0.5, 0, 0.5, 1], **look
        )
        bar.ax.tick_params(labelsize=SMALL)
        bar.set_label("Spearman’s rank correlation", fontsize=SMALL)
        bar.outline.set_visible(False)  # pyright: ignore


_LEAST_PART = 0.055


def share_bars(
    ax: Axes,
    bars: Sequence[Mapping[str, float]],
    parts: Mapping[str, tuple[str, str]],
    text: Callable[[float, int], str],
    *,
    least: float = _LEAST_PART,
    empty: str = "",
) -> Axes:
    """Draws horizontal bars split into shares; wide parts carry a text.

    Args:
        bars: part -> its share of the bar; NaN in a bar without data.
        parts: part -> colour and label, for `part_handles`.
        text: gives the text in a part from its share and the index of its bar.
        empty: text in place of a bar without data.
    """
    for y, bar in enumerate(bars):
        left = 0.0
        for part, (colour, _) in parts.items():
            share = bar[part]
            if math.isnan(share):
                continue
            ax.barh(y, share, left=left, color=colour, height=0.78)
            if share >= least:
                at = {"ha": "center", "va": "center", "fontsize": SMALL, "color": ink_on(colour)}
                ax.text(left + share / 2, y, text(share, y), **at)
            left += share
        if not left:
            ax.text(0.01, y, empty, va="center", fontsize=SMALL, color=QUIET)
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1), ylim=(len(bars) - 0.5, -0.5))
    return ax
