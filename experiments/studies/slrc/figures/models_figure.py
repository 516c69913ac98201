"""Models against each other, open and closed ones, as the SLRC paper's Figure 3 sets them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from faithscope.experiments.analysis.by_unit import UNIT_WORDS
from faithscope.experiments.analysis.charts import BLUE, GREY, ORANGE, legend_above
from faithscope.experiments.analysis.label_places import distinct_names, name_points
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows, where, with_interval
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.studies.slrc.figures.model_reading import NAMES, lead_way, signed
from faithscope.experiments.studies.slrc.tables.model_correlations import FIGURE_3
from faithscope.experiments.studies.slrc.tables.models import SCORES

PANELS = (*FIGURE_3, ("ris", "youden"))
"""The paper's three, and error detection less false alarms, which the paper did not ask for."""
KINDS = {True: (BLUE, "o", "weights at hand"), False: (ORANGE, "D", "asked over an API")}
"""Colour, marker and meaning, by whether a model is open."""
_WIDTH, _HEIGHT = 4.9, 3.7
_LEAST_SPAN = 0.1
"""Of an axis: models that all say nearly the same are not drawn as if far apart."""


def model_scores(
    ax: Axes, models: pd.DataFrame, x: str, y: str, correlations: pd.DataFrame
) -> Axes:
    """Every model as a named point with its 95 % intervals; the correlations in the title.

    Args:
        models: of one framing and reading, those that have both scores.
        correlations: of the same framing and reading.
    """
    for is_open, (colour, marker, label) in KINDS.items():
        points = rows(where(models, open=is_open))
        if not points:
            continue
        at = [p[x] for p in points], [p[y] for p in points]
        across, up = _reach(points, x), _reach(points, y)
        thin = {"ecolor": colour, "elinewidth": 0.6, "alpha": 0.35}
        ax.errorbar(*at, xerr=across, yerr=up, fmt="none", **thin)
        ax.plot(*at, ls="", marker=marker, color=colour, label=label)
    for axis, set_limits, name in ((ax.xaxis, ax.set_xlim, x), (ax.yaxis, ax.set_ylim, y)):
        set_limits(*_limits(models, name))
        _ticks(axis)
    ax.set(xlabel=NAMES[x], ylabel=NAMES[y])
    ax.set_title(_title(correlations, x, y), fontsize=8.5)
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def models_picture(models: pd.DataFrame, correlations: pd.DataFrame) -> Picture:
    """SLRC against sycophancy, and SLRC and RIS against error detection, over models."""
    way = lead_way(models)
    columns = ["model", "framing", "reading", "open", "tasks", *with_interval(*SCORES)]
    data = where(models, **way).filter(items=columns) if way else models.filter(items=columns)
    data = data.sort_values(by="model", key=lambda c: c.map(model_order), kind="stable")
    shown = [(x, y) for x, y in PANELS if len(data.dropna(subset=[x, y])) > 1]
    figure = None
    if shown:
        across = min(2, len(shown))
        down = math.ceil(len(shown) / across)
        figure = Figure(figsize=(_WIDTH * across, 0.5 + _HEIGHT * down), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False)
        for ax in axes.flat[len(shown) :]:
            ax.remove()
        named = list(zip(axes.flat, shown, strict=False))
        said = where(correlations, **way)
        for ax, (x, y) in named:
            model_scores(ax, data.dropna(subset=[x, y]), x, y, said)
        legend_above(figure, axes[0, 0])
        figure.draw_without_rendering()
        for ax, (x, y) in named:
            points = data.dropna(subset=[x, y])
            names = distinct_names(points["model"].tolist())
            name_points(ax, points[x].tolist(), points[y].tolist(), names)
    return Picture(
        "models",
        "Models compared",
        "Does a model that uses its steps give in to a wrong answer, and does it find an error "
        "(SLRC, Figure 3)? A point is a model, the mean over its tasks, with 95 % bootstrap "
        f"intervals over items; {_told(way)}. RIS = SLRC × (1 − sycophancy). r is Pearson’s with "
        "Fisher’s interval, ρ Spearman’s; p-values are of permutations of the models, each of one "
        "pair alone.",
        data,
        figure,
        "No two models have both of any two of these numbers.",
    )


def _told(way: dict[str, str]) -> str:
    if not way:
        return "no way of measuring"
    unit = f", chains cut into {UNIT_WORDS[way['unit']]}" if "unit" in way else ""
    return f"framing {way['framing']}, reading {way['reading']}{unit}"


def _title(correlations: pd.DataFrame, x: str, y: str) -> str:
    """Two lines: what is drawn, and what it comes to."""
    said = {r["method"]: r for r in rows(where(correlations, x=x, y=y))}
    r, rho = said["pearson"], said["spearman"]
    head = f"{NAMES[x]} and {NAMES[y]}, n = {r['n']}"
    if math.isnan(r["r"]):
        return f"{head}\n{r['caution']}"
    interval = "" if math.isnan(r["r_low"]) else f" [{signed(r['r_low'])}, {signed(r['r_high'])}]"
    pearson = f"r = {signed(r['r'])}{interval}, {_p(r['p_permutation'])}"
    return f"{head}\n{pearson}; ρ = {signed(rho['r'])}, {_p(rho['p_permutation'])}"


def _p(value: float) -> str:
    return "p < .001" if value < 0.001 else f"p = {f'{value:.3f}'.removeprefix('0')}"


def _reach(points: list[dict[str, Any]], name: str) -> list[list[float]]:
    """How far an interval goes below and above; not at all where there is none."""
    found = np.array(
        [[p[name] - p[f"{name}_low"], p[f"{name}_high"] - p[name]] for p in points], dtype=float
    )
    return np.nan_to_num(found).clip(0).T.tolist()


def _limits(models: pd.DataFrame, name: str) -> tuple[float, float]:
    """From the least to the greatest score, with room for names around them.

    Little of what no score can be: a share is in [0, 1].
    """
    values = np.asarray(models[name], dtype=float)
    low, high = float(values.min()), float(values.max())
    middle, half = (low + high) / 2, max(high - low, _LEAST_SPAN) / 2
    least = -1 if name == "youden" else 0
    return (
        max(middle - 1.35 * half, least - 0.16 * half),
        min(middle + 1.35 * half, 1 + 0.16 * half),
    )


def _ticks(axis: Axis) -> None:
    axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))


def _tick(value: float) -> str:
    """Empty past what a share can be."""
    if not -1 - 1e-9 <= value <= 1 + 1e-9:
        return ""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−") if value % 1 else f"{value:.0f}"
