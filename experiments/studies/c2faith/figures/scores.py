"""Figures of coverage scores, and of whether probabilities mean what they say (C2-Faith, Figure 3;
ours)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Patch

from faithscope.experiments.analysis.axes import legend_above, unit_square
from faithscope.experiments.analysis.charts import share_bars
from faithscope.experiments.analysis.colours import (
    AMOUNT,
    BLUE,
    GREY,
    INK,
    PLAIN,
    Style,
    colour_map,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tables import OVERALL
from faithscope.experiments.analysis.tidy import count, numbers, rows, where
from faithscope.experiments.numerals import decimal, hundredths, percent
from faithscope.experiments.studies.c2faith.figures.judge_readings import (
    JudgeReading,
    Line,
    judge_reading_curves,
    judge_reading_panels,
    judge_readings,
)
from faithscope.experiments.studies.c2faith.tables.frames import maximum

PARTS = 5
"""Number of parts of equal width in which scores are drawn: each score of 0-4 by itself."""
SHADES = [to_hex(c) for c in colour_map(AMOUNT)(np.linspace(0.12, 1, PARTS))]
"""Colours of the parts, the lowest scores first."""
NOT_RUN = "Coverage was not run."
REFERENCE = Style(INK, "s", "reference")


def first_scale(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first scale and of its first reference."""
    if not len(table):
        return table
    of_scale = where(table, scale=table["scale"].iloc[0])
    return where(of_scale, reference_judge=of_scale["reference_judge"].iloc[0])


def _all(table: pd.DataFrame) -> int:
    return int(sum(table["n_without_verdict"]))


def score_bars(ax: Axes, table: pd.DataFrame, top: int) -> Axes:
    """Draws a bar per level, split by score; wide parts carry their share in percent."""
    levels = sorted(table["level"].unique())
    parts = {str(i): (shade, "") for i, shade in enumerate(SHADES)}
    shares = []
    for level in levels:
        line = where(table, level=level).dropna(subset=["score"])
        part = (numbers(line["score"]) * PARTS // (top + 1)).astype(int)
        of_level = np.bincount(part, weights=line["share"], minlength=PARTS)
        shares.append({str(i): float(share) for i, share in enumerate(of_level)})
    share_bars(ax, shares, parts, lambda share, _: hundredths(share), least=0.12)
    ax.set_yticks(range(len(levels)), [percent(x) for x in levels])
    ax.tick_params(axis="y", length=0)
    return ax


def coverage_scores_picture(table: pd.DataFrame) -> Picture:
    """Figure 3a: a panel per judge."""
    data = first_scale(table)
    top = maximum(data["scale"].iloc[0]) if len(data) else 0

    def draw(ax: Axes, rater: JudgeReading, judged: pd.DataFrame) -> bool:
        score_bars(ax, judged, top)
        return count(judged["score"].notna()) > 0

    labels = ("share of chains", "middle steps removed")
    figure = judge_reading_panels(data, draw, height=1.6, labels=labels, count=_all)
    if figure is not None:
        edges = [math.ceil(i * (top + 1) / PARTS) for i in range(PARTS + 1)]
        spans = [(a, b - 1) for a, b in itertools.pairwise(edges)]
        names = [f"score {a}" if a == b else f"{a}–{b}" for a, b in spans]
        handles = [Patch(color=i, label=name) for i, name in zip(SHADES, names, strict=True)]
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


_DASHED = {"interval": "", "ls": "--", "lw": 1.1, "ms": 3}
_DOTTED = {"interval": "", "ls": ":", "lw": 0.9}


def coverage_picture(table: pd.DataFrame) -> Picture:
    """Figure 3b: a panel per judge, the other judges pale behind it, the reference dashed."""
    data = first_scale(table)
    top = maximum(data["scale"].iloc[0]) if len(data) else 0
    levels = np.unique(numbers(data["level"]))

    def ground(ax: Axes) -> None:
        ax.set(ylim=(-0.03 * top, 1.05 * top), xlim=(0, max(0.75, levels.max() + 0.05)))
        ax.set_xticks(levels, [percent(x) for x in levels])
        ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)

    lines = [
        Line("kept", Style(GREY, "", "share kept"), _DOTTED, aside=True),
        Line("reference_mean", REFERENCE, _DASHED),
        Line("mean", Style(BLUE, "o", "this judge")),
    ]
    return Picture(
        "c2_coverage",
        "Do judges see what is missing?",
        "Mean coverage score by the share of middle steps removed, with 95 % bootstrap bands over "
        "chains. Dashed: the reference judge, which is shown what was removed. Dotted: the share "
        "of middle steps kept, times the highest score; steps differ in weight, so a fair judge "
        "need not lie on it, but should fall as it does.",
        data,
        judge_reading_curves(
            data.assign(kept=top * (1 - data["level"])),
            *("level", lines, ground),
            pale="mean",
            others="other judges",
            labels=("middle steps removed", f"mean score, of {top}"),
            count=_all,
        ),
        NOT_RUN,
    )


BARS = {"interval": "bars", "lw": 1.4, "ms": 4.5}
"""Look of a curve of `analysis.statistics.calibration`, with its intervals."""


def reliability_picture(reliability: pd.DataFrame) -> Picture:
    """Figure of the reliability of the probabilities of single steps, a panel per judge."""
    data = where(reliability, task="detection").reset_index(drop=True)
    titles = {
        rater.name: f"AUROC {decimal(row['auroc'])} · ECE {decimal(row['ece'])}"
        for rater in judge_readings(data)
        for row in rows(where(rater.of(data), bin=OVERALL))
        if not math.isnan(row["ece"])
    }
    y = "share_happened"
    in_bins = data.assign(**{y: data[y].mask(data["bin"] == OVERALL)})
    return Picture(
        "c2_reliability",
        "Do probabilities mean what they say?",
        "Steps by the probability that the scored reading gives to “does not follow”, in ten bins "
        "of equal width: the share of them that was replaced, with 95 % Wilson intervals. On the "
        "dotted line a judge is calibrated for these items, half of which are replaced.",
        data,
        judge_reading_curves(
            *(in_bins, "mean_p", [Line(y, PLAIN, BARS)], unit_square),
            height=2.5,
            titles=titles,
            labels=("probability said that the step does not follow", "share replaced"),
        ),
        "No judge gave probabilities.",
    )
