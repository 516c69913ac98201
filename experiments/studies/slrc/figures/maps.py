"""Figures that compare measures: necessity by model and task, steps measured in two ways, and how
alike measures rank items and steps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from faithscope.experiments.analysis.axes import (
    SMALL,
    narrow,
    of_width,
    sheet,
    unit_square,
    width,
)
from faithscope.experiments.analysis.charts import field, panels, points, scale_of_ranks
from faithscope.experiments.analysis.colours import (
    BLUE,
    GREEN,
    MISSING,
    ORANGE,
    PAPER,
    PURPLE,
    SIGN,
    USE,
    Style,
    ink_on,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import keep, rows, where, with_interval
from faithscope.experiments.analysis.wording import (
    middle_cut,
    model_order,
    pair_names,
    pairs_of,
    short,
)
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.slrc.tables.measures import MEASURES, ORDER
from faithscope.experiments.studies.slrc.words import primary

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
FEW = 20
"""Number of items below which a share or a rank correlation has no colour."""
_MOST_NAMES = 48
"""Number of measures whose names fit beside a map of the width of a page."""
_MOST = 4
"""Number of models whose correlations are drawn, those with most pairs of measures; the table has
all."""


def by_task_picture(slrc: pd.DataFrame) -> Picture:
    """Necessity by model and task (the paper's Figure 2 shows six tasks)."""
    columns = ["model", "task", "framing", "reading", "n", *with_interval("necessity")]
    data = primary(slrc).filter(items=columns)
    figure = None
    if len(data):
        models = sorted(set(data["model"]), key=model_order)
        tasks = list(dict.fromkeys(data["task"]))
        cells = np.full((len(models), len(tasks)), math.nan)
        few: dict[tuple[int, int], tuple[float, int]] = {}
        for r in rows(data):
            at = models.index(r["model"]), tasks.index(r["task"])
            if r["n"] >= FEW:
                cells[at] = r["necessity"]
            else:
                few[at] = r["necessity"], r["n"]
        figure = sheet(1.2 + 0.3 * len(models), 2.2 + 0.7 * len(tasks))
        down = [middle_cut(short(m), 40) for m in models]
        across = [middle_cut(visible(t), 40) for t in tasks]
        look: dict[str, Any] = {"stops": USE, "text": decimal, "rotation": 20}
        ax = field(figure.add_subplot(), cells, down, across, **look)
        for (i, j), (value, n) in few.items():
            ax.add_patch(Rectangle((j, i), 1, 1, facecolor=MISSING, edgecolor=PAPER, lw=1))
            text = f"{decimal(value)}, n {n}"
            centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL}
            ax.text(j + 0.5, i + 0.5, text, color=ink_on(MISSING), **centred)
    return Picture(
        "by_task",
        "Necessity by model and task",
        "Share of steps whose removal changes the answer, in the first framing and reading "
        "that was run. An empty place was not measured; grey is a share of fewer than "
        f"{FEW} items, which says little. Which tasks a model reasons on is a "
        "property of both: read along a row as well as down a column.",
        data,
        figure,
        "No item was measured.",
    )


def head_to_head_picture(table: pd.DataFrame) -> Picture:
    """Rank correlations in a map per model and task: over items above the diagonal, over steps
    below it."""
    data = where(table, framing="prefix")
    # All panels have one set of row names, so that they can share their labels.
    names = [name for name in ORDER if name in {*data["measure"], *data["other"]}]
    pairs = pairs_of(keep(data, data[["n", "n_ranked"]].max(axis=1) >= FEW))

    across = 1 if narrow() or len(pairs) == 1 else 2
    side = min(width() / across, 4.6)
    # a number takes a quarter of an inch, and names as much as they do
    text = decimal if (side - 1.3) / max(1, len(names)) > 0.25 else None

    def draw(ax: Axes, pair: tuple[str, str]) -> None:
        own = where(data, model=pair[0], task=pair[1])
        cells = _cells(own, names, {"spearman": "n", "step_spearman": "n_ranked"})
        labels = [NAMES[name] for name in names]
        look: dict[str, Any] = {"stops": SIGN, "missing": MISSING, "fontsize": 6, "lw": 0}
        field(ax, cells, labels, labels, limits=(-1, 1), text=text, **look)
        ax.set_aspect("equal")

    titles = pair_names(pairs, "\n")
    figure = panels(pairs, draw, titles, height=side, across=across, widths={1: 4.6})
    scale_of_ranks(figure)
    return Picture(
        "head_to_head",
        "Do the measures agree?",
        "Spearman’s rank correlation of every two measures: over items above the diagonal, over "
        "the steps within an item (mean of the items) below it. Grey where there are fewer than "
        f"{FEW} items, where a measure says the same of all, or where SLRC has no number of a "
        "single step. Items of one mechanism "
        "differ by chance alone: which measure to trust is told by models of known truth, not "
        "by agreement. Intervals are in the table.",
        data,
        figure,
        f"No model and task has {FEW} items that two measures were taken of.",
    )


