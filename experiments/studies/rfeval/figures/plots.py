"""What RFEval's figures are put together from: lines for models and tasks, panels of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREEN, GREY, ORANGE, PURPLE
from faithscope.experiments.analysis.dots import bare_rows, dots, name_lines, rules_between
from faithscope.experiments.analysis.panels import grid
from faithscope.experiments.analysis.short_names import short_names
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import rows, where, with_interval
from faithscope.experiments.studies.rfeval.items import TASKS
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL

NOT_JUDGED = "No pair of outputs was judged."
NONE_COUNTS = "no pair counts"
"""Written where a line has no pair that is complete, judged and in contrast."""
AMBER, SKY = "#E69F00", "#56B4E9"
STYLES = (
    (BLUE, "o"),
    (ORANGE, "s"),
    (GREEN, "^"),
    (PURPLE, "D"),
    (AMBER, "v"),
    (SKY, "P"),
    (GREY, "X"),
)
"""Colour and marker of what is told apart in their order; of more they begin anew."""
Styles = Mapping[str, tuple[str, str, str]]
"""Column -> colour, marker, label."""


@dataclass(frozen=True)
class Line:
    """A line of a figure: one model over all tasks, one task over all models, or all."""

    by: str
    group: str
    name: str


def lead_reader(rf: pd.DataFrame) -> str:
    """The reader that is drawn where one is: the first of which any pair counts, "" of none."""
    overall = where(rf, model=OVERALL, task=OVERALL)
    of_any = [r["reader"] for r in rows(overall) if r["n_included"]]
    return next(iter([*of_any, *overall["reader"]]), "")


def by_group(table: pd.DataFrame) -> pd.DataFrame:
    """The pooled rows of a table with `model` and `task`, under `by` and `group`."""
    models, tasks = where(table, task=OVERALL), where(table, model=OVERALL)
    tasks = tasks.loc[tasks["task"] != OVERALL]
    parts = [
        models.assign(by="model", group=models["model"]),
        tasks.assign(by="task", group=tasks["task"]),
    ]
    return pd.concat(parts, ignore_index=True)


def lines_of(table: pd.DataFrame) -> list[Line]:
    """A line per model, all of them, and a line per task, where there are several.

    Args:
        table: with the columns `by` and `group`.
    """
    models = model_names(where(table, by="model")["group"])
    made = [Line("model", group, name) for group, name in models.items()]
    tasks = task_names(where(table, by="task")["group"])
    return made + [Line("task", t, name) for t, name in tasks.items() if len(tasks) > 1]


def model_names(models: Iterable[str]) -> dict[str, str]:
    """Model -> its name in figures, in their order; all of them last, where there are several."""
    own = dict.fromkeys(m for m in models if m != OVERALL)
    return short_names(list(own)) | ({OVERALL: "all models"} if len(own) > 1 else {})


def task_names(tasks: Iterable[str]) -> dict[str, str]:
    """Task -> its name in figures, in the paper's order; those that the paper lacks after them."""
    found = dict.fromkeys(t for t in tasks if t != OVERALL)
    ordered = [*(t for t in TASKS if t in found), *(t for t in found if t not in TASKS)]
    return {t: visible(t).replace("_", " ") for t in ordered}


def shares_of(table: pd.DataFrame, lines: Sequence[Line], values: Sequence[str]) -> list[dict]:
    """The shares of each line side by side: `value`, `value_low`, `value_high` of each, and `n_of`.

    Args:
        table: of `metrics.failures`, one statistic of one reader.
    """
    found = {(r["by"], r["group"], r["value"]): r for r in rows(table)}
    made = []
    for line in lines:
        wide: dict[str, Any] = {"n_of": 0}
        for value in values:
            row = found.get((line.by, line.group, value))
            shares = [row[c] for c in with_interval("share")] if row else [math.nan] * 3
            wide |= dict(zip(with_interval(value), shares, strict=True))
            wide["n_of"] = max(wide["n_of"], int(row["n_of"]) if row else 0)
        made.append(wide)
    return made


def line_figure(lines: Sequence[Line], each: float, panels: int) -> tuple[Figure, list[Axes]]:
    """A figure with a line per model and per task, so many inches high, and panels side by side."""
    figure = Figure(figsize=(9, 1.1 + each * len(lines)), layout="constrained")
    axes = list(figure.subplots(1, panels, squeeze=False, sharey=True)[0])
    return figure, axes


def finish_lines(axes: Sequence[Axes], lines: Sequence[Line]) -> None:
    """Names beside the first panel, and rules between models and tasks."""
    groups = [n for by in ("model", "task") if (n := sum(x.by == by for x in lines))]
    for ax in axes:
        rules_between(ax, groups)
    name_lines(axes[0], [x.name for x in lines])
    bare_rows(axes[1:])


def counts_beside(ax: Axes, counts: Sequence[float], head: str = "n") -> None:
    """How many each line is of, at the right of a panel."""
    for y, n in [(-0.75, head), *((y, f"{int(n):,}") for y, n in enumerate(counts))]:
        ax.annotate(
            str(n),
            (1.015, y),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=7,
            color=GREY,
            annotation_clip=False,
        )


def crossed(
    table: pd.DataFrame,
    draw: Callable[[Axes, list[dict | None]], object],
    *,
    each: float = 0.2,
    label: str,
) -> Figure:
    """Every model on every task: a panel for each of the fewer, a line for each of the more.

    Args:
        table: with `model` and `task`, pooled rows included; one row of both.
        draw: from axes and the rows of its lines, None for one that is not there.
        each: height of a line in inches.
    """
    models = model_names(table["model"])
    tasks = task_names(table["task"])
    if len(tasks) > 1 and OVERALL in set(table["task"]):
        tasks[OVERALL] = "all tasks"
    if OVERALL not in set(table["model"]):
        models.pop(OVERALL, None)
    found = {(r["model"], r["task"]): r for r in rows(table)}
    down, across = (tasks, models) if len(models) <= len(tasks) else (models, tasks)

    def panel(ax: Axes, one: str) -> None:
        keys = [(one, x) if across is models else (x, one) for x in down]
        draw(ax, [found.get(key) for key in keys])
        ax.set_ylim(len(down) - 0.5, -0.5)
        name_lines(ax, list(down.values()))
        bare_rows([ax])
        if OVERALL in down:
            ax.axhline(len(down) - 1.5, color=GREY, lw=0.9, alpha=0.8)

    figure = grid(
        list(across),
        panel,
        list(across.values()),
        height=0.45 + each * len(down),
        across=in_a_row(len(across)),
        widths={1: 6.5, 2: 8.0},
        labels=(label, ""),
    )
    return figure


def in_a_row(panels: int) -> int:
    """How many stand side by side: four, or three where that leaves no row nearly empty."""
    return 4 if panels == 4 or panels > 6 else 3


def share_lines(ax: Axes, lines: Sequence[dict | None], measures: Styles, silent: str) -> Axes:
    """`dots` of lines of which some are not there; narrow panels get few ticks."""
    nothing = dict.fromkeys(with_interval(*measures), math.nan)
    dots(ax, [line or nothing for line in lines], measures, silent=silent)
    ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    ax.axvline(0.5, color=GREY, alpha=0.15, lw=0.5)
    return ax
