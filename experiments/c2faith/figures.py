"""The figures of C2-Faith, each drawn from the tables alone (the paper's Figures 2 to 8, and two).

A judge that gave no verdict keeps its place in every figure, with a word that says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.c2faith.coverage_figures import coverage_picture, coverage_scores_picture
from experiments.c2faith.failure_figures import failure_overlap_picture, radar_picture
from experiments.c2faith.injection_figure import injection_picture
from experiments.c2faith.metrics.frames import numbers
from experiments.c2faith.metrics.internals import JUDGE
from experiments.c2faith.plots import (
    LONGEST,
    Voice,
    behind,
    curve,
    dots,
    grid,
    judge_names,
    middle_cut,
    name_lines,
    say_silent,
    share_axis,
    voices,
)
from experiments.report.picture import STYLE, Picture, legend_above
from experiments.report.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, share_ticks
from experiments.tables.textual import visible
from experiments.tables.tidy import rows

FARTHEST = 8
"""Steps early or late beyond which Figure 5 puts all into its outermost bars."""
NOT_RUN = "was not run."


def pictures(tables: Mapping[str, pd.DataFrame]) -> list[Picture]:
    """Every figure, from the tables of `experiments.c2faith.tables.tables`.

    Of a judge with several prompts the first is drawn; the tables have all.
    """
    with mpl.rc_context(STYLE):
        return [
            detection_picture(tables["c2_detection"]),
            localisation_picture(tables["c2_localisation"]),
            coverage_scores_picture(tables["c2_coverage_scores"]),
            coverage_picture(tables["c2_coverage"]),
            radar_picture(
                tables["c2_detection"], tables["c2_localisation"], tables["c2_coverage_pooled"]
            ),
            signed_error_picture(tables["c2_signed_error"]),
            failure_overlap_picture(tables["c2_failure_overlap"]),
            within_picture(tables["c2_within"]),
            positions_picture(tables["c2_positions"]),
            calibration_picture(tables["c2_calibration"], tables["c2_detection"]),
            against_picture(tables["c2_judge_against_internals"]),
            injection_picture(tables["c2_injection"]),
        ]


def _lines(table: pd.DataFrame) -> tuple[list[str], list[dict[str, Any]]]:
    """A name and a row per voice."""
    found = voices(table)
    return [v.name for v in found], [rows(v.of(table))[0] for v in found]


def _forest(
    table: pd.DataFrame, measures: Mapping[str, tuple[str, str, str]], label: str
) -> Figure | None:
    if not len(table):
        return None
    names, lines = _lines(table)
    height = 1.1 + (0.18 + 0.1 * len(measures)) * len(lines)
    figure = Figure(figsize=(9, height), layout="constrained")
    ax = dots(figure.add_subplot(), lines, measures)
    name_lines(ax, names)
    ax.set_xlabel(label)
    legend_above(figure, ax)
    return figure


def detection_picture(detection: pd.DataFrame) -> Picture:
    """Figure 2a, with the control beside it."""
    measures = {
        "detection": (BLUE, "o", "broken step flagged"),
        "fpr": (ORANGE, "s", "intact step flagged"),
        "net": (GREEN, "D", "difference"),
    }
    return Picture(
        "c2_detection",
        "Do judges see the broken step?",
        "Share of replaced steps that a judge says do not follow, the same share of the original "
        "steps, and the difference, with 95 % bootstrap intervals over chains. A judge that flags "
        "everything has a difference of 0.",
        detection,
        _forest(detection, measures, "share of steps"),
        f"Detection {NOT_RUN}",
    )


def localisation_picture(localisation: pd.DataFrame) -> Picture:
    """Figure 2b."""
    measures = {
        "exact": (BLUE, "o", "right step named"),
        "within_1": (GREEN, "^", "at most one step off, of those that name one"),
        "detection": (PURPLE, "D", "some step named"),
        "fpr": (ORANGE, "s", "some step named in an intact chain"),
    }
    return Picture(
        "c2_localisation",
        "Do judges find the broken step?",
        "Share of chains in which a judge names the replaced step, one at most a step away, or any "
        "step at all, beside intact chains in which it names one; 95 % bootstrap intervals over "
        "chains.",
        localisation,
        _forest(localisation, measures, "share of chains"),
        f"Localisation {NOT_RUN}",
    )


def signed_errors(ax: Axes, line: pd.DataFrame) -> Axes:
    """Bars of how many steps early or late, what lies beyond `FARTHEST` in the last ones."""
    error, share = numbers(line["signed_error"]), numbers(line["share"])
    at = np.arange(-FARTHEST, FARTHEST + 1)
    capped = np.clip(error, -FARTHEST, FARTHEST)
    heights = [share[capped == e].sum() for e in at]
    colours = [GREEN if e == 0 else ORANGE if e < 0 else BLUE for e in at]
    ax.bar(at, heights, color=colours, width=0.85)
    mean = float((error * share).sum())
    ax.axvline(mean, color="black", lw=1, ls="--")
    ax.text(
        0.03,
        0.93,
        f"mean {mean:+.2f}".replace("-", "−"),
        transform=ax.transAxes,
        fontsize=8,
        va="top",
    )
    return ax


def signed_error_picture(table: pd.DataFrame) -> Picture:
    """Figure 5: a panel per judge."""
    found = voices(table)

    def draw(ax: Axes, voice: Voice) -> None:
        mine = voice.of(table)
        known = mine.dropna(subset=["signed_error"])
        if len(known):
            signed_errors(ax, known)
        else:
            say_silent(ax, int(mine["n_without_verdict"].iloc[0]))
        ends = [-FARTHEST, -4, 0, 4, FARTHEST]
        ax.set_xticks(ends, [f"≤−{FARTHEST}", "−4", "0", "4", f"≥{FARTHEST}"])
        ax.set_xlim(-FARTHEST - 0.8, FARTHEST + 0.8)

    figure = None
    if found:
        figure, _ = grid(found, draw)
        figure.supxlabel("steps early (below 0) or late", fontsize=9)
        figure.supylabel("share of chains", fontsize=9)
    return Picture(
        "c2_signed_error",
        "Too early or too late?",
        "Step named minus step replaced, of chains in which a step was named; the mean dashed. A "
        "lean to the left means that judges stop at the first step that looks odd.",
        table,
        figure,
        f"Localisation {NOT_RUN}",
    )


def within_picture(table: pd.DataFrame) -> Picture:
    """Figure 7: a panel per judge, the others behind it."""
    figure = _curves(table, "k", "within")
    if figure is not None:
        figure.axes[0].set_ylim(-0.03, 1.03)
        figure.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.supxlabel("at most so many steps off", fontsize=9)
        figure.supylabel("share of chains", fontsize=9)
    return Picture(
        "c2_within",
        "How near do judges come?",
        "Share of chains in which the step named is at most so many steps from the replaced one, "
        "of chains in which a step was named, with 95 % Wilson bands; other judges pale.",
        table,
        figure,
        f"Localisation {NOT_RUN}",
    )


def positions_picture(table: pd.DataFrame) -> Picture:
    """Figure 8: a panel per judge, the others behind it."""
    figure = _curves(table, "position", "detection")
    if figure is not None:
        figure.axes[0].set(xlim=(0, 1), ylim=(-0.03, 1.03), xticks=[0.05, 0.95])
        figure.axes[0].set_xticklabels(["first", "last"])
        figure.supxlabel("place of the replaced step in the chain", fontsize=9)
        figure.supylabel("share flagged", fontsize=9)
    return Picture(
        "c2_positions",
        "Does the place of the broken step matter?",
        "Share of replaced steps that are flagged, by their relative place in five bins, with "
        "95 % Wilson bands; other judges pale. The benchmark breaks middle steps only.",
        table,
        figure,
        f"Detection {NOT_RUN}",
    )


def _curves(table: pd.DataFrame, x: str, y: str) -> Figure | None:
    found = voices(table)
    if not found:
        return None
    all_lines = {v: v.of(table).dropna(subset=[y]) for v in found}

    def draw(ax: Axes, voice: Voice) -> None:
        behind(ax, [line for v, line in all_lines.items() if v != voice], x, y)
        if len(all_lines[voice]):
            curve(ax, all_lines[voice], x, y)
        else:
            # of Figure 7 the same count stands beside every distance
            counts = voice.of(table)["n_without_verdict"]
            say_silent(ax, int(counts.iloc[0] if x == "k" else sum(counts)))
        share_ticks(ax.yaxis)
        ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)

    return grid(found, draw)[0]


def reliability(ax: Axes, line: pd.DataFrame) -> Axes:
    """Share broken against the probability said, a calibrated judge dotted."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":")
    below = np.maximum(0, line["share_perturbed"] - line["share_perturbed_low"])
    above = np.maximum(0, line["share_perturbed_high"] - line["share_perturbed"])
    ax.errorbar(
        line["mean_p_flag"],
        line["share_perturbed"],
        yerr=[below, above],
        color=BLUE,
        marker="o",
        ms=4,
        lw=1.3,
        elinewidth=0.8,
    )
    return ax


