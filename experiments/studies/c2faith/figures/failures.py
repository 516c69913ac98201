"""Figures of all tasks of a judge in one shape, and of failures that judges have in common (Figures
4 and 6)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.axes import MARGIN_OF_SHARES, SMALL, sheet
from faithscope.experiments.analysis.colours import BLUE, GREY, MISSING, ORANGE, PALE
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import short_names
from faithscope.experiments.numerals import percent
from faithscope.experiments.studies.c2faith.figures.judge_readings import (
    JudgeReading,
    judge_reading_panels,
    judge_readings,
)
from faithscope.experiments.studies.c2faith.tables.agreement import JUDGES, SEPARATOR

AXES = {
    "detection": "detection",
    "not_flagged": "1 − FPR",
    "exact": "exact\nmatch",
    "coverage": "coverage ρ",
}
MOST_SETS = 14
"""Most sets of judge readings that are drawn, those with most items; the table has all."""

LEAST_SETS = 6
"""Number of sets for which there is always room, so that few bars do not become walls."""


def radar_table(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> pd.DataFrame:
    """A row per judge, reading and axis of Figure 4; each task by the judge's first prompt.

    `coverage` is the rank correlation with the share kept over all levels, 0 for a negative one.
    """
    columns = {
        "detection": (detection, "detection"),
        "not_flagged": (detection.assign(not_flagged=1 - detection["fpr"]), "not_flagged"),
        "exact": (localisation, "exact"),
        "coverage": (coverage, "spearman_kept"),
    }
    shares = {
        axis: {(v.judge, v.reading): v.of(table)[column].iloc[0] for v in judge_readings(table)}
        for axis, (table, column) in columns.items()
    }
    every = dict.fromkeys(way for of_axis in shares.values() for way in of_axis)
    values = [(*way, "", axis, shares[axis].get(way, math.nan)) for way in every for axis in AXES]
    table = pd.DataFrame(values, columns=["judge", "reading", "prompt", "axis", "value"])
    return table.assign(value=table["value"].clip(lower=0))


def radar(ax: Axes, values: np.ndarray, colour: str, *, fill: bool) -> Axes:
    """Draws one closed line over the axes; the line is broken where a value is missing."""
    angles = np.linspace(0, 2 * math.pi, len(values), endpoint=False)
    closed = np.append(np.arange(len(values)), 0)
    ax.plot(angles[closed], values[closed], color=colour, lw=1.6 if fill else 0.8)
    if fill:
        ax.plot(angles, values, ls="", marker="o", ms=3.5, color=colour)
        if not np.isnan(values).any():
            ax.fill(angles, values, color=colour, alpha=0.2, lw=0)
    return ax


def radar_picture(
    detection: pd.DataFrame, localisation: pd.DataFrame, coverage: pd.DataFrame
) -> Picture:
    """Figure 4: a panel per judge, the other judges pale behind it."""
    data = radar_table(detection, localisation, coverage)

    def draw(ax: Axes, rater: JudgeReading, judged: pd.DataFrame) -> bool:
        for other in judge_readings(data):
            if other != rater:
                radar(ax, other.of(data)["value"].to_numpy(dtype=float), PALE, fill=False)
        values = judged["value"].to_numpy(dtype=float)
        radar(ax, values, BLUE, fill=True)
        ax.set_xticks(np.linspace(0, 2 * math.pi, len(AXES), endpoint=False), AXES.values())
        ax.tick_params(axis="x", labelsize=7.5, pad=3)
        ax.set_ylim(0, 1)
        ax.set_yticks([0.5, 1], ["", ""])
        ax.grid(color=GREY, alpha=0.4, lw=0.5)
        ax.spines["polar"].set_color(GREY)
        return not np.isnan(values).all()

    polar: dict[str, Any] = {
        "subplot_kw": {"projection": "polar"},
        "count": lambda judged: 0,
    }
    return Picture(
        "c2_radar",
        "Every task of a judge at once",
        "Share of broken steps flagged, of intact steps not flagged, of broken steps named in the "
        "whole chain, and rank correlation of coverage scores with the share of middle steps kept "
        "(0 where negative); the rim is 1, other judges pale. The areas say nothing: they change "
        "with the order of the axes.",
        data,
        judge_reading_panels(data, draw, height=2.5, shared=False, **polar),
        "No judge was asked.",
    )


def largest(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the reading and prompt under which most judge readings gave verdicts, the first of
    equal ones."""
    if not len(table):
        return table
    best = table.loc[[int(table["n_raters"].to_numpy().argmax())]]
    row = rows(best)[0]
    return where(table, reading=row["reading"], prompt=row["prompt"])


