"""Accuracy against RF (RFEval, section 5, A4, Figure 6)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from faithscope.experiments.analysis.charts import GREY, legend_above
from faithscope.experiments.analysis.dots import share_axis
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import share_ticks
from faithscope.experiments.analysis.stats import wilson_of_items
from faithscope.experiments.analysis.tidy import columns, numbers, rows, where
from faithscope.experiments.studies.rfeval.figures.plots import STYLES, model_names, task_names
from faithscope.experiments.studies.rfeval.metrics.frames import CONDITIONS

OF = {"baseline": "model’s own answers", "intervened": "answers under r′"}


def with_intervals(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that have both numbers, RF with its Wilson interval."""
    known = cells.dropna(subset=["accuracy", "rf"])
    made = [r | columns("rf", wilson_of_items(float(r["rf"]), int(r["n"]))) for r in rows(known)]
    return pd.DataFrame(made, columns=[*cells.columns, "rf_low", "rf_high"])


def accuracy_picture(cells: pd.DataFrame, association: pd.DataFrame) -> Picture:
    """Figure 6, for the model's own answers and for those under r′."""
    data = with_intervals(cells)
    return Picture(
        "rf_accuracy",
        "Does accuracy tell of faithfulness?",
        "A point is a model on a task, larger with more pairs; RF with its 95 % Wilson interval. "
        "Line: weighted least squares without effects. In the titles the weighted correlation "
        "with a constant for each model and each task held fixed, with its bootstrap interval "
        "over cells. Under r′, which leads to a wrong answer, who follows it faithfully is wrong.",
        data,
        _drawn(data, association) if len(data) else None,
        "No model has both accuracy and RF on any task.",
    )


def accuracy_points(ax: Axes, cells: pd.DataFrame, tasks: dict[str, str]) -> Axes:
    """RF against accuracy, a colour and a marker per task."""
    most = numbers(cells["n"]).max()
    for i, task in enumerate(tasks):
        mine = where(cells, task=task)
        if not len(mine):
            continue
        colour, marker = STYLES[i % len(STYLES)]
        x, y = numbers(mine["accuracy"]), numbers(mine["rf"])
        reach = [y - numbers(mine["rf_low"]), numbers(mine["rf_high"]) - y]
        many = len(cells) > 20
        thin = {"ecolor": colour, "elinewidth": 0.6, "alpha": 0.3 if many else 0.6}
        ax.errorbar(x, y, yerr=np.clip(reach, 0, None), fmt="none", **thin)
        sizes = 12 + 48 * numbers(mine["n"]) / most
        ax.scatter(x, y, s=sizes, c=colour, marker=marker, lw=0, alpha=0.85)
    share_axis(ax)
    share_ticks(ax.yaxis)
    ax.set_ylim(-0.03, 1.03)
    ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)
    return ax


def fitted(cells: pd.DataFrame, slope: float) -> tuple[list[float], list[float]]:
    """The ends of a line of that slope through the weighted means, over the cells' accuracies."""
    x, y, n = (numbers(cells[name]) for name in ("accuracy", "rf", "n"))
    ends = [float(x.min()), float(x.max())]
    middle = float(np.average(x, weights=n)), float(np.average(y, weights=n))
    return ends, [middle[1] + slope * (end - middle[0]) for end in ends]


def told(association: pd.DataFrame, condition: str) -> str:
    """What the correlations of one condition come to, in one line or two."""
    found = {r["statistic"]: r for r in rows(where(association, condition=condition))}
    said = []
    for name, sign in (("pearson", "r"), ("spearman", "ρ")):
        row = found.get(name)
        if row is None:
            continue
        if math.isnan(row["value"]):
            return f"no correlation: {row['reason']}"
        bounds = f"[{_signed(row['value_low'])}, {_signed(row['value_high'])}]"
        said.append(f"{sign} = {_signed(row['value'])} {bounds}")
    return ", ".join(said)


def _drawn(data: pd.DataFrame, association: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(9, 4.9), layout="constrained")
    tasks = task_names(data["task"])
    axes = figure.subplots(1, 2, sharey=True)
    for ax, condition in zip(axes, CONDITIONS, strict=True):
        mine = where(data, condition=condition)
        if len(mine):
            accuracy_points(ax, mine, tasks)
            slopes = where(association, condition=condition, statistic="slope")["value"].dropna()
            if len(slopes):
                ax.plot(*fitted(mine, float(slopes.iloc[0])), color=GREY, lw=1.2, ls="--")
        n = len(model_names(mine["model"]))
        cells = f"{len(mine)} model-task pairs" if n > 1 else f"{len(mine)} tasks"
        ax.set_title(f"{OF[condition]}, {cells}\n{told(association, condition)}", fontsize=8)
        ax.set_xlabel(f"accuracy of the {OF[condition]}")
    axes[0].set_ylabel("RF")
    handles = [
        Line2D([], [], ls="", color=colour, marker=marker, label=name)
        for name, (colour, marker) in zip(tasks.values(), itertools.cycle(STYLES), strict=False)
    ]
    legend_above(figure, handles, ncols=4)
    return figure


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
