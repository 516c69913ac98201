"""Two ways of measuring against each other, and every model on every task, in one figure each."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import GREY, INK_ON_DARK, INK_ON_PALE
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import BETWEEN_STYLES, pairs_of, share_ticks, short
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.studies.slrc.tables.verdict import primary

SIDES = {
    "generated~scored in prefix": ("prefix", "generated", "prefix", "scored"),
    "generated~scored in reprompt": ("reprompt", "generated", "reprompt", "scored"),
    "prefix~reprompt in generated": ("prefix", "generated", "reprompt", "generated"),
    "prefix~reprompt in scored": ("prefix", "scored", "reprompt", "scored"),
}
PANELS = {
    ("generated", "scored"): ("generated~scored in prefix", "generated~scored in reprompt"),
    ("prefix", "reprompt"): ("prefix~reprompt in generated", "prefix~reprompt in scored"),
}
_BOUNDS = ("", "_low", "_high")


def contrast_table(slrc: pd.DataFrame, measure: str = "necessity") -> pd.DataFrame:
    """One measure taken in two ways, a row per model, task and comparison.

    Returns:
        `across` and `up` with their intervals: the left and the right side of `between`,
        and `difference` = up - across.
    """
    found = {
        (r["model"], r["task"], r["framing"], r["reading"]): r
        for r in rows(slrc)
        if not math.isnan(r[measure])
    }
    made = []
    for model, task in pairs_of(slrc):
        for between, (framing, reading, other_framing, other_reading) in SIDES.items():
            left = found.get((model, task, framing, reading))
            right = found.get((model, task, other_framing, other_reading))
            if left and right:
                made.append(
                    {"model": model, "task": task, "between": between}
                    | {f"across{b}": left[f"{measure}{b}"] for b in _BOUNDS}
                    | {f"up{b}": right[f"{measure}{b}"] for b in _BOUNDS}
                    | {"difference": right[measure] - left[measure]}
                )
    sides = [f"{side}{b}" for side in ("across", "up") for b in _BOUNDS]
    return pd.DataFrame(made, columns=["model", "task", "between", *sides, "difference"])


def against(ax: Axes, contrasts: pd.DataFrame) -> Axes:
    """Each model and task as a point: one way of measuring across, the other up.

    On the diagonal both say the same. The bars are the 95 % intervals of either side.
    """
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", zorder=0)
    for between, (colour, marker) in BETWEEN_STYLES.items():
        points = where(contrasts, between=between)
        if len(points):
            ax.errorbar(
                points["across"],
                points["up"],
                xerr=_reach(points, "across"),
                yerr=_reach(points, "up"),
                fmt=marker,
                color=colour,
                elinewidth=0.6,
                alpha=0.85,
                label=f"in {between.rpartition(' ')[2]}",
            )
    share_ticks(ax.xaxis)
    share_ticks(ax.yaxis)
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal")
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def _reach(points: pd.DataFrame, side: str) -> list[list[float]]:
    of_each = rows(points)
    return [
        [max(0.0, p[side] - p[f"{side}_low"]) for p in of_each],
        [max(0.0, p[f"{side}_high"] - p[side]) for p in of_each],
    ]


def contrast_picture(slrc: pd.DataFrame) -> Picture:
    """Necessity, generated against scored and prefix against reprompt."""
    data = contrast_table(slrc)
    panels = {sides: where(data, between=set(between)) for sides, between in PANELS.items()}
    panels = {sides: points for sides, points in panels.items() if len(points)}
    figure = None
    if panels:
        figure = Figure(figsize=(0.8 + 3.9 * len(panels), 4.2), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for ax, ((across, up), points) in zip(axes, panels.items(), strict=True):
            against(ax, points).set(xlabel=f"necessity, {across}", ylabel=f"necessity, {up}")
            ax.legend(fontsize=8, loc="lower right")
    return Picture(
        "contrasts",
        "The same steps, measured in two ways",
        "Step necessity of every model and task with 95 % Wilson intervals. Points below the "
        "diagonal lose necessity in the way of measuring that is drawn upwards, points above it "
        "gain.",
        data,
        figure,
        "Only one framing and one reading were run, so there is nothing to compare.",
    )


def by_task(ax: Axes, slrc: pd.DataFrame) -> Axes:
    """Necessity as a field of models (down) by tasks (across), with the number in each place."""
    models = sorted(set(slrc["model"]), key=model_order)
    tasks = list(dict.fromkeys(slrc["task"]))
    values = {(r["model"], r["task"]): r["necessity"] for r in rows(slrc)}
    field = [[values.get((m, t), math.nan) for t in tasks] for m in models]
    # A mesh, not an image: it stays a drawing in SVG, which the report's policy admits.
    ax.pcolormesh(field, vmin=0, vmax=1, cmap="Blues", edgecolors="white", lw=1)
    ax.invert_yaxis()
    for y, line in enumerate(field):
        for x, value in enumerate(line):
            if not math.isnan(value):
                ink = INK_ON_DARK if value > 0.6 else INK_ON_PALE
                ax.text(
                    x + 0.5,
                    y + 0.5,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    color=ink,
                    fontsize=8.5,
                )
    across = [x + 0.5 for x in range(len(tasks))]
    ax.set_xticks(across, [_cut(visible(t)) for t in tasks], rotation=20, ha="right")
    ax.set_yticks([y + 0.5 for y in range(len(models))], [_cut(short(m)) for m in models])
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    return ax


def _cut(name: str, longest: int = 40) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def by_task_picture(slrc: pd.DataFrame) -> Picture:
    """Necessity over models and tasks (the paper's Figure 2 shows the same over six tasks)."""
    columns = ["model", "task", "framing", "reading", "n", *(f"necessity{b}" for b in _BOUNDS)]
    data = primary(slrc).filter(items=columns)
    figure = None
    if len(data):
        down, across = len(set(data["model"])), len(set(data["task"]))
        figure = Figure(figsize=(2.4 + 0.95 * across, 1.2 + 0.42 * down), layout="constrained")
        by_task(figure.add_subplot(), data)
    return Picture(
        "by_task",
        "Necessity by model and task",
        "Share of steps whose removal changes the answer, in the foremost framing and reading "
        "that was run. An empty place was not measured. Which tasks a model reasons on is a "
        "property of both: read along a row as well as down a column.",
        data,
        figure,
        "No item was measured.",
    )