def failure_sets(above: Axes, below: Axes, table: pd.DataFrame) -> None:
    """Draws a bar per set of judge readings that miss the same steps, and below it the members of
    the set."""
    sets = [frozenset(str(m).split(SEPARATOR)) for m in table["missed_by"]]
    judges = list(dict.fromkeys(j for r in table["missed_by"] for j in str(r).split(SEPARATOR)))
    x = np.arange(len(table))
    above.bar(x, table["share"], color=BLUE, width=0.6)
    expected = 0.3 * np.array([-1, 1])
    for i, row in enumerate(rows(table)):
        above.plot(i + expected * 1.3, [row["share_independent"]] * 2, color=ORANGE, lw=2)
        top = max(row["share"], row["share_independent"])
        above.annotate(
            str(int(row["n_items"])),
            (i, top),
            (0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=SMALL,
        )
    above.set_ylabel("share of\nreplaced steps")
    above.margins(y=0.2)
    above.set_ylim(0, min(1 + MARGIN_OF_SHARES, above.get_ylim()[1]))
    above.tick_params(axis="x", length=0, labelbottom=False)
    names = short_names(judges)
    for i, of_set in enumerate(sets):
        at = [y for y, j in enumerate(judges) if j in of_set]
        below.plot([i] * len(judges), range(len(judges)), ls="", marker="o", ms=6, color=MISSING)
        below.plot([i] * len(at), at, color=BLUE, marker="o", ms=6, lw=1.6)
    below.set_yticks(range(len(judges)), [names[j] for j in judges])
    below.set_ylim(len(judges) - 0.5, -0.5)
    below.set_xlim(-0.6, max(len(table), LEAST_SETS) - 0.4)
    below.set_xticks([])
    below.tick_params(length=0)
    for spine in below.spines.values():
        spine.set_visible(False)


def failure_overlap_picture(table: pd.DataFrame) -> Picture:
    """Figure 6: the sets of judges, or of one judge's readings, that miss the same steps."""
    data = largest(table)
    # one judge reading alone has nothing in common with another
    missed = data.loc[(data["n_missed_by"] > 0) & (data["n_raters"] > 1)] if len(data) else data
    among = str(data["among"].iloc[0]) if len(data) else JUDGES
    shown = missed.sort_values("n_items", ascending=False, kind="stable").head(MOST_SETS)
    figure = None
    if len(shown):
        judges = len({j for r in shown["missed_by"] for j in str(r).split(SEPARATOR)})
        height = 2.6 + 0.24 * judges
        figure = sheet(height)
        ratios = [1.8, 0.24 * judges + 0.1]
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=ratios)
        failure_sets(above, below, shown)
        seen = rows(where(data, n_missed_by=0))
        n = int(data["n"].iloc[0])
        share_seen = percent(seen[0]["share"]) if seen else "none"
        left = len(missed) - len(shown)
        more = f"; {left} smaller sets are in the table" if left else ""
        by = "by every judge" if among == JUDGES else f"in all {among}"
        above.set_title(f"seen {by}: {share_seen} of {n} steps{more}")
    return Picture(
        "c2_failure_overlap",
        "Do judges miss the same steps?",
        f"Replaced steps that a set of {among}, and no other, lets pass: as a share of the steps "
        "on which all gave a verdict, with their number. Orange: the share if each failed by "
        "itself, at its own rate; a bar far above it is a blind spot that they have in common."
        + ("" if among == JUDGES else f" No two judges can be compared: sets are of {among}."),
        data,
        figure,
        "Fewer than two judges, or readings of one judge, gave verdicts on the same broken "
        "steps, or they missed none.",
    )
