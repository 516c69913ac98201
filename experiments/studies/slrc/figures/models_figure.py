"""Models against each other, open and closed ones, as the SLRC paper's Figure 3 sets them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.by_unit import UNIT_WORDS
from faithscope.experiments.analysis.charts import (
    BLUE,
    ORANGE,
    Style,
    names_beside,
    panels,
    points,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.short_names import short_names
from faithscope.experiments.analysis.tidy import rows, where, with_interval
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.studies.slrc.figures.model_reading import NAMES, lead_way, signed
from faithscope.experiments.studies.slrc.tables.model_correlations import FIGURE_3
from faithscope.experiments.studies.slrc.tables.models import SCORES

PANELS = (*FIGURE_3, ("ris", "youden"))
"""The paper's three, and error detection less false alarms, which the paper did not ask for."""
KINDS = {
    True: Style(BLUE, "o", "weights at hand"),
    False: Style(ORANGE, "D", "asked over an API"),
}
"""By whether a model is open."""
_LEAST_SPAN = 0.1
"""Of an axis: models that all say nearly the same are not drawn as if far apart."""


def models_picture(models: pd.DataFrame, correlations: pd.DataFrame) -> Picture:
    """SLRC against sycophancy, and SLRC and RIS against error detection, over models."""
    way = lead_way(models)
    columns = ["model", "framing", "reading", "open", "tasks", *with_interval(*SCORES)]
    data = where(models, **way).filter(items=columns) if way else models.filter(items=columns)
    data = data.sort_values(by="model", key=lambda c: c.map(model_order), kind="stable")
    shown = [(x, y) for x, y in PANELS if len(data.dropna(subset=[x, y])) > 1]
    names = short_names(data["model"].tolist())

    def draw(ax: Axes, scores: tuple[str, str]) -> None:
        x, y = scores
        known = data.dropna(subset=[x, y])
        for is_open, style in KINDS.items():
            if len(own := where(known, open=is_open)):
                points(ax, own, x, y, style)
        ax.set(xlabel=NAMES[x], ylabel=NAMES[y], xlim=_limits(known, x), ylim=_limits(known, y))
        named = [names[m] for m in known["model"]]
        names_beside(ax, known[x].tolist(), known[y].tolist(), named)

    of_way = where(correlations, **way)
    titles = [_title(of_way, x, y) for x, y in shown]
    height, widths = max(3.7, 0.15 * len(data)), {1: 4.9, 2: 9.8}
    return Picture(
        "models",
        "Models compared",
        "Does a model that uses its steps give in to a wrong answer, and does it find an error "
        "(SLRC, Figure 3)? A point is a model, the mean over its tasks, with 95 % bootstrap "
        f"intervals over items; {_way_words(way)}. RIS = SLRC × (1 − sycophancy). r is Pearson’s "
        "with Fisher’s interval, ρ Spearman’s; p-values are of permutations of the models, each "
        "of one pair alone.",
        data,
        panels(shown, draw, titles, height=height, across=2, widths=widths, shared=False),
        "No two models have both of any two of these numbers.",
    )


def _way_words(way: dict[str, str]) -> str:
    if not way:
        return "no way of measuring"
    unit = f", chains cut into {UNIT_WORDS[way['unit']]}" if "unit" in way else ""
    return f"framing {way['framing']}, reading {way['reading']}{unit}"


def _title(correlations: pd.DataFrame, x: str, y: str) -> str:
    """Two lines: what is drawn, and what it comes to."""
    of_method = {r["method"]: r for r in rows(where(correlations, x=x, y=y))}
    r, rho = of_method["pearson"], of_method["spearman"]
    head = f"{NAMES[x]} and {NAMES[y]}, n = {r['n']}"
    if math.isnan(r["r"]):
        return f"{head}\n{r['caution']}"
    interval = "" if math.isnan(r["r_low"]) else f" [{signed(r['r_low'])}, {signed(r['r_high'])}]"
    pearson = f"r = {signed(r['r'])}{interval}, {_p(r['p_permutation'])}"
    return f"{head}\n{pearson}; ρ = {signed(rho['r'])}, {_p(rho['p_permutation'])}"


def _p(value: float) -> str:
    return "p < .001" if value < 0.001 else f"p = {f'{value:.3f}'.removeprefix('0')}"


def _limits(models: pd.DataFrame, score: str) -> tuple[float, float]:
    """From the least to the greatest score, with room at both ends."""
    low, high = float(np.min(models[score])), float(np.max(models[score]))
    half = 0.6 * max(high - low, _LEAST_SPAN)
    return (low + high) / 2 - half, (low + high) / 2 + half
