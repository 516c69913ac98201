"""Judges beside the signals inside a model, on the same broken steps (ours)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREY, ORANGE, legend_above
from faithscope.experiments.analysis.dots import name_lines, share_axis
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.short_names import LONGEST, middle_cut, short_names
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.c2faith.metrics.internals import JUDGE


def against_names(table: pd.DataFrame) -> list[str]:
    """A judge with its reading, or a signal with its model where there are several."""
    judges = short_names([r["name"] for r in rows(table) if r["kind"] == JUDGE])
    models = short_names([r["name"] for r in rows(table) if r["kind"] != JUDGE])
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
            ("exact_chance_middle", "2", "blindly, among the steps that may be replaced"),
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
