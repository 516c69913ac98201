"""The figures of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.axes import Sheet, legend_above, of_width, sheet, width
from faithscope.experiments.analysis.charts import dot_rows, dots_by, field, panels, scale_of_ranks
from faithscope.experiments.analysis.colours import AMBER, BLUE, FAMILY, GREY, MISSING, SIGN, Style
from faithscope.experiments.analysis.comparison.agreement import clustered
from faithscope.experiments.analysis.comparison.prose import UNITS, of_all
from faithscope.experiments.analysis.comparison.scores import COSTS
from faithscope.experiments.analysis.comparison.triangle import families_picture
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import count, numbers, only, where
from faithscope.experiments.analysis.wording import middle_cut
from faithscope.experiments.numerals import decimal

REVERSED = Style(AMBER, "X", "opposite signs, beyond chance")
MODELS = (
    " There are several models or tasks: measures that put these in one order are green, whatever "
    "they say of the traces of one of them."
)
MOST_MEASURES, MOST_NAMED = 60, 40
"""Number of measures up to a quarter of which the heat map prints coefficients; number of measures
that the AUROC figure shows."""
LETTER, BAR = 0.052, 0.6
"""Inches of a letter in the name of a measure, and of what tells the colours."""


def pictures(tables: Mapping[str, pd.DataFrame]) -> list[Picture]:
    """Every figure of a comparison; a figure without data says why it is not drawn."""
    return [
        families_picture(tables["agreement"]),
        heat_map(tables["agreement"]),
        _within(tables["agreement"]),
        _auroc(of_all(tables["against"])),
        _front(tables["front"]),
    ]


def heat_map(agreement: pd.DataFrame) -> Picture:
    figure, data = None, pd.DataFrame(columns=["measure", "other", "spearman"])
    known = agreement.dropna(subset=["spearman"])
    if len(known):
        names, rho = clustered(known)
        data = pd.DataFrame(
            [(a, b, rho[i, j]) for i, a in enumerate(names) for j, b in enumerate(names)],
            columns=list(data.columns),
        )
        few = len(names) <= MOST_MEASURES // 4
        with nullcontext() if few else of_width("page"):  # names alone would fill a column
            figure = _map_of(names, rho, decimal if few else None)
    return Picture(
        "agreement",
        "Which measures say the same",
        "Spearman's rank correlation over all traces that have both, each measure turned so that "
        "more of it says more faithful: green agrees, purple disagrees; grey is a pair with "
        "too few traces in common. Measures are in the order of a clustering by average linkage "
        "on 1 − rho." + (MODELS if len(known) and count(known["n_settings"] > 1) else ""),
        data,
        figure,
        "No two measures have enough traces in common.",
    )


def _map_of(names: Sequence[str], rho: np.ndarray, text: Callable[[float], str] | None) -> Sheet:
    # Names must leave room for squares, and these for what is in them. Of names that would take
    # more than the squares, those across are numbers, which stand beside the names down.
    square = 0.24 if text else 0.1
    squares, letters = 0.43 + square * len(names), LETTER * max(map(len, names))
    down = across = list(names)
    long = high = squares + letters
    if letters > max(squares, 1.3) or long > width():
        longest = max(12, int((width() - 0.43 - (square - 0.015) * len(names)) / LETTER) - 4)
        across = [str(k) for k in range(1, len(names) + 1)]
        down = [f"{middle_cut(n, longest)}  {k}" for n, k in zip(names, across, strict=True)]
        long, high = min(width(), squares + LETTER * (4 + longest)), squares + LETTER * 4
    figure = sheet(max(1.7, high) + BAR, max(2.4, long))
    field(
        *(figure.subplots(), rho, down, across),
        limits=(-1, 1),
        stops=SIGN,
        missing=MISSING,
        text=text,
        fontsize=6,
        rotation=90,
    )
    scale_of_ranks(figure)
    return figure


def _within(agreement: pd.DataFrame) -> Picture:
    known = agreement.dropna(subset=["spearman", "within"])
    figure = None
    if len(known):
        figure = sheet(3.3, 3.4)
        ax = figure.subplots()
        usual = Style(BLUE, "o", "a pair of measures")
        for style, of in ((usual, ~known["reversed"]), (REVERSED, known["reversed"])):
            part = known.loc[of]
            if len(part):
                look = {"ls": "", "marker": style.marker, "color": style.colour, "alpha": 0.6}
                ax.plot(part["spearman"], part["within"], label=style.label, ms=4, **look)
        ax.plot([-1, 1], [-1, 1], color=GREY, lw=0.8, ls=":", zorder=0)
        ax.axhline(0, color=GREY, lw=0.5)
        ax.axvline(0, color=GREY, lw=0.5)
        ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        ax.set(xlabel="rho over all traces", ylabel="rho within models and tasks")
        legend_above(figure, ax)
    names = ["measure", "other", "spearman", "within", "across", "reversed"]
    return Picture(
        "within",
        "Agreement over all traces, and within models",
        "A point per pair of measures. Off the dotted line the agreement is one of models, not of "
        "traces: a pair far right of it ranks models alike and traces of one model not.",
        only(known, names),
        figure,
        "No two measures vary within a model.",
    )


def _auroc(against: pd.DataFrame) -> Picture:
    known = against.dropna(subset=["auroc"])
    figure, best = None, ""
    if len(known):
        labels = list(dict.fromkeys(known["label"]))
        of_first = where(known, label=labels[0])
        first = of_first.head(MOST_NAMED)
        if len(of_first) > MOST_NAMED:
            best = f"; the best {MOST_NAMED} by the label {labels[0]}"
        names = {name: name for name in first["measure"]}
        columns = {
            label: dots_by(of, "auroc", "family", styles, "measure")
            for label in labels[:3]
            for of in [where(known, label=label, measure=names)]
            for styles in [{family: FAMILY[family] for family in of["family"]}]
        }
        figure = dot_rows(columns, names, label="AUROC; one half is chance", each=0.2)
    return Picture(
        "auroc",
        "Which measure tells the traces that a label speaks against",
        "Area under the ROC curve within models and tasks, with 95 % intervals (Newcombe's method "
        f"5, or DeLong's between questions if wider){best}. Directions were fixed before any "
        "data: below one half a measure points the wrong way.",
        known,
        figure,
        "No label has two kinds of traces within a model and task.",
    )


def _front(front: pd.DataFrame) -> Picture:
    keys = [cost for cost in COSTS if len(where(front, cost=cost))]
    label = next(iter(front["label"]), "")

    def draw(ax: Axes, cost: str) -> None:
        of = where(front, cost=cost, label=label)
        for family, style in FAMILY.items():
            part = where(of, family=family)
            if len(part):
                look = {"ls": "", "marker": style.marker, "color": style.colour, "alpha": 0.8}
                ax.plot(part["value"], part["auroc"], label=style.label, ms=5, **look)
        best = of.loc[of["on_front"]].sort_values("value")
        ax.plot(best["value"], best["auroc"], color=GREY, lw=1, drawstyle="steps-post", zorder=0)
        value = numbers(of["value"])
        if (value > 0).all() and np.ptp(value) > 0:
            ax.set_xscale("log")
        ax.axhline(0.5, color=GREY, lw=0.6, ls=":")
        ax.set(ylim=(-0.03, 1.03), xlabel=f"{UNITS[cost]} a trace")

    figure = panels(
        *(keys, draw, ["" for _ in keys]), height=3.0, shared=False, labels=("", "AUROC")
    )
    return Picture(
        "front",
        "Quality against cost",
        f"Each measure's AUROC against {label or 'the first label'}, by what it costs a trace; the "
        "line joins those that no cheaper measure equals. Costs that nobody counted are not drawn.",
        front,
        figure,
        "No label of two kinds, or no known cost.",
    )
