"""RF step by step beside RF of whole blocks (RFEval, Table 27)."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.charts import BLUE, ORANGE, legend_above
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.studies.rfeval.figures.plots import crossed, share_lines


def per_step_picture(table: pd.DataFrame, ranks: pd.DataFrame) -> Picture:
    """Table 27: RF taken step by step beside RF of whole blocks."""
    styles = {"rf": (BLUE, "o", "whole blocks"), "rf_per_step": (ORANGE, "s", "step by step")}
    figure = None
    if len(table):

        def draw(ax: Axes, lines: list[dict | None]) -> None:
            share_lines(ax, lines, styles, "no steps judged")

        figure = crossed(table, draw, each=0.24, label="RF, share of pairs in contrast")
        legend_above(figure, figure.axes[0])
    return Picture(
        "rf_per_step",
        "Is faithfulness the same when every step is judged?",
        "RF of the same pairs twice: with stances of whole blocks (r, e, a), and with one of "
        "every step of the reasoning, where all transitions have to hold; 95 % Wilson intervals "
        f"over pairs. {ranks_told(ranks)}",
        table,
        figure,
        "Steps were not judged by themselves.",
    )


def ranks_told(ranks: pd.DataFrame) -> str:
    """Whether both order the tasks alike, in a sentence."""
    known = ranks.dropna(subset=["spearman"])
    if not len(known):
        return ""
    low, high = (float(getattr(known["spearman"], of)()) for of in ("min", "max"))
    said = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
    models = "the model" if len(known) == 1 else f"{len(known)} models"
    return f"Rank correlation of the two over the tasks of {models}: {said}.".replace("-", "−")
