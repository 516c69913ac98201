"""Figures of detection and localisation (C2-Faith, Figures 2, 5, 7 and 8), and of judges beside
models’ internals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from faithscope.experiments.analysis.axes import SMALL, along_reasoning, share_rise
from faithscope.experiments.analysis.charts import Dot, dot_rows, dots_by, dots_of
from faithscope.experiments.analysis.colours import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PLAIN,
    PURPLE,
    Style,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import numbers, rows, where
from faithscope.experiments.analysis.wording import LONGEST, middle_cut, short_names
from faithscope.experiments.numerals import decimal, percent
from faithscope.experiments.studies.c2faith.figures.judge_readings import (
    SILENT,
    JudgeReading,
    Line,
    judge_reading_curves,
    judge_reading_panels,
    judge_reading_rows,
)
from faithscope.experiments.studies.c2faith.tables.internals import JUDGE

FARTHEST = 8
"""Steps early or late beyond which Figure 5 puts all into its outermost bars."""
DETECTION_NOT_RUN, LOCALISATION_NOT_RUN = "Detection was not run.", "Localisation was not run."


def detection_picture(detection: pd.DataFrame) -> Picture:
    """Figure 2a, with the control beside it."""
    measures = {
        "detection": Style(BLUE, "o", "broken step flagged"),
        "fpr": Style(ORANGE, "s", "intact step flagged"),
        "net": Style(GREEN, "D", "difference"),
    }
    return Picture(
        "c2_detection",
        "Do judges see the broken step?",
        "Share of replaced steps that a judge says do not follow, the same share of the original "
        "steps, and the difference, with 95 % bootstrap intervals over chains. A judge that flags "
        "everything has a difference of 0.",
        detection,
        judge_reading_rows(detection, measures, "share of steps"),
        DETECTION_NOT_RUN,
    )


def positions_picture(table: pd.DataFrame) -> Picture:
    """Figure 8: a panel per judge, the other judges pale behind it."""
    figure = judge_reading_curves(
        *(table, "position", [Line("detection", PLAIN)], share_rise),
        pale="detection",
        labels=("place of the replaced step in the chain", "share flagged"),
        count=lambda judged: int(judged["n_without_verdict"].sum()),
    )
    for ax in figure.panels if figure else ():
        along_reasoning(ax)
    return Picture(
        "c2_positions",
        "Does the place of the broken step matter?",
        "Share of replaced steps that are flagged, by their relative place in five bins, with "
        "95 % Wilson bands; other judges pale. The benchmark breaks middle steps only.",
        table,
        figure,
        DETECTION_NOT_RUN,
    )


def localisation_picture(localisation: pd.DataFrame) -> Picture:
    """Figure 2b: how often judges name the right step, one near it, or any."""
    measures = {
        "exact": Style(BLUE, "o", "right step named"),
        "within_1": Style(GREEN, "^", "at most one step off, of those that name one"),
        "detection": Style(PURPLE, "D", "some step named"),
        "fpr": Style(ORANGE, "s", "some step named in an intact chain"),
    }
    return Picture(
        "c2_localisation",
        "Do judges find the broken step?",
        "Share of chains in which a judge names the replaced step, one at most a step away, or any "
        "step at all, beside intact chains in which it names one; 95 % bootstrap intervals over "
        f"chains.{against_themselves(localisation)}",
        localisation,
        judge_reading_rows(localisation, measures, "share of chains"),
        LOCALISATION_NOT_RUN,
    )


def against_themselves(localisation: pd.DataFrame) -> str:
    """A sentence on how many replies contradict themselves; "" if no form asks for a final
    score."""
    known = [r for r in rows(localisation) if r["n_final_score"]]
    if not known:
        return ""
    n = sum(r["n_final_score"] for r in known)
    twice = sum(r["n_final_score"] * r["contradicts"] for r in known) / n
    return (
        " The step named is what counts: the replies also say in a final score whether all steps "
        f"are valid, and contradict themselves in {percent(twice)} of {n} "
        "(column contradicts of the table)."
    )


def within_picture(table: pd.DataFrame) -> Picture:
    """Figure 7: a panel per judge, the other judges pale behind it."""
    labels = ("at most so many steps off", "share of chains")
    lines = [Line("within", PLAIN)]
    figure = judge_reading_curves(table, "k", lines, share_rise, pale="within", labels=labels)
    if figure is not None:
        figure.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    return Picture(
        "c2_within",
        "How near do judges come?",
        "Share of chains in which the step named is at most so many steps from the replaced one, "
        "of chains in which a step was named, with 95 % Wilson bands; other judges pale.",
        table,
        figure,
        LOCALISATION_NOT_RUN,
    )


def signed_errors(ax: Axes, line: pd.DataFrame) -> Axes:
    """Draws bars of how many steps early or late; the outermost hold all beyond `FARTHEST`."""
    error, share = numbers(line["signed_error"]), numbers(line["share"])
    at = np.arange(-FARTHEST, FARTHEST + 1)
    capped = np.clip(error, -FARTHEST, FARTHEST)
    heights = [share[capped == e].sum() for e in at]
    colours = [GREEN if e == 0 else ORANGE if e < 0 else BLUE for e in at]
    ax.bar(at, heights, color=colours, width=0.85)
    mean = float((error * share).sum())
    ax.axvline(mean, color=INK, lw=1, ls="--")
    x, side = (0.97, "right") if mean < 0 else (0.03, "left")  # the side without the line
    text = f"mean {decimal(mean, plus=True)}"
    ax.text(x, 0.93, text, transform=ax.transAxes, fontsize=SMALL, ha=side, va="top")
    return ax


def signed_error_picture(table: pd.DataFrame) -> Picture:
    """Figure 5: a panel per judge."""

    def draw(ax: Axes, rater: JudgeReading, judged: pd.DataFrame) -> bool:
        known = judged.dropna(subset=["signed_error"])
        ends = [-FARTHEST, -4, 0, 4, FARTHEST]
        ax.set_xticks(ends, [f"≤−{FARTHEST}", "−4", "0", "4", f"≥{FARTHEST}"])
        ax.set_xlim(-FARTHEST - 0.8, FARTHEST + 0.8)
        return bool(len(known)) and bool(signed_errors(ax, known))

    labels = ("steps early (below 0) or late", "share of chains")
    return Picture(
        "c2_signed_error",
        "Too early or too late?",
        "Step named minus step replaced, of chains in which a step was named; the mean dashed. A "
        "lean to the left means that judges stop at the first step that looks odd.",
        table,
        judge_reading_panels(table, draw, labels=labels),
        LOCALISATION_NOT_RUN,
    )


KINDS = {True: Style(BLUE, "o", "judge"), False: Style(ORANGE, "D", "signal inside the model")}
BLINDLY = {
    "exact_chance": Style(GREY, "|", "named blindly"),
    "exact_chance_middle": Style(GREY, "2", "blindly, among the steps that may be replaced"),
    "exact_control": Style(GREY, "x", "same step named in the intact chain"),
}


def against_picture(table: pd.DataFrame) -> Picture:
    """Figure of judges and signals on the same broken steps: telling one, and finding it (ours)."""
    data = table.assign(row=range(len(table)), judge=table["kind"] == JUDGE)

    def dots(measure: str, asked: str) -> Iterator[Dot]:
        not_asked = {r["row"] for r in rows(data) if math.isnan(r[asked])}
        for dot in dots_by(data, measure, "judge", KINDS, "row"):
            yield replace(dot, silent="not asked" if dot.row in not_asked else SILENT)

    figure = dot_rows(
        {
            "AUROC, replaced against original step": [*dots("auroc", "n")],
            "share of chains with the right step named": [
                *dots("exact", "n_chains"),
                *dots_of(data, BLINDLY, "row", beside=True),
            ],
        },
        dict(enumerate(against_names(table))),
        groups=[len(of) for is_judge in KINDS if len(of := where(data, judge=is_judge))],
        each=0.27,
    )
    if figure is not None:
        for ax in figure.panels[:: len(figure.axes)]:
            ax.axvline(0.5, color=GREY, lw=0.8, ls="--")
    return Picture(
        "c2_judge_against_internals",
        "Judges beside the model’s internals",
        "The same broken steps, asked of judges and read inside a model: how well replaced and "
        "original steps are told apart (left, 0.5 is chance), and how often the replaced step is "
        "the one named (right), with 95 % bootstrap intervals over chains. A cross near its dot "
        "means that the step is named whether it is broken or not.",
        table,
        figure,
        "Neither a judge nor a signal inside a model was asked.",
    )


def against_names(table: pd.DataFrame) -> list[str]:
    """Names of the rows: a judge with its reading, or a signal, with its model if there are
    several."""
    judges, models = (
        short_names([r["name"] for r in rows(table) if (r["kind"] == JUDGE) == is_judge])
        for is_judge in KINDS
    )
    names = []
    for row in rows(table):
        signal = middle_cut(visible(row["signal"]).replace("_", " "), LONGEST)
        if row["kind"] == JUDGE:
            names.append(f"{judges[row['name']]} · {signal}")
        else:
            names.append(f"{signal} · {models[row['name']]}" if len(models) > 1 else signal)
    return names
