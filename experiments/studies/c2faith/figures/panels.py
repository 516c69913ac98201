"""Several judges as one beside the best of them, drawn of `c2_panel` (ours)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from faithscope.experiments.analysis.charts import BLUE, GREEN, GREY, ORANGE, PURPLE, legend_above
from faithscope.experiments.analysis.dots import (
    bare_rows,
    moved,
    name_lines,
    rules_between,
    share_axis,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.short_names import middle_cut
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import distinct, rows, where, with_interval
from faithscope.experiments.studies.c2faith.figures.plots import SILENT

_FOUND = (BLUE, "o", "broken step flagged, or named")
_FALSE = (ORANGE, "s", "intact step or chain flagged")
_RANKED = (PURPLE, "^", "rank correlation of scores with the truth")
MEASURES = {
    "detection": {
        "net": (GREEN, "D", "broken minus intact flagged"),
        "detection": _FOUND,
        "fpr": _FALSE,
    },
    "localisation": {"exact": _FOUND, "fpr": _FALSE},
    "coverage": {
        "spearman": _RANKED,
        "spearman_kept": _RANKED,
        "inflation": (GREY, "v", "scores of ¾ of the scale and more"),
    },
}
"""Task -> measure -> colour, marker, label; the first there is, panels are compared by."""
APART = 0.24
"""Of a line's height: how far measures stand from one another."""


def panel_picture(table: pd.DataFrame) -> Picture:
    """A panel of the figure per task, a line per rule; of several prompts the first."""
    data = first_panels(table)
    return Picture(
        "c2_panel",
        "Are several judges better than one?",
        "Filled: all judges as one, by the rule named, with 95 % bootstrap intervals over chains. "
        "Hollow: the single judge that is best by that measure, picked after the fact on the same "
        "items, which favours it. Any and all: flagged if any judge, or every judge, flags. "
        + best_panels(data),
        data,
        _drawn(data) if len(data) else None,
        "There were no two judges of one prompt with verdicts.",
    )


def first_panels(table: pd.DataFrame) -> pd.DataFrame:
    """Of every task and reading the first prompt, scale and reference with two judges.

    Rank correlation is with the reference judge where there is one, else with the share kept.
    """
    parts = []
    for of in distinct(where(table, reason=""), "task", "reading"):
        mine = where(table, reason="", **of)
        first = {n: mine[n].iloc[0] for n in ("prompt", "scale", "reference_judge")}
        mine = where(mine, **first)
        other = "spearman_kept" if first["reference_judge"] else "spearman"
        parts.append(where(mine, measure=set(MEASURES[of["task"]]) - {other}))
    return pd.concat(parts, ignore_index=True) if parts else table.iloc[:0]


def best_panels(data: pd.DataFrame) -> str:
    """The best rule of each task beside the best judge, in a sentence."""
    said = []
    for task in dict.fromkeys(data["task"]):
        measure, (_, _, label) = next(iter(_measures(data, task).items()))
        known = rows(where(data, task=task, measure=measure).dropna(subset=["value"]))
        if known:
            best = max(known, key=lambda row: row["value"])
            judge = f"{middle_cut(visible(best['best_judge']))} alone {best['best_value']:.2f}"
            beyond = ", beyond its interval" if best["value_low"] > best["best_value"] else ""
            said.append(f"{task} ({label}), {best['rule']} {best['value']:.2f}, {judge}{beyond}")
    return f"Best panels here: {'; '.join(said)}." if said else ""


def panel_dots(
    ax: Axes,
    lines: Sequence[Mapping[str, Mapping[str, Any]]],
    measures: Mapping[str, tuple[str, str, str]],
) -> Axes:
    """A line of the figure per rule.

    Args:
        lines: measure -> its row of the table; none where the task has no such rule.
    """
    least = 0.0
    for y, line in enumerate(lines):
        known = {m: r for m, r in line.items() if not math.isnan(r["value"])}
        for i, (measure, (colour, marker, _)) in enumerate(measures.items()):
            if measure in known:
                row = known[measure]
                at = y + APART * (i - (len(measures) - 1) / 2)
                after = tuple(row[name] for name in with_interval("value"))
                moved(ax, at, row["best_value"], after, colour, marker)
                least = min(least, row["best_value"], row["value_low"])
        if line and not known:
            ax.text(0.01, y, SILENT, va="center", fontsize=8, color=GREY)
    share_axis(ax, least)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    return ax


def _measures(data: pd.DataFrame, task: str) -> dict[str, tuple[str, str, str]]:
    """Those of a task that there are."""
    made = set(where(data, task=task)["measure"])
    return {name: style for name, style in MEASURES[task].items() if name in made}


def _drawn(data: pd.DataFrame) -> Figure:
    tasks = [t for t in MEASURES if t in set(data["task"])]
    readings = list(dict.fromkeys(data["reading"]))
    rules = {r: list(dict.fromkeys(where(data, reading=r)["rule"])) for r in readings}
    places = [(reading, rule) for reading in readings for rule in rules[reading]]
    figure = Figure(figsize=(9, 1.5 + 0.45 * len(places)), layout="constrained")
    axes = figure.subplots(1, len(tasks), squeeze=False, sharey=True)[0]
    for ax, task in zip(axes, tasks, strict=True):
        of_task = where(data, task=task)
        lines = [
            {r["measure"]: r for r in rows(where(of_task, reading=reading, rule=rule))}
            for reading, rule in places
        ]
        panel_dots(ax, lines, _measures(data, task))
        rules_between(ax, [len(of) for of in rules.values()])
        ax.set_title(task)
    named = [f"{rule} · {r}" if len(readings) > 1 else rule for r, rule in places]
    name_lines(axes[0], named)
    bare_rows(axes[1:])
    legend_above(figure, _handles(tasks), ncols=3)
    return figure


def _handles(tasks: Sequence[str]) -> list[Line2D]:
    styles = dict.fromkeys(style for task in tasks for style in MEASURES[task].values())
    made = [Line2D([], [], color=c, marker=m, label=label) for c, m, label in styles]
    for face, label in ((GREY, "all judges as one"), ("white", "the best judge alone")):
        made.append(Line2D([], [], ls="", marker="o", mec=GREY, mfc=face, label=label))
    return made
