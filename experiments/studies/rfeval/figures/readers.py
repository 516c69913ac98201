"""How far readers of stances agree, with each other and with people (RFEval, appendix D.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREY, ORANGE, PURPLE, legend_above
from faithscope.experiments.analysis.dots import bare_rows, name_lines, share_axis
from faithscope.experiments.analysis.panels import PALE, grid
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.short_names import short_names
from faithscope.experiments.analysis.stats import wilson_of_items
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import (
    columns,
    distinct,
    numbers,
    rows,
    where,
    with_interval,
)
from faithscope.experiments.studies.rfeval.metrics.frames import STANCES

PARTS = {
    "baseline_r": "own output: reasoning",
    "baseline_e": "own output: explanation",
    "baseline_a": "own output: answer",
    "intervened_r_prime": "under r′: r′ itself",
    "intervened_r": "under r′: reasoning",
    "intervened_e": "under r′: explanation",
    "intervened_a": "under r′: answer",
    "all": "all parts",
}
POOLED = ["reader", "other", "part", "n_models", "n", "n_unread", *with_interval("agreement")]
POOLED += ["cohen_kappa_mean"]


def pooled_readers(readers: pd.DataFrame) -> pd.DataFrame:
    """Every two readers over all models: agreement weighted by parts, the mean of the kappas.

    The interval is Wilson's, of parts; the same item under two models counts twice.
    """
    made = []
    for of in distinct(readers, "reader", "other", "part"):
        mine = where(readers, **of)
        n = numbers(mine["n"])
        share = float(numbers(mine["agreement"]) @ n / n.sum()) if n.sum() else math.nan
        kappas = numbers(mine["cohen_kappa"])
        known = kappas[~np.isnan(kappas)]
        row = {**of, "n_models": len(mine), "n": int(n.sum())}
        row |= {"n_unread": int(numbers(mine["n_unread"]).sum())}
        row |= columns("agreement", wilson_of_items(share, int(n.sum())))
        made.append(row | {"cohen_kappa_mean": known.mean() if len(known) else math.nan})
    return pd.DataFrame(made, columns=POOLED)


def readers_picture(readers: pd.DataFrame) -> Picture:
    """Every two readers of the same parts, a panel each."""
    data = pooled_readers(readers)
    return Picture(
        "rf_readers",
        "Do readers of stances agree?",
        "Of the parts that both readers have read, the share on which they say the same stance, "
        "over all models with its 95 % Wilson interval, and Cohen’s κ, which takes chance off "
        "(mean over models); pale, each model by itself. Readers that read nothing in common "
        "have no panel.",
        data,
        _readers_drawn(readers, data) if len(data) else None,
        "There were no two readers of the same parts.",
    )


def _readers_drawn(readers: pd.DataFrame, pooled: pd.DataFrame) -> Figure:
    pairs = [(p["reader"], p["other"]) for p in distinct(pooled, "reader", "other")]
    parts = [p for p in (*STANCES, "all") if p in set(pooled["part"])]
    least = float(np.nanmin([0.0, *numbers(readers["cohen_kappa"])]))
    names = short_names([reader for pair in pairs for reader in pair])

    def draw(ax: Axes, pair: tuple[str, str]) -> None:
        of = {"reader": pair[0], "other": pair[1]}
        mine = {r["part"]: r for r in rows(where(pooled, **of))}
        single = where(readers, **of)
        if len(set(single["model"])) > 1:
            for row in rows(single):
                y = parts.index(row["part"])
                ax.plot(row["agreement"], y - 0.16, "o", color=PALE, ms=3, zorder=1)
                ax.plot(row["cohen_kappa"], y + 0.16, "D", color=PALE, ms=2.6, zorder=1)
        agreement_dots(ax, parts, mine, least)

    titles = [f"{names[a]}\nand {names[b]}" for a, b in pairs]
    figure = grid(
        pairs,
        draw,
        titles,
        height=0.6 + 0.27 * len(parts),
        widths={1: 6.5, 2: 8.5},
        labels=("agreement, and Cohen’s κ", ""),
    )
    legend_above(figure, figure.axes[0])
    return figure


def agreement_dots(
    ax: Axes, parts: list[str], rows_of: Mapping[str, Mapping[str, Any]], least: float = 0.0
) -> Axes:
    """Agreement with its interval and κ, a line per part; the axis begins at `least` or at 0."""
    at = [(y, rows_of[p]) for y, p in enumerate(parts) if p in rows_of]
    value = [r["agreement"] for _, r in at]
    low = [max(0.0, r["agreement"] - r["agreement_low"]) for _, r in at]
    high = [max(0.0, r["agreement_high"] - r["agreement"]) for _, r in at]
    ys = [y - 0.16 for y, _ in at]
    ax.errorbar(
        value, ys, xerr=[low, high], fmt="o", color=BLUE, ms=4.5, elinewidth=1, label="agreement"
    )
    kappas = [(y + 0.16, r["cohen_kappa_mean"]) for y, r in at]
    known = [(k, y) for y, k in kappas if not math.isnan(k)]
    if known:
        ax.plot(*zip(*known, strict=True), "D", color=ORANGE, ms=4, label="Cohen’s κ")
    for y, k in kappas:
        if math.isnan(k):
            ax.text(0.01, y, "κ undefined", va="center", fontsize=6.5, color=GREY)
    share_axis(ax, least)
    ax.set_ylim(len(parts) - 0.5, -0.5)
    name_lines(ax, [PARTS[p] for p in parts])
    bare_rows([ax])
    return ax


def evaluator_picture(validation: pd.DataFrame) -> Picture:
    """Evaluator against people (appendix D.4)."""
    return Picture(
        "rf_evaluator",
        "Does the judge agree with people?",
        "The judge’s labels against those of people: micro-F1 over all labels with its 95 % "
        "Wilson interval, pale against each person alone; Cohen’s κ of the judge with people, "
        "and of people among themselves, which is as much as can be asked of a judge.",
        validation,
        _evaluator_drawn(validation) if len(validation) else None,
        "No labels by people were given.",
    )


def _evaluator_drawn(validation: pd.DataFrame) -> Figure:
    decisions = [d["decision"] for d in distinct(validation, "decision")]
    figure = Figure(figsize=(9, 1.3 + 0.5 * len(decisions)), layout="constrained")
    ax = figure.subplots()
    least = 0.0
    for y, decision in enumerate(decisions):
        mine = where(validation, decision=decision)
        first = y == 0
        f1 = where(mine, statistic="micro_f1")
        for row in rows(f1.loc[f1["annotator"] != "all"]):
            ax.plot(row["value"], y - 0.24, "o", color=PALE, ms=3.5, zorder=1)
        for row in rows(where(f1, annotator="all").dropna(subset=["value"])):
            reach = [[row["value"] - row["value_low"]], [row["value_high"] - row["value"]]]
            label = "micro-F1 of the judge" if first else None
            ax.errorbar(
                row["value"], y - 0.24, xerr=reach, fmt="o", color=BLUE, ms=4.5, label=label
            )
        for statistic, apart, colour, marker, label in (
            ("kappa_human_evaluator", 0.0, ORANGE, "D", "κ, judge and people"),
            ("kappa_human_human", 0.24, PURPLE, "^", "κ, people among themselves"),
        ):
            for row in rows(where(mine, statistic=statistic)):
                if math.isnan(row["value"]):
                    said = f"{label}: {row['reason']}"
                    ax.text(0.01, y + apart, said, va="center", fontsize=7, color=GREY)
                else:
                    ax.plot(row["value"], y + apart, marker, color=colour, ms=4.5)
                    least = min(least, row["value"])
            if first:
                ax.plot([], [], ls="", marker=marker, color=colour, label=label)
    share_axis(ax, least)
    ax.set_ylim(len(decisions) - 0.5, -0.5)
    name_lines(ax, [visible(d).replace("_", " ") for d in decisions])
    ax.set_xlabel("micro-F1, and Cohen’s κ")
    legend_above(figure, ax)
    return figure
