"""The rows and panels of RFEval's figures: models and tasks, by themselves and crossed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import (
    counts_beside,
    legend_above,
    name_rows,
    part_handles,
    rules_between,
    sheet,
)
from faithscope.experiments.analysis.charts import (
    Dot,
    dot_rows,
    dots_of,
    draw_dots,
    panels,
    share_bars,
)
from faithscope.experiments.analysis.colours import GREY, Style
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import short_names
from faithscope.experiments.studies.rfeval.items import TASKS
from faithscope.experiments.studies.rfeval.tables.frames import OVERALL

NONE_COUNTS = "no pair counts"
"""Written where a line has no pair that is complete, judged and in contrast."""
Line = tuple[str, str]
"""(`by`, `group`): one model over all tasks, one task over all models, or all."""
Cell = tuple[str, str]
"""A pair (model, task)."""


LINE, CELL = ("by", "group"), ("model", "task")
"""The columns that name a `Line`, and those that name a `Cell`."""
Lines = Mapping[Any, str]
"""Line -> its name, in the order of the figure."""


def of_lines(table: pd.DataFrame, column: str) -> dict[Line, Any]:
    """Line -> its value in one column of a table with `by` and `group`."""
    return {(r["by"], r["group"]): r[column] for r in rows(table)}


def by_group(table: pd.DataFrame) -> pd.DataFrame:
    """The pooled rows of a table with `model` and `task`, under `by` and `group`."""
    models, tasks = where(table, task=OVERALL), where(table, model=OVERALL)
    tasks = tasks.loc[tasks["task"] != OVERALL]
    parts = [
        models.assign(by="model", group=models["model"]),
        tasks.assign(by="task", group=tasks["task"]),
    ]
    return pd.concat(parts, ignore_index=True)


def lines_of(table: pd.DataFrame) -> dict[Any, str]:
    """Line -> its name, from `by_group`: each model, all models, and each task if there are
    several."""
    models = model_names(where(table, by="model")["group"])
    tasks = task_names(where(table, by="task")["group"])
    lines = {("model", model): name for model, name in models.items()}
    return lines | {("task", t): name for t, name in tasks.items() if len(tasks) > 1}


def model_names(models: Iterable[str]) -> dict[str, str]:
    """Model -> its name in figures, in their order; all models together come last, if there are
    several."""
    own = dict.fromkeys(m for m in models if m != OVERALL)
    return short_names(list(own)) | ({OVERALL: "all models"} if len(own) > 1 else {})


def task_names(tasks: Iterable[str]) -> dict[str, str]:
    """Task -> its name in figures, in the paper's order; tasks that the paper lacks come last."""
    own = dict.fromkeys(t for t in tasks if t != OVERALL)
    ordered = [*(t for t in TASKS if t in own), *(t for t in own if t not in TASKS)]
    return {t: visible(t).replace("_", " ") for t in ordered}


def line_dots(
    lines: Lines,
    columns: Mapping[str, Sequence[Dot]],
    counts: Sequence[Mapping[Any, int]] = (),
    **look: Any,
) -> Figure | None:
    """Draws `charts.dot_rows` with a row per line, and at the right of each column its number of
    pairs."""
    look = {"silent": NONE_COUNTS} | look
    return dot_rows(columns, lines, groups=_sizes(lines), counts=counts, head="pairs", **look)


def line_bars(
    pooled: pd.DataFrame,
    count: str,
    shares: Mapping[Line, Mapping[str, float]],
    parts: Mapping[str, tuple[str, str]],
    text: Callable[[float, int], str],
    label: str,
) -> Figure:
    """Draws a bar for every line of `by_group`, split into kinds.

    Args:
        count: the column with the number of pairs of each bar.
        shares: line -> part -> its share; a line that is not in it gets no bar.
        parts: part -> colour and meaning.
        text: from a share and the count of its line to what stands in a wide part.
    """
    lines, counts, nothing = lines_of(pooled), of_lines(pooled, count), dict.fromkeys(parts, nan)
    figure = sheet(1.0 + 0.26 * len(lines))
    ax = figure.subplots()
    of = [counts[line] for line in lines]
    bars = [shares.get(line, nothing) for line in lines]
    share_bars(ax, bars, parts, lambda share, y: text(share, of[y]), empty=NONE_COUNTS)
    rules_between(ax, _sizes(lines))
    name_rows(ax, list(lines.values()))
    ax.spines[:].set_visible(False)
    counts_beside(ax, of, "pairs")
    ax.set_xlabel(label)
    legend_above(figure, part_handles(parts), ncols=3)
    return figure


def _sizes(lines: Iterable[Line]) -> list[int]:
    """Counts the lines that are models, and the lines that are tasks."""
    return [n for by in ("model", "task") if (n := sum(line[0] == by for line in lines))]


def crossed(
    table: pd.DataFrame, draw: Callable[[Axes, list[Cell]], object], *, each: float, label: str
) -> Figure | None:
    """Draws every model on every task: a panel for each member of the smaller set, a row for each
    of the larger.

    Args:
        table: with `model` and `task`, pooled rows included.
        draw: from axes and the cells that are its rows.
        each: height of a row in inches.
    """
    models, tasks = model_names(table["model"]), task_names(table["task"])
    if len(tasks) > 1 and OVERALL in set(table["task"]):
        tasks[OVERALL] = "all tasks"
    if OVERALL not in set(table["model"]):
        models.pop(OVERALL, None)
    down, across = (tasks, models) if len(models) <= len(tasks) else (models, tasks)

    def panel(ax: Axes, one: str) -> None:
        draw(ax, [(one, x) if across is models else (x, one) for x in down])
        name_rows(ax, list(down.values()))
        if OVERALL in down:
            ax.axhline(len(down) - 1.5, color=GREY, lw=0.9, alpha=0.8)

    return panels(
        list(across),
        panel,
        list(across.values()),
        height=0.45 + each * len(down),
        across=in_a_row(len(across)),
        widths={1: 5.0},
        labels=(label, ""),
    )


def crossed_shares(
    table: pd.DataFrame, styles: Mapping[str, Style], silent: str = NONE_COUNTS, **look: Any
) -> Figure | None:
    """Draws `crossed` with estimates as dots; narrow panels get few ticks."""
    dots = list(dots_of(table, styles, CELL))

    def draw(ax: Axes, cells: list[Cell]) -> None:
        draw_dots(ax, dots, cells, silent)
        ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        for colour, marker, name in styles.values():
            ax.plot([], [], ls="", color=colour, marker=marker, label=name)

    return crossed(table, draw, **look)


def in_a_row(n: int) -> int:
    """Number of panels side by side: four, or three if that leaves no row nearly empty."""
    return 4 if n == 4 or n > 6 else 3
