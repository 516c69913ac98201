"""Coverage scores against what was removed (C2-Faith, Figure 3)."""

from __future__ import annotations

import itertools
import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from faithscope.experiments.analysis.charts import GREY, INK_ON_DARK, INK_ON_PALE, legend_above
from faithscope.experiments.analysis.panels import behind, curve, legend_of_most
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import share_ticks
from faithscope.experiments.analysis.tidy import count, numbers, where
from faithscope.experiments.studies.c2faith.figures.plots import Voice, grid, say_silent, voices
from faithscope.experiments.studies.c2faith.metrics.frames import maximum

PARTS = 5
"""Scores are drawn in so many parts of equal width: each score of 0-4 by itself."""
NOT_RUN = "Coverage was not run."


def first_scale(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first scale and, of its references, the first."""
    if not len(table):
        return table
    kept = where(table, scale=table["scale"].iloc[0])
    return where(kept, reference_judge=kept["reference_judge"].iloc[0])


def score_bars(ax: Axes, table: pd.DataFrame, top: int) -> Axes:
    """A bar per level, parted by score; wide parts carry their share in percent."""
    levels = sorted(table["level"].unique())
    inks = mpl.colormaps["cividis"](np.linspace(0.08, 0.98, PARTS))
    for y, level in enumerate(levels):
        line = where(table, level=level).dropna(subset=["score"])
        part = (numbers(line["score"]) * PARTS // (top + 1)).astype(int)
        shares = np.bincount(part, weights=line["share"], minlength=PARTS)
        left = np.cumsum(shares) - shares
        ax.barh(y, shares, left=left, color=inks, height=0.8)
        for i in np.flatnonzero(shares >= 0.12):
            ink = INK_ON_DARK if i < PARTS - 2 else INK_ON_PALE
            text = f"{100 * shares[i]:.0f}"
            at = left[i] + shares[i] / 2
            ax.text(at, y, text, ha="center", va="center", fontsize=7, color=ink)
    ax.set_yticks(range(len(levels)), [f"{100 * x:.0f} %" for x in levels])
    ax.set(xlim=(0, 1), ylim=(len(levels) - 0.5, -0.5))
    ax.tick_params(axis="y", length=0)
    share_ticks(ax.xaxis)
    return ax


def coverage_scores_picture(table: pd.DataFrame) -> Picture:
    """Figure 3a: a panel per judge."""
    data = first_scale(table)
    found = voices(data)
    figure = None
    if found:
        top = maximum(data["scale"].iloc[0])

        def draw(ax: Axes, voice: Voice) -> None:
            mine = voice.of(data)
            score_bars(ax, mine, top)
            if not count(mine["score"].notna()):
                say_silent(ax, int(sum(mine["n_without_verdict"])))

        figure = grid(found, draw, height=1.6, labels=("share of chains", "middle steps removed"))
        inks = mpl.colormaps["cividis"](np.linspace(0.08, 0.98, PARTS))
        edges = [math.ceil(i * (top + 1) / PARTS) for i in range(PARTS + 1)]
        spans = [(a, b - 1) for a, b in itertools.pairwise(edges)]
        labels = [f"score {a}" if a == b else f"{a}–{b}" for a, b in spans]
        handles = [Patch(color=i, label=label) for i, label in zip(inks, labels, strict=True)]
        legend_above(figure, handles, ncols=PARTS)
    return Picture(
        "c2_coverage_scores",
        "Which scores do judges give?",
        "Coverage scores by the share of middle steps removed, in percent of the chains. A judge "
        "that sees what is missing leaves the highest score as more is removed.",
        data,
        figure,
        NOT_RUN,
    )


def coverage_picture(table: pd.DataFrame) -> Picture:
    """Figure 3b: a panel per judge, the others behind it, the reference dashed."""
    data = first_scale(table)
    found = voices(data)
    figure = None
    if found:
        top = maximum(data["scale"].iloc[0])
        lines = {v: v.of(data).dropna(subset=["mean"]) for v in found}

        def draw(ax: Axes, voice: Voice) -> None:
            mine = voice.of(data)
            behind(ax, [x for v, x in lines.items() if v != voice], "level", "mean", "other judges")
            levels = mine["level"].to_numpy(dtype=float)
            ax.plot(levels, top * (1 - levels), color=GREY, lw=0.9, ls=":", label="share kept")
            known = mine.dropna(subset=["reference_mean"])
            if len(known):
                at = (known["level"], known["reference_mean"])
                ax.plot(*at, color="black", lw=1.1, ls="--", marker="s", ms=3, label="reference")
            if len(lines[voice]):
                curve(ax, lines[voice], "level", "mean", label="this judge")
            else:
                say_silent(ax, int(sum(mine["n_without_verdict"])))
            ax.set(ylim=(-0.03 * top, 1.05 * top), xlim=(0, max(0.75, levels.max() + 0.05)))
            ax.set_xticks(levels, [f"{100 * x:.0f} %" for x in levels])
            ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)

        figure = grid(found, draw, labels=("middle steps removed", f"mean score, of {top}"))
        legend_of_most(figure)
    return Picture(
        "c2_coverage",
        "Do judges see what is missing?",
        "Mean coverage score by the share of middle steps removed, with 95 % bootstrap bands over "
        "chains. Dashed: the reference judge, which is shown what was removed. Dotted: the share "
        "of middle steps kept, times the highest score; steps differ in weight, so a fair judge "
        "need not lie on it, but should fall as it does.",
        data,
        figure,
        NOT_RUN,
    )
