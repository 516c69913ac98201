"""What is drawn on one pair of axes: each function takes and returns `Axes`.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; every colour goes
with a marker of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from faithscope.experiments.analysis.charts import BLUE, GREEN, GREY, ORANGE, PURPLE
from faithscope.experiments.analysis.short_names import middle_cut, short
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import model_order
from faithscope.probes.framing import FRAMINGS

STYLES: dict[str, tuple[str, str, str]] = {
    "remove": (BLUE, "o", "step removed"),
    "corrupt": (ORANGE, "s", "step corrupted, later text frozen"),
    "regenerate": (GREEN, "^", "step corrupted, later text written anew"),
    "control": (GREY, "x", "control: step kept, a remark added, later text written anew"),
}
READING_STYLES = {"generated": (BLUE, "o"), "scored": (ORANGE, "D")}
BETWEEN_STYLES = {
    "generated~scored in prefix": (BLUE, "o"),
    "generated~scored in reprompt": (ORANGE, "s"),
    "prefix~reprompt in generated": (GREEN, "^"),
    "prefix~reprompt in scored": (PURPLE, "D"),
}
SHORTEST = 12
"""Characters that a line of a title keeps, whatever the width."""
MEASURES = {"necessity": "necessity", "sufficiency": "sufficiency", "slrc": "SLRC"}


def forest(ax: Axes, slrc: pd.DataFrame, measure: str) -> Axes:
    """One measure with its interval, a line per model, task and framing."""
    lines = forest_rows(slrc)
    present = [r for r in READING_STYLES if r in set(slrc["reading"])]
    for i, reading in enumerate(present):
        of_reading = {
            (r["model"], r["task"], r["framing"]): r for r in rows(where(slrc, reading=reading))
        }
        colour, marker = READING_STYLES[reading]
        at = [
            (y + _dodge(i, len(present)), of_reading[k])
            for y, k in enumerate(lines)
            if k in of_reading
        ]
        _points(ax, at, measure, colour, marker, f"{reading} answer")
    _share_axis(ax, MEASURES[measure])
    return _name_rows(ax, [f"{short(m)} · {t} · {f}" for m, t, f in lines])


def edit_comparison(ax: Axes, edits: pd.DataFrame, matters: float) -> Axes:
    """How often each way of editing a step changes the answer, a line per model and task.

    Args:
        matters: the share from which steps matter, drawn as a line.
    """
    lines = pairs_of(edits)
    for i, (edit, (colour, marker, label)) in enumerate(STYLES.items()):
        of_edit = {(r["model"], r["task"]): r for r in rows(where(edits, edit=edit))}
        at = [(y + _dodge(i, len(STYLES)), of_edit[k]) for y, k in enumerate(lines) if k in of_edit]
        for y, row in at:
            ax.plot([0, row["flip_rate"]], [y, y], color=colour, lw=2.5, alpha=0.35)
        _points(ax, at, "flip_rate", colour, marker, label)
    ax.axvline(matters, color=GREY, lw=0.8, ls=":")
    _share_axis(ax, "share of edits that change the answer")
    return _name_rows(ax, [f"{short(m)} · {t}" for m, t in lines])


def by_position(ax: Axes, positions: pd.DataFrame) -> Axes:
    """How often an edit changes the answer by the relative place of the edited step."""
    for i, (edit, (colour, marker, label)) in enumerate(STYLES.items()):
        line = where(positions, edit=edit).sort_values(by="position")
        if len(line):
            # A little apart, or lines that say the same would hide each other.
            apart = 0.16 * _dodge(i, len(STYLES))
            x, y = line["position"].to_numpy() + apart, line["flip_rate"].to_numpy()
            ax.plot(x, y, color=colour, marker=marker, lw=1.3, label=label)
            ax.fill_between(
                x, line["flip_rate_low"], line["flip_rate_high"], color=colour, alpha=0.12, lw=0
            )
    ax.set(xlim=(0, 1), ylim=(-0.04, 1.04), xticks=[0.05, 0.95], yticks=[0, 0.5, 1])
    ax.set_xticklabels(["first", "last"])
    ax.tick_params(axis="x", length=0)
    return ax


def agreements(ax: Axes, agreement: pd.DataFrame) -> Axes:
    """How often two readings, or two framings, agree that an edit changed the answer."""
    lines = pairs_of(agreement)
    present = [b for b in BETWEEN_STYLES if b in set(agreement["between"])]
    for i, between in enumerate(present):
        colour, marker = BETWEEN_STYLES[between]
        said = {
            (r["model"], r["task"]): r["agreement"] for r in rows(where(agreement, between=between))
        }
        y = [at + _dodge(i, len(present)) for at, key in enumerate(lines) if key in said]
        x = [said[key] for key in lines if key in said]
        ax.plot(x, y, ls="", marker=marker, color=colour, label=between.replace("~", " against "))
    _share_axis(ax, "share of step removals on which the two agree")
    return _name_rows(ax, [f"{short(m)} · {t}" for m, t in lines])


def pairs_of(table: pd.DataFrame) -> list[tuple[str, str]]:
    found = {(r["model"], r["task"]) for r in rows(table)}
    return sorted(found, key=lambda pair: (model_order(pair[0]), pair[1]))


def forest_rows(slrc: pd.DataFrame) -> list[tuple[str, str, str]]:
    found = {(r["model"], r["task"], r["framing"]) for r in rows(slrc)}
    return sorted(found, key=lambda k: (model_order(k[0]), k[1], FRAMINGS.index(k[2])))


LINES = [(c, m) for m in ("o", "s", "^", "D", "v") for c in (BLUE, ORANGE, GREEN, PURPLE)]
"""Colours and markers of as many lines as a figure may have, a model and task each."""


def along_reasoning(ax: Axes) -> Axes:
    """The axis of a step's relative place, 0 to 1, with a light grid across."""
    ax.set(xlim=(0, 1), xticks=[0.05, 0.95])
    ax.set_xticklabels(["first", "last"])
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y", color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def share_ticks(axis: Axis) -> None:
    """Quarters from 0 to 1."""
    axis.set_ticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])