def calibration_picture(calibration: pd.DataFrame, detection: pd.DataFrame) -> Picture:
    """Reliability of the scored reading, a panel per judge."""
    found = voices(calibration)
    titles = {}
    for voice in found:
        row = rows(voice.of(detection))[0]
        if not math.isnan(row["ece"]):
            titles[voice.name] = f"AUROC {row['auroc']:.2f} · ECE {row['ece']:.2f}"

    def draw(ax: Axes, voice: Voice) -> None:
        mine = voice.of(calibration)
        known = mine.dropna(subset=["mean_p_flag"])
        if len(known):
            reliability(ax, known)
        else:
            say_silent(ax, int(mine["n_without_verdict"].iloc[0]))
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        share_ticks(ax.xaxis)
        share_ticks(ax.yaxis)

    figure = None
    if found:
        figure, _ = grid(found, draw, height=2.5, titles=titles)
        figure.supxlabel("probability said that the step does not follow", fontsize=9)
        figure.supylabel("share replaced", fontsize=9)
    return Picture(
        "c2_calibration",
        "Do probabilities mean what they say?",
        "Steps by the probability that the scored reading gives to “does not follow”, in ten bins "
        "of equal width: the share of them that was replaced, with 95 % Wilson intervals. On the "
        "dotted line a judge is calibrated for these items, half of which are replaced.",
        calibration,
        figure,
        "No judge gave probabilities.",
    )


