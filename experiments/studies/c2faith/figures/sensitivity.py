"""How far each judge's figure hangs on prompt, reading and scale (C2-Faith, §7)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from faithscope.experiments.analysis.charts import BLUE, GREEN, ORANGE, legend_above
from faithscope.experiments.analysis.dots import bare_rows, name_lines, rules_between, share_axis
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.short_names import middle_cut, short_names
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import distinct, rows, where

MEASURES = {
    "detection": ("net", "broken minus intact flagged"),
    "localisation": ("exact", "right step named"),
    "coverage": ("mean_share", "mean score, of the highest"),
}
"""Task -> the measure that is drawn, and its name; the table has others."""
OVER = {"prompt": BLUE, "reading": ORANGE, "scale": GREEN}
MARKERS = "os^DvP*X"
"""Of the variants, in their order; of more the last."""


def sensitivity_picture(variants: pd.DataFrame) -> Picture:
    """A panel of the figure per task, a line per judge and per what is varied."""
    data = varied(variants)
    return Picture(
        "c2_prompts",
        "How much hangs on how a judge is asked?",
        "One figure of each task under every prompt, reading or scale that a judge was asked "
        "with, all else held as it first was, with 95 % bootstrap intervals over chains. As far "
        "as verdicts were given the items are the same, so that variants differ by less chance "
        "than their intervals show. " + widest(data),
        data,
        _drawn(data) if len(data) else None,
        "No judge was asked in two ways.",
    )


def varied(variants: pd.DataFrame) -> pd.DataFrame:
    """What is drawn: of every judge and what is varied, the first held setting with two values."""
    parts = []
    for task, (measure, _) in MEASURES.items():
        known = where(variants, task=task, measure=measure).dropna(subset=["value"])
        for of in distinct(known, "judge", "over"):
            mine = where(known, **of)
            for held in distinct(mine, "reading", "prompt", "scale"):
                of_setting = where(mine, **held)
                if len(of_setting) > 1:
                    parts.append(of_setting)
                    break
    return pd.concat(parts, ignore_index=True) if parts else variants.iloc[:0]


def widest(data: pd.DataFrame) -> str:
    """What a figure hangs on most, in a sentence."""
    found = []
    for of in distinct(data, "task", "judge", "over"):
        mine = rows(where(data, **of))
        low, high = (pick(mine, key=lambda r: r["value"]) for pick in (min, max))
        found.append((high["value"] - low["value"], of, low, high))
    if not found:
        return ""
    range_of_all, of, low, high = max(found, key=lambda f: f[0])
    if not range_of_all:
        return "Here no figure differs between variants."
    judge = middle_cut(visible(of["judge"]))
    return (
        f"Widest here: {of['task']} by {judge} over its {of['over']}s, from "
        f"{_signed(low['value'])} ({visible(low['variant'])}) to {_signed(high['value'])} "
        f"({visible(high['variant'])})."
    )


def variant_dots(
    ax: Axes, lines: Sequence[Sequence[Mapping[str, Any]]], styles: Mapping[Any, tuple[str, str]]
) -> Axes:
    """A line of the figure per list of variants, joined from the lowest to the highest.

    Args:
        styles: (what is varied, `variant_name`) -> colour, marker.
    """
    least = 0.0
    for y, line in enumerate(lines):
        values = [r["value"] for r in line]
        for i, row in enumerate(line):
            colour, marker = styles[row["over"], variant_name(row)]
            at = y + 0.5 * (i / (len(line) - 1) - 0.5)
            reach = [
                [max(0.0, row["value"] - row["value_low"])],
                [max(0.0, row["value_high"] - row["value"])],
            ]
            ax.errorbar(row["value"], at, xerr=reach, fmt="none", ecolor=colour, elinewidth=0.8)
            ax.plot(row["value"], at, marker, color=colour, ms=5, zorder=4, clip_on=False)
            least = min(least, row["value_low"])
        if line:
            colour = OVER[line[0]["over"]]
            ax.plot([min(values), max(values)], [y, y], color=colour, lw=3, alpha=0.3, zorder=1)
    share_axis(ax, least if not math.isnan(least) else 0.0)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    return ax


def _drawn(data: pd.DataFrame) -> Figure:
    tasks = [t for t in MEASURES if t in set(data["task"])]
    places = list(_places(data))
    figure = Figure(figsize=(9, 1.6 + 0.36 * len(places)), layout="constrained")
    axes = figure.subplots(1, len(tasks), squeeze=False, sharey=True)[0]
    styles = _styles(data)
    judges = short_names([judge for judge, _ in places])
    rows_of = [sum(j == judge for j, _ in places) for judge in judges]
    for ax, task in zip(axes, tasks, strict=True):
        of_task = where(data, task=task)
        lines = [rows(where(of_task, judge=j, over=over)) for j, over in places]
        variant_dots(ax, lines, styles)
        rules_between(ax, rows_of)
        _, label = MEASURES[task]
        ax.set_title(f"{task}\n{label}")
    first = {judge: over for judge, over in reversed(places)}
    name_lines(axes[0], [f"{judges[j]}\n{o}" if first[j] == o else o for j, o in places])
    bare_rows(axes[1:])
    handles = [
        Line2D([], [], ls="", color=colour, marker=marker, label=f"{over}: {middle_cut(name)}")
        for (over, name), (colour, marker) in styles.items()
    ]
    legend_above(figure, handles, ncols=4, fontsize=8)
    return figure


def _places(data: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """(judge, what is varied), judge by judge."""
    for judge in dict.fromkeys(data["judge"]):
        mine = set(where(data, judge=judge)["over"])
        yield from ((judge, over) for over in OVER if over in mine)


def _styles(data: pd.DataFrame) -> dict[tuple[str, str], tuple[str, str]]:
    """A marker per variant of what is varied."""
    made = {}
    for over, colour in OVER.items():
        names = dict.fromkeys(variant_name(row) for row in rows(where(data, over=over)))
        for i, name in enumerate(names):
            made[over, name] = (colour, MARKERS[min(i, len(MARKERS) - 1)])
    return made


def variant_name(row: Mapping[str, Any]) -> str:
    """A prompt without its task, as prompts of one manner bear one name: `terse`, `plain`."""
    stem = f"c2_{row['task']}"
    if row["over"] != "prompt" or not row["variant"].startswith(stem):
        return visible(row["variant"])
    return visible(row["variant"].removeprefix(stem).strip("_")) or "plain"


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
