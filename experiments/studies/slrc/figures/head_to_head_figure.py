"""Which measures agree, over items and over the steps within an item."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes

from faithscope.experiments.analysis.charts import INK_ON_DARK, INK_ON_PALE
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import panels
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.studies.slrc.tables.head_to_head import ORDER

NONE = "#DDDDDD"
NAMES = {
    "necessity_generated": "necessity",
    "necessity_scored": "necessity, scored",
    "slrc_generated": "SLRC",
    "slrc_scored": "SLRC, scored",
    "regenerate_generated": "regenerated",
    "regenerate_scored": "regenerated, scored",
    "graded_necessity": "graded necessity",
    "removed_tv": "total variation",
    "nldd": "NLDD",
    "nldd_own": "NLDD, own answer",
    "tts": "TTS",
}


def agreement_map(ax: Axes, table: pd.DataFrame, names: Sequence[str]) -> Axes:
    """A square for every two of the named measures, of one model and task.

    Above the diagonal the rank correlation over items, below it the mean one of the steps
    within an item; a grey square where there is none.
    """
    cells = np.full((len(names), len(names)), math.nan)
    for row in rows(table):
        i, j = names.index(row["measure"]), names.index(row["other"])
        cells[i, j], cells[j, i] = row["spearman"], row["step_spearman"]
    # of the map, not of the axes: a page takes the grounds of axes away
    ax.imshow(cells, cmap=colormaps["PuOr_r"].with_extremes(bad=NONE), vmin=-1, vmax=1)
    for i, j in zip(*np.nonzero(~np.isnan(cells)), strict=True):
        ink = INK_ON_DARK if abs(cells[i, j]) > 0.6 else INK_ON_PALE
        text = f"{round(float(cells[i, j]), 2) + 0.0:.2f}".replace("0.", ".", 1)
        ax.text(j, i, text, ha="center", va="center", fontsize=5.5, color=ink)
    labels = [NAMES[name] for name in names]
    ax.set_xticks(range(len(names)), labels, rotation=45, ha="right", fontsize=7)
    ax.set_yticks(range(len(names)), labels, fontsize=7)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def head_to_head_picture(table: pd.DataFrame) -> Picture:
    """One map per model and task."""
    data = where(table, framing="prefix")
    figure = None
    if len(data):
        # the same of all panels: their rows have one set of names
        present = {*data["measure"], *data["other"]}
        names = [name for name in ORDER if name in present]
        draw = partial(agreement_map, names=names)
        figure, _ = panels(data, draw, across=2, width=4.1, height=3.9)
    return Picture(
        "head_to_head",
        "Do the measures agree?",
        "Spearman’s rank correlation of every two measures: over items above the diagonal, over "
        "the steps within an item (mean of the items) below it. Grey where a measure says the "
        "same of all, or where SLRC has no number of a single step. Items of one mechanism "
        "differ by chance alone: which measure to trust is told by models of known truth, not "
        "by agreement. Intervals are in the table.",
        data,
        figure,
        "No two measures were taken of the same items.",
    )