def against_names(table: pd.DataFrame) -> list[str]:
    """A judge with its reading, or a signal with its model where there are several."""
    judges = judge_names([r["name"] for r in rows(table) if r["kind"] == JUDGE])
    models = judge_names([r["name"] for r in rows(table) if r["kind"] != JUDGE])
    made = []
    for row in rows(table):
        signal = middle_cut(visible(row["signal"]).replace("_", " "), LONGEST)
        if row["kind"] == JUDGE:
            made.append(f"{judges[row['name']]} · {signal}")
        else:
            made.append(f"{signal} · {models[row['name']]}" if len(models) > 1 else signal)
    return made


def against_dots(ax: Axes, lines: Sequence[Mapping[str, Any]], measure: str, label: str) -> Axes:
    """One measure of judges and of signals, a line each."""
    nowhere = {c: math.nan for c in (measure, f"{measure}_low", f"{measure}_high")}
    of_judges = [r if r["kind"] == JUDGE else {**r, **nowhere} for r in lines]
    of_signals = [{**r, **nowhere} if r["kind"] == JUDGE else r for r in lines]
    for part, colour, marker, name in (
        (of_judges, BLUE, "o", "judge"),
        (of_signals, ORANGE, "D", "signal inside the model"),
    ):
        at = [(y, r) for y, r in enumerate(part) if not math.isnan(r[measure])]
        if at:
            ax.errorbar(
                [r[measure] for _, r in at],
                [y for y, _ in at],
                xerr=[
                    [max(0.0, r[measure] - r[f"{measure}_low"]) for _, r in at],
                    [max(0.0, r[f"{measure}_high"] - r[measure]) for _, r in at],
                ],
                fmt=marker,
                color=colour,
                ms=4.5,
                elinewidth=1,
                label=name,
            )
    for y, row in enumerate(lines):
        if math.isnan(row[measure]):
            asked = row["n" if measure == "auroc" else "n_chains"]
            said = "not asked" if math.isnan(asked) else "no verdict"
            ax.text(0.01, y, said, va="center", fontsize=8, color=GREY)
    share_axis(ax)
    ax.set_xlabel(label)
    ax.set_ylim(len(lines) - 0.5, -0.5)
    return ax


def against_picture(table: pd.DataFrame) -> Picture:
    """Judges and signals on the same broken steps: telling one, and finding it."""
    figure = None
    if len(table):
        lines, names = rows(table), against_names(table)
        figure = Figure(figsize=(9, 1.2 + 0.27 * len(lines)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        against_dots(left, lines, "auroc", "AUROC, replaced against original step")
        left.axvline(0.5, color=GREY, lw=0.8, ls="--")
        against_dots(right, lines, "exact", "share of chains with the right step named")
        for chance, mark, label in (
            ("exact_chance", "|", "named blindly"),
            ("exact_control", "x", "same step named in the intact chain"),
        ):
            at = [(r[chance], y) for y, r in enumerate(lines) if not math.isnan(r[chance])]
            if at:
                right.plot(*zip(*at, strict=True), ls="", marker=mark, color=GREY, label=label)
        judges = sum(r["kind"] == JUDGE for r in lines)
        if 0 < judges < len(lines):
            for ax in (left, right):
                ax.axhline(judges - 0.5, color=GREY, lw=0.8)
        name_lines(left, names)
        right.tick_params(axis="y", length=0)
        legend_above(figure, right if right.get_legend_handles_labels()[0] else left)
    return Picture(
        "c2_judge_against_internals",
        "Judges beside the model’s internals",
        "The same broken steps, asked of judges and read inside a model: how well replaced and "
        "original steps are told apart (left, .5 is chance), and how often the replaced step is "
        "the one named (right), with 95 % bootstrap intervals over chains. A cross near its dot "
        "means that the step is named whether it is broken or not.",
        table,
        figure,
        "Neither a judge nor a signal inside a model was asked.",
    )
