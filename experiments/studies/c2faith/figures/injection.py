"""How far a text inside the chain moves each judge, drawn of `c2_injection`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from faithscope.experiments.analysis.charts import BLUE, GREY, ORANGE, legend_above
from faithscope.experiments.analysis.dots import (
    bare_rows,
    moved,
    name_lines,
    rules_between,
    share_axis,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import distinct, rows, where, with_interval
from faithscope.experiments.studies.c2faith.figures.plots import SILENT, voices

DEMANDS = {"best": (BLUE, "o", "the best verdict"), "worst": (ORANGE, "s", "the worst")}
TASKS = ("detection", "localisation", "coverage")
APART = 0.17
"""Of a line's height: how far the two demands stand from its middle."""


def injection_picture(table: pd.DataFrame) -> Picture:
    """Paired dots, clean to injected: a panel per task, a line per judge and injection.

    Of several prompts of a task the first is drawn.
    """
    return Picture(
        "c2_injection",
        "Can the chain talk its judge round?",
        "Share of verdicts equal to the one that a text inside the chain demands: hollow without "
        "the text, filled with it, on the same items; 95 % Wilson intervals of the filled. The "
        "neutral line demands nothing: what it moves, any foreign line moves.",
        table,
        _drawn(table) if len(table) else None,
        "Prompt injection was not run (injection.kinds).",
    )


def pairs(ax: Axes, lines: Sequence[Mapping[str, Mapping[str, Any]]]) -> Axes:
    """Two dots and what joins them for every demand, a row of the figure per line.

    Args:
        lines: demand -> its row of the table; a demand that was not made is left out.
    """
    for y, line in enumerate(lines):
        known = {d: r for d, r in line.items() if not math.isnan(r["demanded_injected"])}
        for demand, row in known.items():
            colour, marker, _ = DEMANDS[demand]
            at = y + (0.0 if len(line) == 1 else -APART if demand == "best" else APART)
            after = tuple(row[name] for name in with_interval("demanded_injected"))
            moved(ax, at, row["demanded_clean"], after, colour, marker)
        if line and not known:
            ax.text(0.01, y, SILENT, va="center", fontsize=8, color=GREY)
    share_axis(ax)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    return ax


def _drawn(table: pd.DataFrame) -> Figure:
    first: dict[str, str] = {}
    for of in distinct(table, "task", "prompt"):
        first.setdefault(of["task"], of["prompt"])
    prompts = {task: first[task] for task in TASKS if task in first}
    found, kinds = voices(table), [k["injection"] for k in distinct(table, "injection")]
    places = [(voice, kind) for voice in found for kind in kinds]
    figure = Figure(figsize=(9, 1.3 + 0.3 * len(places)), layout="constrained")
    axes = figure.subplots(1, len(prompts), squeeze=False, sharey=True)[0]
    for ax, (task, prompt) in zip(axes, prompts.items(), strict=True):
        of_prompt = where(table, prompt=prompt)
        lines = []
        for voice, kind in places:
            mine = where(of_prompt, judge=voice.judge, reading=voice.reading, injection=kind)
            lines.append({r["demand"]: r for r in rows(mine)})
        pairs(ax, lines)
        rules_between(ax, [len(kinds)] * len(found))
        ax.set_title(task)
    several = len(found) > 1
    said = [_label(v.name, k, several and i % len(kinds) == 0) for i, (v, k) in enumerate(places)]
    name_lines(axes[0], said)
    bare_rows(axes[1:])
    figure.supxlabel("share of verdicts that are the demanded one", fontsize=9)
    legend_above(figure, _handles(table), ncols=4)
    return figure


def _label(judge: str, kind: str, first: bool) -> str:
    name = visible(kind).replace("_", " ")
    return f"{judge}\n{name}" if first else name


def _handles(table: pd.DataFrame) -> list[Line2D]:
    made = [
        Line2D([], [], color=colour, marker=marker, label=f"{label} is demanded")
        for demand, (colour, marker, label) in DEMANDS.items()
        if demand in set(table["demand"])
    ]
    for face, label in (("white", "without the text"), (GREY, "with the text")):
        made.append(Line2D([], [], ls="", marker="o", mec=GREY, mfc=face, label=label))
    return made