def correlations_picture(table: pd.DataFrame) -> Picture:
    """Matrix of correlations per model; measures taken in two framings are shown in `prefix`
    only."""
    present = {*table["measure"], *table["other"]}
    every = of_one_framing([name for name in MEASURES if name in present])
    known = keep(table, table["spearman"].notna() & (table["n"] >= FEW))
    pairs = Counter([*known["measure"], *known["other"]])
    often = sorted(every, key=lambda name: -pairs[name])[:_MOST_NAMES]
    names = [name for name in every if name in often]
    drawn = where(known, measure=set(names), other=set(names))
    models = sorted(set(table["model"]), key=model_order)
    counts = Counter(drawn["model"].tolist())
    most = sorted(counts, key=lambda m: (-counts[m], models.index(m)))[:_MOST]
    shown = [m for m in models if m in most]

    def draw(ax: Axes, model: str) -> None:
        cells = _cells(where(drawn, model=model), names, {"": "", "spearman": "n"})
        labels = [name.replace("_", " ") for name in names]
        look: dict[str, Any] = {"stops": SIGN, "fontsize": 6, "lw": 0, "rasterized": True}
        field(ax, cells, labels, labels, limits=(-1, 1), rotation=90, **look)
        ax.set_aspect("equal")

    titles = [f"{short(m)} · n = {_span(where(drawn, model=m)['n'].tolist())} items" for m in shown]
    side = 2.0 + 0.09 * len(names)
    with of_width("page"):  # names alone would fill a column
        look = {"height": side, "across": 1, "widths": {1: side + 0.6}, "shared": False}
        figure = panels(shown, draw, titles, **look)
    scale_of_ranks(figure)
    left = len(every) - len(names)
    return Picture(
        "measure_correlations",
        "Do the measures rank the same items alike?",
        "Rank correlation of every two measures over the items of a model, scores as measured; "
        f"blank where there are fewer than {FEW} items, or where one of the two never varies. "
        "Measures that are taken for the same thing and "
        "lie near zero are not measuring the same thing."
        + (f" {left} measures with fewer correlations are in the table alone." if left else ""),
        table,
        figure,
        f"No two measures vary over {FEW} items or more of one model.",
    )


def of_one_framing(names: list[str]) -> list[str]:
    """Names without the `reprompt` versions of measures that are also there in `prefix` framing."""
    there = set(names)
    return [n for n in names if n.replace("_reprompt", "_prefix") not in there - {n}]


def _cells(table: pd.DataFrame, names: Sequence[str], columns: Mapping[str, str]) -> np.ndarray:
    """Matrix of two columns: the first above the diagonal, the second below it; NaN where the
    column of counts that each has is below `FEW`."""
    cells = np.full((len(names), len(names)), math.nan)
    for row in rows(table):
        i, j = sorted((names.index(row["measure"]), names.index(row["other"])))
        for at, column in zip(((i, j), (j, i)), columns, strict=True):
            if column and row[columns[column]] >= FEW:
                cells[at] = row[column]
    return cells


def _span(n: list[int]) -> str:
    low, high = min(n), max(n)
    return str(low) if low == high else f"{low}–{high}"


BETWEEN_STYLES = {
    "generated~scored in prefix": Style(BLUE, "o", "in prefix"),
    "generated~scored in reprompt": Style(ORANGE, "s", "in reprompt"),
    "prefix~reprompt in generated": Style(GREEN, "^", "in generated"),
    "prefix~reprompt in scored": Style(PURPLE, "D", "in scored"),
}
_SIDES = {
    "generated~scored in prefix": ("prefix", "generated", "prefix", "scored"),
    "generated~scored in reprompt": ("reprompt", "generated", "reprompt", "scored"),
    "prefix~reprompt in generated": ("prefix", "generated", "reprompt", "generated"),
    "prefix~reprompt in scored": ("prefix", "scored", "reprompt", "scored"),
}


def contrast_table(slrc: pd.DataFrame, measure: str = "necessity") -> pd.DataFrame:
    """One measure taken in two ways, one row per model, task and comparison.

    Returns:
        Columns `across` and `up` with intervals, the left and the right side of `between`, and
        `difference` = up - across.
    """
    measured = {
        (r["model"], r["task"], r["framing"], r["reading"]): r
        for r in rows(slrc)
        if not math.isnan(r[measure])
    }
    table = []
    for pair in pairs_of(slrc):
        for between, sides in _SIDES.items():
            left, right = measured.get((*pair, *sides[:2])), measured.get((*pair, *sides[2:]))
            if left and right:
                row = {"model": pair[0], "task": pair[1], "between": between}
                for side, values in (("across", left), ("up", right)):
                    own = with_interval(side)
                    row |= {c: values[m] for c, m in zip(own, with_interval(measure), strict=True)}
                table.append(row | {"difference": right[measure] - left[measure]})
    columns = ["model", "task", "between", *with_interval("across", "up"), "difference"]
    return pd.DataFrame(table, columns=columns)


_IN_WORDS = {"scored": "the scored answer", "reprompt": "the reasoning quoted in a new prompt"}


def _upwards(drawn: Sequence[tuple[str, str]]) -> str:
    """What the panels show upwards, from left to right."""
    return ", and by ".join(_IN_WORDS[up] for _, up in drawn)


def contrast_picture(slrc: pd.DataFrame) -> Picture:
    """Scatter of necessity: generated against scored readings, and prefix against reprompt
    framing."""
    data = contrast_table(slrc)

    def draw(ax: Axes, ways: tuple[str, str]) -> None:
        for between, style in BETWEEN_STYLES.items():
            own = where(data, between=between)
            if between.startswith("~".join(ways)) and len(own):
                points(ax, own, "across", "up", style)
        unit_square(ax).set(xlabel=f"necessity, {ways[0]}", ylabel=f"necessity, {ways[1]}")

    ways = [("generated", "scored"), ("prefix", "reprompt")]
    drawn = [w for w in ways if any(b.startswith("~".join(w)) for b in data["between"])]
    titles = [f"{across} against {up}" for across, up in drawn]
    widths = {1: 3.3}
    return Picture(
        "contrasts",
        "The same steps, measured in two ways",
        "Step necessity of every model and task with 95 % Wilson intervals. Below the "
        f"diagonal: less necessity by {_upwards(drawn)}.",
        data,
        panels(drawn, draw, titles, height=2.9, widths=widths, shared=False),
        "Only one framing and one reading were run, so there is nothing to compare.",
    )
