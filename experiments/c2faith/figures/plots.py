"""What C2-Faith's figures are put together from: voices, their names, panels, dots, curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.report.picture import legend_above
from experiments.report.plots import BLUE, GREY, share_ticks, short
from experiments.tables.textual import visible
from experiments.tables.tidy import rows, where

PALE = "#BBBBBB"
"""The other judges, behind the one that a panel is of."""
LONGEST = 34
ACROSS = 3
SILENT = "no verdict"


@dataclass(frozen=True)
class Voice:
    """One judge in one reading, by the first of its prompts in the table."""

    judge: str
    reading: str
    prompt: str
    label: str
    """The judge, short, and different from every other judge in the same figure."""
    aside: str
    """The reading, where the figure has both."""

    @property
    def name(self) -> str:
        return f"{self.label} · {self.aside}" if self.aside else self.label

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        return where(table, judge=self.judge, reading=self.reading, prompt=self.prompt)


def voices(table: pd.DataFrame) -> list[Voice]:
    """Every judge and reading of a table, in its order."""
    found: dict[tuple[str, str], str] = {}
    for row in rows(table):
        found.setdefault((row["judge"], row["reading"]), row["prompt"])
    names = judge_names([judge for judge, _ in found])
    mixed = len({reading for _, reading in found}) > 1
    return [Voice(j, r, prompt, names[j], r if mixed else "") for (j, r), prompt in found.items()]


def judge_names(judges: Sequence[str]) -> dict[str, str]:
    """Judges without what stands before the last slash, unless two would then be one."""
    unique = list(dict.fromkeys(judges))
    last = [short(j) for j in unique]
    whole = [visible(j).replace("\n", " ") for j in unique]
    said = [a if last.count(a) == 1 else b for a, b in zip(last, whole, strict=True)]
    cut = [middle_cut(s) for s in said]
    return dict(zip(unique, cut if len(set(cut)) == len(cut) else said, strict=True))


def middle_cut(name: str, longest: int = LONGEST) -> str:
    """Names of one family differ at either end: what is too long loses its middle."""
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[: longest - 1 - half]}…{name[-half:]}"


def grid(
    found: Sequence[Voice],
    draw: Callable[[Axes, Voice], object],
    *,
    height: float = 1.9,
    shared: bool = True,
    titles: Mapping[str, str] | None = None,
    labels: tuple[str, str] = ("", ""),
    **subplots: Any,
) -> Figure:
    """A panel per voice, of one at least, at most `ACROSS` in a row, its name above it.

    Args:
        shared: one axis across and one down for all, with labels at the edges alone.
        titles: name -> what stands below it, in a second line.
        labels: of the axis across and of the axis down, once for the whole figure.
    """
    across = min(ACROSS, len(found))
    down = math.ceil(len(found) / across)
    width = {1: 4.8, 2: 7.2}.get(across, 9.0)
    figure = Figure(figsize=(width, 0.9 + height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, sharex=shared, sharey=shared, **subplots)
    for ax in axes.flat[len(found) :]:
        ax.remove()
    kept = list(axes.flat[: len(found)])
    for i, (ax, voice) in enumerate(zip(kept, found, strict=True)):
        draw(ax, voice)
        below = [t for t in (voice.aside, (titles or {}).get(voice.name, "")) if t]
        ax.set_title("\n".join([voice.label, " · ".join(below)][: 1 + bool(below)]), fontsize=8)
        if shared:
            # the last panel of each column has the labels, also where the last row is not full
            ax.tick_params(labelbottom=i + across >= len(found))
    for place, label in zip((figure.supxlabel, figure.supylabel), labels, strict=True):
        if label:
            place(label, fontsize=9)
    return figure


def say_silent(ax: Axes, count: int) -> None:
    """Written in a panel of which nothing can be drawn."""
    text = f"{SILENT}\nin {count} judgements" if count else "nothing to draw"
    ax.text(
        *(0.5, 0.5, text),
        transform=ax.transAxes,
        ha="center",
        va="center",
        color=GREY,
        fontsize=8.5,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2},
    )


def curve(
    ax: Axes, line: pd.DataFrame, x: str, y: str, colour: str = BLUE, label: str = ""
) -> None:
    """A line with its interval as a band."""
    at = line[x].to_numpy(dtype=float)
    ax.fill_between(at, line[f"{y}_low"], line[f"{y}_high"], color=colour, alpha=0.15, lw=0)
    ax.plot(at, line[y], color=colour, marker="o", ms=4, lw=1.5, label=label or None)


def behind(ax: Axes, others: Sequence[pd.DataFrame], x: str, y: str, label: str = "") -> None:
    """The lines of the others, pale."""
    for i, line in enumerate(others):
        ax.plot(line[x], line[y], color=PALE, lw=0.9, zorder=0, label=label if i == 0 else None)


def dots(
    ax: Axes,
    lines: Sequence[Mapping[str, Any]],
    measures: Mapping[str, tuple[str, str, str]],
    *,
    low: float = 0.0,
) -> Axes:
    """Estimates with their intervals, a row of the figure per line.

    Args:
        measures: column -> colour, marker, label.
        low: where the axis begins, further left where an interval does.
    """
    least = low
    for i, (name, (colour, marker, label)) in enumerate(measures.items()):
        apart = 0.0 if len(measures) == 1 else 0.56 * (i / (len(measures) - 1) - 0.5)
        at = [(y + apart, r) for y, r in enumerate(lines) if not math.isnan(r[name])]
        if not at:
            continue
        reach = [
            [max(0.0, r[name] - _or(r[f"{name}_low"], r[name])) for _, r in at],
            [max(0.0, _or(r[f"{name}_high"], r[name]) - r[name]) for _, r in at],
        ]
        ax.errorbar(
            [r[name] for _, r in at],
            [y for y, _ in at],
            xerr=reach,
            fmt=marker,
            color=colour,
            ms=4.5,
            elinewidth=1,
            label=label,
        )
        least = min(least, *(r[name] - d for (_, r), d in zip(at, reach[0], strict=True)))
    for y, row in enumerate(lines):
        if all(math.isnan(row[name]) for name in measures):
            ax.text(0.01, y, SILENT, va="center", fontsize=8, color=GREY)
    share_axis(ax, least)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    for y in range(len(lines) - 1):
        ax.axhline(y + 0.5, color=GREY, alpha=0.2, lw=0.5)
    return ax


def moved(
    ax: Axes,
    y: float,
    before: float,
    after: tuple[float, float, float],
    colour: str,
    marker: str,
) -> None:
    """Hollow where it was, filled where it is, joined; `after` with its interval, a pale bar."""
    value, low, high = after
    reach = [[max(0.0, value - _or(low, value))], [max(0.0, _or(high, value) - value)]]
    ax.errorbar(value, y, xerr=reach, fmt="none", ecolor=colour, alpha=0.3, elinewidth=3)
    ax.plot([before, value], [y, y], color=colour, lw=1.2, zorder=3)
    ax.plot(before, y, marker, mec=colour, mfc="white", ms=5, zorder=4, clip_on=False)
    ax.plot(value, y, marker, color=colour, ms=5, zorder=5, clip_on=False)


def rules_between(ax: Axes, groups_of: Sequence[int]) -> None:
    """Lines between rows, stronger between groups of so many rows."""
    ends = np.cumsum(groups_of)
    for i in range(1, sum(groups_of)):
        width, alpha = (0.9, 0.8) if i in ends else (0.5, 0.2)
        ax.axhline(i - 0.5, color=GREY, lw=width, alpha=alpha)


def bare_rows(axes: Sequence[Axes]) -> None:
    """Axes beside the one that names the rows."""
    for ax in axes:
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)


def forest(
    table: pd.DataFrame, measures: Mapping[str, tuple[str, str, str]], label: str
) -> Figure | None:
    """`dots` of every voice of a table as a whole figure, the legend above it."""
    found = voices(table)
    if not found:
        return None
    height = 1.1 + (0.18 + 0.1 * len(measures)) * len(found)
    figure = Figure(figsize=(9, height), layout="constrained")
    ax = dots(figure.add_subplot(), [rows(v.of(table))[0] for v in found], measures)
    name_lines(ax, [v.name for v in found])
    ax.set_xlabel(label)
    legend_above(figure, ax)
    return figure


def curves(
    table: pd.DataFrame,
    x: str,
    y: str,
    labels: tuple[str, str],
    unsaid: Callable[[np.ndarray], int],
) -> Figure | None:
    """`curve` of every voice in a panel of its own, the others pale behind it.

    Args:
        labels: of the axis across and of the axis down.
        unsaid: from the column `n_without_verdict` of a voice of which nothing can be drawn, how
            many judgements those are.
    """
    found = voices(table)
    lines = {v: v.of(table).dropna(subset=[y]) for v in found}

    def draw(ax: Axes, voice: Voice) -> None:
        behind(ax, [line for v, line in lines.items() if v != voice], x, y)
        if len(lines[voice]):
            curve(ax, lines[voice], x, y)
        else:
            say_silent(ax, unsaid(voice.of(table)["n_without_verdict"].to_numpy(dtype=int)))
        share_ticks(ax.yaxis)
        ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)

    return grid(found, draw, labels=labels) if found else None


def legend_of_most(figure: Figure) -> None:
    """Above the figure, the legend of the panel that shows most."""
    legend_above(figure, max(figure.axes, key=lambda ax: len(ax.get_legend_handles_labels()[0])))


def name_lines(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), list(names))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def share_axis(ax: Axes, least: float = 0.0) -> None:
    """Quarters from 0 to 1, and below 0 as far as needed."""
    first = math.floor(4 * min(0.0, least) + 1e-9) / 4
    ticks = np.arange(first, 1.01, 0.25)
    ax.set_xticks(ticks, [quarter(t) for t in ticks])
    ax.set_xlim(first - 0.03, 1.03)
    ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.5)
    ax.axvline(0, color="black", lw=0.6)
    ax.set_axisbelow(True)


def quarter(value: float) -> str:
    """`0`, `.25`, `−.5`, `1`."""
    text = f"{abs(value):g}".replace("0.", ".")
    return f"−{text}" if value < 0 else text


def _or(value: float, other: float) -> float:
    return other if math.isnan(value) else value
