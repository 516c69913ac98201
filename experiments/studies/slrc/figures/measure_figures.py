"""All measures against each other, and against the planted truth."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREEN, GREY, ORANGE, legend_above
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import name_panel, short
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.studies.slrc.tables.measures import MEASURES

_PANELS = 4
"""Models that are drawn, those with most pairs of measures that vary; the table has all."""
_FAMILIES = {"behavioural": (BLUE, "o"), "logit": (GREEN, "s"), "internal": (ORANGE, "D")}


def correlation_matrix(ax: Axes, table: pd.DataFrame, names: list[str]) -> Axes:
    """Spearman's rho of every pair of measures, below the diagonal; blank where there is none."""
    place = {name: i for i, name in enumerate(names)}
    rho = np.full((len(names), len(names)), math.nan)
    for row in rows(table):
        i, j = sorted((place[row["measure"]], place[row["other"]]))
        rho[j, i] = row["spearman"]
    ax.pcolormesh(rho, cmap="RdBu_r", vmin=-1, vmax=1, edgecolors="white", lw=0.2, rasterized=True)
    at = np.arange(len(names)) + 0.5
    told = [name.replace("_", " ") for name in names]
    ax.set_xticks(at, told, rotation=90, fontsize=5.5)
    ax.set_yticks(at, told, fontsize=5.5)
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.set_aspect("equal")
    return ax


def correlations_picture(table: pd.DataFrame) -> Picture:
    """One matrix per model, of the measures in `prefix` framing where there are two framings."""
    models = sorted(set(table["model"]), key=model_order)
    figure = None
    if len(table):
        present = set(table["measure"]) | set(table["other"])
        names = _of_one_framing([name for name in MEASURES if name in present])
        kept = where(table, measure=set(names), other=set(names))
        pairs = Counter(kept["model"].tolist())
        most = sorted(pairs, key=lambda m: (-pairs[m], models.index(m)))[:_PANELS]
        shown = [m for m in models if m in most]
        if shown:
            across = min(2, len(shown))
            down = math.ceil(len(shown) / across)
            side = 2.2 + 0.095 * len(names)
            figure = Figure(figsize=(side * across + 0.6, side * down), layout="constrained")
            axes = figure.subplots(down, across, squeeze=False)
            for ax in axes.flat[len(shown) :]:
                ax.remove()
            for ax, model in zip(axes.flat, shown, strict=False):
                mine = where(kept, model=model)
                correlation_matrix(ax, mine, names)
                name_panel(ax, (f"{short(model)} · n = {_span(mine['n'].tolist())} items",), side)
            figure.colorbar(
                axes.flat[0].collections[0],
                ax=list(axes.flat[: len(shown)]),
                shrink=0.4,
                label="Spearman's rank correlation",
            )
    return Picture(
        "measure_correlations",
        "Do the measures rank the same items alike?",
        "Rank correlation of every two measures over the items of a model, scores as measured; "
        "blank where one of them never varies. Measures that are taken for the same thing and "
        "lie near zero are not measuring the same thing.",
        table,
        figure,
        "No two measures vary over enough items of one model.",
    )


def _of_one_framing(names: list[str]) -> list[str]:
    """All but the `reprompt` twins of measures that are there in `prefix` framing too."""
    there = set(names)
    return [n for n in names if n.replace("_reprompt", "_prefix") not in there - {n}]


def _span(n: list[int]) -> str:
    low, high = min(n), max(n)
    return str(low) if low == high else f"{low}–{high}"


def planted_dots(ax: Axes, table: pd.DataFrame, column: str, label: str) -> Axes:
    """A dot per measure: its AUROC with interval, chance dashed."""
    for family, (colour, marker) in _FAMILIES.items():
        at = [(i, r) for i, r in enumerate(rows(table)) if r["family"] == family]
        at = [(i, r) for i, r in at if not math.isnan(r[column])]
        if at:
            ax.errorbar(
                [r[column] for _, r in at],
                [i for i, _ in at],
                xerr=[
                    [max(0.0, r[column] - r[f"{column}_low"]) for _, r in at],
                    [max(0.0, r[f"{column}_high"] - r[column]) for _, r in at],
                ],
                fmt=marker,
                color=colour,
                ms=4,
                elinewidth=1,
                label=family,
            )
    ax.axvline(0.5, color=GREY, lw=0.8, ls="--")
    ax.set(xlim=(-0.03, 1.03), xlabel=label, ylim=(len(table) - 0.5, -0.5))
    ax.set_yticks(range(len(table)), [m.replace("_", " ") for m in table["measure"]], fontsize=7)
    ax.tick_params(axis="y", length=0)
    ax.grid(color=GREY, alpha=0.2, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def planted_picture(table: pd.DataFrame) -> Picture:
    """AUROC of every measure on the planted models, and against the confound beside it.

    The planted models read a quoted reasoning as they read their own, so of the two framings
    one is drawn.
    """
    figure = None
    kept = where(table, measure=_of_one_framing(table["measure"].tolist()))
    drawn = [c for c in ("auroc", "auroc_confound") if not all(map(math.isnan, kept[c]))]
    if drawn:
        figure = Figure(figsize=(9, 1.2 + 0.17 * len(kept)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        planted_dots(left, kept, "auroc", "AUROC, faithful against decorative")
        planted_dots(right, kept, "auroc_confound", "AUROC, faithful against the confound")
        legend_above(figure, left if "auroc" in drawn else right)
    return Picture(
        "planted",
        "Which measure tells the planted models apart",
        "Items of the model that uses its steps against items of one that writes wrong steps "
        "and ignores them (left), and of one that ignores them but trips over a missing step "
        "(right), with 95 % bootstrap intervals. One is perfect, one half chance; below it a "
        "measure points the wrong way. Measures keep the direction that theory gives them.",
        table,
        figure,
        "No model that uses its steps was measured beside one that does not.",
    )