def panels(
    table: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], Axes],
    *,
    across: int,
    width: float,
    height: float,
) -> tuple[Figure, np.ndarray]:
    """A figure with a panel for each model and task, at most so many in a row."""
    pairs = pairs_of(table)
    across = min(across, len(pairs))
    down = math.ceil(len(pairs) / across)
    size = (0.9 + width * across, 0.9 + height * down)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, sharey=True)
    for ax in axes.flat[len(pairs) :]:
        ax.remove()
    for ax, (model, task) in zip(axes.flat, pairs, strict=False):
        draw(ax, where(table, model=model, task=task))
        name_panel(ax, (short(model), visible(task)), width)
    return figure, axes


def name_panel(ax: Axes, lines: Sequence[str], inches: float, fontsize: float = 8.5) -> None:
    """A title of these lines; those wider than the panel lose their middle."""
    title = ax.set_title("\n".join(lines), fontsize=fontsize)
    figure = title.get_figure(root=True)
    assert figure is not None
    longest = max(map(len, lines))
    while title.get_window_extent().width > inches * figure.dpi and longest > SHORTEST:
        longest -= 1
        title.set_text("\n".join(middle_cut(line, longest) for line in lines))


def _dodge(i: int, of: int) -> float:
    return 0.0 if of == 1 else 0.5 * (i / (of - 1) - 0.5)


def _points(
    ax: Axes,
    lines: Sequence[tuple[float, dict]],
    measure: str,
    colour: str,
    marker: str,
    label: str,
) -> None:
    kept = [(y, row) for y, row in lines if not math.isnan(row[measure])]
    if not kept:
        return
    value = [row[measure] for _, row in kept]
    low = [max(0.0, row[measure] - row[f"{measure}_low"]) for _, row in kept]
    high = [max(0.0, row[f"{measure}_high"] - row[measure]) for _, row in kept]
    ax.errorbar(
        value,
        [y for y, _ in kept],
        xerr=[low, high],
        fmt=marker,
        color=colour,
        elinewidth=1,
        capsize=2,
        label=label,
    )


def _share_axis(ax: Axes, label: str) -> None:
    ax.set_xlim(-0.025, 1.025)
    share_ticks(ax.xaxis)
    ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.5)
    ax.axvline(0, color="black", lw=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel(label)


def _name_rows(ax: Axes, names: Sequence[str]) -> Axes:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return ax
