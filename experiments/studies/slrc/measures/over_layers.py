"""What measures of every layer share: a section of the page, curves over depth."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.charts import GREY
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.plots import LINES, share_ticks, short
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import distinct, rows, where
from faithscope.experiments.analysis.wording import model_order


def by_depth(ax: Axes, table: pd.DataFrame, measure: str) -> Axes:
    """A line per model and task over depth, with its 95 % interval as a band."""
    pairs = sorted(distinct(table, "model", "task"), key=lambda p: model_order(p["model"]))
    for i, pair in enumerate(pairs):
        colour, marker = LINES[i % len(LINES)]
        line = rows(where(table, **pair))
        x = [r["depth"] for r in line]
        label = f"{short(pair['model'])} · {visible(pair['task'])}"
        ax.plot(x, [r[measure] for r in line], f"{marker}-", color=colour, lw=1, ms=4, label=label)
        low, high = ([r[f"{measure}_{end}"] for r in line] for end in ("low", "high"))
        ax.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1.02), xlabel="depth (layer over layers)")
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


LAYERS = Section(
    "layers",
    "By layer",
    "Inside the model, at the token whose logits give the answer's first token (§2.7). Depth is "
    "the layer over the number of layers; the embeddings are layer 0 and count for neither.",
)
