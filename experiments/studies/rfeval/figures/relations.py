"""RF against coverage and accuracy (RFEval, section 5, A4, and appendix E; Figures 6, 9, 10)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import (
    handle,
    legend_above,
    narrow,
    share_axis,
    share_rise,
    sheet,
)
from faithscope.experiments.analysis.charts import behind, curve, panels
from faithscope.experiments.analysis.colours import GREY, PLAIN, PURPLE, Style, styles_for
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.statistics.stats import wilson_of_items
from faithscope.experiments.analysis.tidy import columns, numbers, rows, where
from faithscope.experiments.numerals import estimate
from faithscope.experiments.studies.rfeval.figures.lines import in_a_row, model_names, task_names
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.tables.frames import OVERALL

BINNED = {
    "model": ("tasks of each model", "the tasks of a model", "No model was judged on two tasks."),
    "task": ("models on each task", "the models on a task", "No task was judged of two models."),
}
"""Names of what is binned, in the title and in the caption, and why there may be no figure."""
ANSWERS = {"baseline": "model’s own answers", "intervened": "answers under r′"}


def quartiles_picture(quartiles: pd.DataFrame, by: str) -> Picture:
    """Figures 9 (`by` is `model`) and 10 (`task`): a panel per group, the other groups pale in
    it."""
    title, binned, absent = BINNED[by]
    of = where(quartiles, by=by)
    several = of.groupby("group")["quartile"].nunique() if len(of) else pd.Series(dtype=int)
    data = where(of, group=set(several.loc[several > 1].index))
    cells = data.loc[data["group"] != OVERALL, "n_cells"]
    return Picture(
        f"rf_quartiles_{by}",
        f"Does faithfulness change with coverage? The {title}",
        f"RF of {binned}, binned by their contrast coverage and weighted by pairs, with 95 % "
        "Wilson bands over pairs; the other panels pale. Bins are of few cells each: at most "
        f"{max(cells, default=0)} here, and what tells the bins apart is which cells fell into "
        "them.",
        data,
        _quartiles(data, by),
        absent,
    )


def _quartiles(data: pd.DataFrame, by: str) -> Figure | None:
    names = (model_names if by == "model" else task_names)(data["group"])
    names.pop(OVERALL, None)
    if OVERALL in set(data["group"]) and len(names) > 1:
        names = {OVERALL: f"all {by}s pooled", **names}
    lines = {g: where(data, group=g).sort_values("quartile") for g in names}

    def draw(ax: Axes, group: str) -> None:
        others = [line for g, line in lines.items() if g not in (group, OVERALL)]
        behind(ax, others, "quartile", "rf")
        style = Style(PURPLE, "o", "") if group == OVERALL else PLAIN
        share_rise(curve(ax, lines[group], "quartile", "rf", style))
        ax.set(xlim=(0.7, 4.3), xticks=[1, 2, 3, 4])

    labels = ("quartile of contrast coverage, 1 the lowest", "RF")
    look: dict[str, Any] = {"height": 1.5, "across": in_a_row(len(names)), "labels": labels}
    return panels(list(names), draw, list(names.values()), **look)


def accuracy_picture(cells: pd.DataFrame, association: pd.DataFrame) -> Picture:
    """Figure 6, for the model's own answers and for the answers under r′."""
    known = cells.dropna(subset=["accuracy", "rf"])
    lines = [r | columns("rf", wilson_of_items(float(r["rf"]), int(r["n"]))) for r in rows(known)]
    data = pd.DataFrame(lines, columns=[*cells.columns, "rf_low", "rf_high"])
    return Picture(
        "rf_accuracy",
        "Does accuracy tell of faithfulness?",
        "A point is a model on a task, larger with more pairs; RF with its 95 % Wilson interval. "
        "Line: weighted least squares without effects. In the titles the weighted correlation "
        "with a constant for each model and each task held fixed, with its bootstrap interval "
        "over cells. Under r′, which leads to a wrong answer, who follows it faithfully is wrong.",
        data,
        _accuracy(data, association) if len(data) else None,
        "No model has both accuracy and RF on any task.",
    )


def _accuracy(data: pd.DataFrame, association: pd.DataFrame) -> Figure:
    figure = sheet(6.0 if narrow() else 3.5)
    names = task_names(data["task"])
    styles = styles_for(names, names)
    axes = figure.subplots(2 if narrow() else 1, 1 if narrow() else 2, sharey=True)
    for ax, condition in zip(axes, CONDITIONS, strict=True):
        cells = where(data, condition=condition)
        if len(cells):
            _points(ax, cells, styles)
            slopes = where(association, condition=condition, statistic="slope")["value"].dropna()
            if len(slopes):
                ax.plot(*fitted(cells, float(slopes.iloc[0])), color=GREY, lw=1.2, ls="--")
        several = len(model_names(cells["model"])) > 1
        n = f"{len(cells)} model-task pairs" if several else f"{len(cells)} tasks"
        words = correlation_words(association, condition)
        ax.set_title(f"{ANSWERS[condition]}, {n}\n{words}")
        ax.set_xlabel(f"accuracy of the {ANSWERS[condition]}")
    axes[0].set_ylabel("RF")
    legend_above(figure, list(map(handle, styles.values())), ncols=4)
    return figure


def _points(ax: Axes, cells: pd.DataFrame, styles: Mapping[str, Style]) -> None:
    """Draws RF against accuracy, a colour and a marker per task."""
    faint = 0.3 if len(cells) > 20 else 0.6
    for task, (colour, marker, _) in styles.items():
        of = where(cells, task=task)
        x, y = numbers(of["accuracy"]), numbers(of["rf"])
        reach = np.clip([y - numbers(of["rf_low"]), numbers(of["rf_high"]) - y], 0, None)
        ax.errorbar(x, y, reach, fmt="none", ecolor=colour, elinewidth=0.6, alpha=faint)
        sizes = 12 + 48 * numbers(of["n"]) / numbers(cells["n"]).max()
        ax.scatter(x, y, s=sizes, c=colour, marker=marker, lw=0, alpha=0.85)
    share_axis(ax)
    share_rise(ax)


def fitted(cells: pd.DataFrame, slope: float) -> tuple[list[float], list[float]]:
    """The ends of a line with a given slope through the weighted means, over the cells'
    accuracies."""
    x, y, n = (numbers(cells[name]) for name in ("accuracy", "rf", "n"))
    ends = [float(x.min()), float(x.max())]
    middle = float(np.average(x, weights=n)), float(np.average(y, weights=n))
    return ends, [middle[1] + slope * (end - middle[0]) for end in ends]


def correlation_words(association: pd.DataFrame, condition: str) -> str:
    """The correlations of one condition in words, or the reason why there is none."""
    of = {r["statistic"]: r for r in rows(where(association, condition=condition))}
    words = []
    for name, sign in (("pearson", "r"), ("spearman", "ρ")):
        if name in of and math.isnan(of[name]["value"]):
            return f"no correlation: {of[name]['reason']}"
        if name in of:
            value, low, high = (of[name][f"value{end}"] for end in ("", "_low", "_high"))
            words.append(f"{sign} = {estimate(value, low, high)}")
    return ", ".join(words)
