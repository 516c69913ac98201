"""How far r′ is from the words of its problem (RFEval, appendix B.6, Table 10)."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, ORANGE, legend_above
from faithscope.experiments.analysis.dots import bare_rows, name_lines, share_axis
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.studies.rfeval.figures.plots import task_names

CONTEXTS = {
    "none": (BLUE, "o", "question and options"),
    "tfidf": (ORANGE, "s", "with the context’s most telling words"),
}
OVERLAPS = {
    "jaccard": "Jaccard",
    "dice": "Dice",
    "overlap": "overlap coefficient",
    "in_r_prime": "share of r′ that\nthe problem has",
    "in_question": "share of the problem\nthat r′ takes up",
}
Z = 1.959964
"""Of a 95 % interval of a normal."""


def externality_picture(externality: pd.DataFrame) -> Picture:
    """Table 10: how much of r′ is not in the problem's words."""
    data = with_mean_intervals(externality)
    return Picture(
        "rf_externality",
        "How far is r′ from the words of its problem?",
        "Externality penalty Δ = 1 − overlap of the content words of the problem with those of "
        "r′, by each overlap that the paper may have meant (its formula is lost): the mean over "
        "items with its 95 % interval (normal), and pale from the median to the 90th percentile. "
        "It is a matter of the items alone, whatever model answers.",
        data,
        _externality_drawn(data) if len(data) else None,
        "The items’ texts were not at hand.",
    )


def with_mean_intervals(externality: pd.DataFrame) -> pd.DataFrame:
    """With the normal interval of each mean; of one item there is none."""
    half = Z * externality["std"].astype(float) / externality["n"].astype(float) ** 0.5
    mean = externality["mean"].astype(float)
    return externality.assign(mean_low=mean - half, mean_high=mean + half)


def _externality_drawn(data: pd.DataFrame) -> Figure:
    overlaps = [o for o in OVERLAPS if o in set(data["overlap"])]
    tasks = task_names(data["task"])
    contexts = [c for c in CONTEXTS if c in set(data["context"])]
    height = 1.3 + 0.3 * max(2, len(tasks))
    figure = Figure(figsize=(9, height), layout="constrained")
    axes = list(figure.subplots(1, len(overlaps), squeeze=False, sharey=True)[0])
    for ax, overlap in zip(axes, overlaps, strict=True):
        for i, context in enumerate(contexts):
            colour, marker, label = CONTEXTS[context]
            mine = {r["task"]: r for r in rows(where(data, overlap=overlap, context=context))}
            apart = 0.0 if len(contexts) == 1 else 0.3 * (i - 0.5)
            at = [(y + apart, mine[t]) for y, t in enumerate(tasks) if t in mine]
            for y, r in at:
                ax.plot([r["median"], r["p90"]], [y, y], color=colour, lw=4, alpha=0.25)
            low = [_or_0(r["mean"] - r["mean_low"]) for _, r in at]
            high = [_or_0(r["mean_high"] - r["mean"]) for _, r in at]
            ax.errorbar(
                [r["mean"] for _, r in at],
                [y for y, _ in at],
                xerr=[low, high],
                fmt=marker,
                color=colour,
                ms=4,
                elinewidth=1,
                label=label,
            )
        share_axis(ax)
        ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        ax.set_ylim(len(tasks) - 0.5, -0.5)
        ax.set_title(OVERLAPS[overlap], fontsize=8)
    name_lines(axes[0], list(tasks.values()))
    bare_rows(axes[1:])
    figure.supxlabel("externality Δ, 1 where no word is shared", fontsize=9)
    legend_above(figure, axes[0])
    return figure


def _or_0(value: float) -> float:
    return 0.0 if math.isnan(value) else max(0.0, value)
