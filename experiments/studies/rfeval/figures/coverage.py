"""RF by quartile of contrast coverage (RFEval, appendix E, Figures 9 and 10, Table 16)."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREY, PURPLE
from faithscope.experiments.analysis.panels import behind, curve, grid
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import share_ticks
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.rfeval.figures.plots import in_a_row, model_names, task_names
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL

LABELS = ("quartile of contrast coverage, 1 the lowest", "RF")
OF = {
    "model": ("tasks of each model", "the tasks of a model", "No model was judged on two tasks."),
    "task": ("models on each task", "the models on a task", "No task was judged of two models."),
}
"""What is binned: in the title, in the caption, and why there may be nothing."""


def quartiles_picture(quartiles: pd.DataFrame, by: str) -> Picture:
    """Figures 9 (`by` is `model`) and 10 (`task`): a panel per group, the others behind it."""
    title, told, absent = OF[by]
    mine = where(quartiles, by=by)
    several = mine.groupby("group")["quartile"].nunique() if len(mine) else pd.Series(dtype=int)
    data = where(mine, group=set(several.loc[several > 1].index))
    return Picture(
        f"rf_quartiles_{by}",
        f"Does faithfulness change with coverage? The {title}",
        f"RF of {told}, binned by their contrast coverage and weighted by pairs, with 95 % Wilson "
        "bands over pairs; the other panels pale. Bins are of few cells each: at most "
        f"{_most_cells(data)} here, and what tells the bins apart is which cells fell into them.",
        data,
        _drawn(data, by) if len(data) else None,
        absent,
    )


def _most_cells(data: pd.DataFrame) -> int:
    own = data.loc[data["group"] != OVERALL]
    return int(own["n_cells"].max()) if len(own) else 0


def _drawn(data: pd.DataFrame, by: str) -> Figure:
    names = (model_names if by == "model" else task_names)(data["group"])
    names.pop(OVERALL, None)
    if OVERALL in set(data["group"]):
        names = {OVERALL: f"all {by}s pooled", **names} if len(names) > 1 else names
    found = {g: where(data, group=g).sort_values("quartile") for g in names}

    def draw(ax: Axes, group: str) -> None:
        others = [line for g, line in found.items() if g not in (group, OVERALL)]
        behind(ax, others, "quartile", "rf")
        curve(ax, found[group], "quartile", "rf", PURPLE if group == OVERALL else BLUE)
        ax.set(xlim=(0.7, 4.3), ylim=(-0.03, 1.03), xticks=[1, 2, 3, 4])
        share_ticks(ax.yaxis)
        ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)

    across = in_a_row(len(names))
    return grid(list(names), draw, list(names.values()), height=1.5, across=across, labels=LABELS)
