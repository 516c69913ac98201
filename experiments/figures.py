"""The four figures of a run, each drawn from its tables alone.

A `Picture` puts axes (`experiments.plots`) together and holds the numbers it shows.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.outcomes import EDITS
from experiments.plots import (
    BLUE,
    MEASURES,
    PURPLE,
    STYLES,
    agreements,
    by_position,
    edit_comparison,
    forest,
    forest_rows,
    pairs_of,
    short,
)
from experiments.stats import wilson
from experiments.store import existing_run
from experiments.tables import run_tables
from experiments.textual import to_csv, visible
from experiments.tidy import rows, where
from experiments.verdict import primary

POSITION_BINS = 5
COLUMNS = 4
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "lines.markersize": 5,
    # Names of models and tasks are text, whatever signs they hold.
    "text.parse_math": False,
    "svg.hashsalt": "faithscope",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Picture:
    """One figure with its numbers, or the reason why there is none."""

    name: str
    title: str
    caption: str
    data: pd.DataFrame
    figure: Figure | None
    absent: str = ""


def position_table(by_step: pd.DataFrame, bins: int = POSITION_BINS) -> pd.DataFrame:
    """`edits_by_step` pooled over traces of all lengths, by relative place of the step.

    Step i of T stands at (i − ½) / T; `position` is the middle of the bin it falls in.
    """
    table = by_step.copy()
    relative = (table["step"] - 0.5) / table["n_steps"]
    table["bin"] = (relative * bins).astype(int)
    table["flips"] = (table["flip_rate"] * table["n_edits"]).round().astype(int)
    keys = ["model", "task", "framing", "reading", "edit", "bin"]
    counts: dict[tuple, list[int]] = {}
    for row in rows(table):
        pooled = counts.setdefault(tuple(row[key] for key in keys), [0, 0])
        pooled[0] += row["flips"]
        pooled[1] += row["n_edits"]
    pooled_rows = []
    for key in sorted(counts, key=lambda k: (*k[:4], EDITS.index(k[4]), k[5])):
        flips, n_edits = counts[key]
        rate = wilson(flips, n_edits)
        pooled_rows.append(
            dict(zip(keys[:5], key[:5], strict=True))
            | {"position": (key[5] + 0.5) / bins, "n_edits": n_edits}
            | {"flip_rate": rate.value, "flip_rate_low": rate.low, "flip_rate_high": rate.high}
        )
    measured = ["position", "n_edits", "flip_rate", "flip_rate_low", "flip_rate_high"]
    return pd.DataFrame(pooled_rows, columns=[*keys[:5], *measured])


def pictures(tables: Mapping[str, pd.DataFrame]) -> list[Picture]:
    """Every figure of a run, from its tables; a figure without data says why it is absent."""
    with mpl.rc_context(STYLE):
        return [
            _edits_picture(tables["edits"]),
            _forest_picture(tables["slrc"]),
            _position_picture(tables["edits_by_step"]),
            _agreement_picture(tables["agreement"]),
        ]


def write_figures(run_dir: str | Path) -> list[Picture]:
    """Write `figures/<name>.png`, `.pdf` and `.csv` of a run.

    A figure with nothing to draw leaves no file; its `Picture.absent` says why.
    """
    drawn = pictures(run_tables(run_dir))
    folder = existing_run(run_dir) / "figures"
    folder.mkdir(exist_ok=True)
    for picture in drawn:
        paths = {suffix: folder / f"{picture.name}.{suffix}" for suffix in ("png", "pdf", "csv")}
        if picture.figure is None:
            for path in paths.values():
                path.unlink(missing_ok=True)
            continue
        with mpl.rc_context(STYLE):
            # Neither a date nor a version of the library: the same numbers, the same bytes.
            picture.figure.savefig(paths["png"], dpi=160, metadata={"Software": None})
            nobody = {"CreationDate": None, "Producer": None, "Creator": None}
            picture.figure.savefig(paths["pdf"], metadata=nobody)
        paths["csv"].write_text(to_csv(picture.data), "utf-8", newline="\n")
    return drawn


def svg(picture: Picture) -> str:
    """The figure as inline SVG that takes its ink from the page around it.

    Black becomes `currentColor`, the ground transparent, and the colours that a dark ground
    would swallow variables of the page; ids carry the figure's name, so that several fit in
    one page.

    Raises:
        ValueError: a picture with nothing drawn.
    """
    if picture.figure is None:
        raise ValueError(f"figure {picture.name!r} was not drawn: {picture.absent}")
    file = io.StringIO()
    with mpl.rc_context(STYLE):
        picture.figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.S)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{picture.name}-", text)
    named = f'role="img" aria-labelledby="{picture.name}-title" fill="currentColor"'
    text = re.sub(r'<svg [^>]*(viewBox="[^"]*")[^>]*>', rf"<svg {named} \1>", text, count=1)
    inks = {"#000000": "currentColor", BLUE: "var(--plot-blue)", PURPLE: "var(--plot-purple)"}
    for colour, ink in inks.items():
        text = text.replace(colour.lower(), ink)
    return text


def _edits_picture(edits: pd.DataFrame) -> Picture:
    data = primary(where(edits, edit=STYLES))
    figure = None
    if len(data):
        lines = pairs_of(data)
        figure = Figure(figsize=(9, 1.1 + 0.52 * len(lines)), layout="constrained")
        ax = edit_comparison(figure.add_subplot(), data)
        _legend_above(figure, ax)
    return Picture(
        "edits",
        "Three ways to disturb a step",
        "Share of edited steps after which the answer changed, with 95 % Wilson intervals. A "
        "model that uses its steps moves to the right when a step is corrupted and the rest is "
        "written anew (triangles). Dots alone prove little: a text with a hole may be unlike any "
        "that the model has seen. The dotted line is the .30 from which the SLRC paper says that "
        "steps matter.",
        data,
        figure,
        "No step was edited.",
    )


def _forest_picture(slrc: pd.DataFrame) -> Picture:
    figure = None
    if len(slrc):
        lines = forest_rows(slrc)
        height = 1.1 + 0.3 * len(lines)
        figure = Figure(figsize=(9, height), layout="constrained")
        axes = figure.subplots(1, 3, sharey=True)
        for ax, measure in zip(axes, MEASURES, strict=True):
            forest(ax, slrc, measure)
        _legend_above(figure, axes[0])
    return Picture(
        "forest",
        "Necessity, sufficiency and SLRC",
        "Each with its 95 % interval: Wilson over pooled steps for necessity and sufficiency, a "
        "bootstrap over items for SLRC = necessity × (1 − sufficiency).",
        slrc,
        figure,
        "No item was measured.",
    )


def _position_picture(by_step: pd.DataFrame) -> Picture:
    data = primary(position_table(where(by_step, edit=STYLES)))
    figure = None
    if len(data):
        pairs = pairs_of(data)
        across = min(COLUMNS, len(pairs))
        down = math.ceil(len(pairs) / across)
        figure = Figure(figsize=(0.6 + 2.1 * across, 0.9 + 1.75 * down), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False, sharey=True)
        for ax in axes.flat[len(pairs) :]:
            ax.remove()
        for ax, (model, task) in zip(axes.flat, pairs, strict=False):
            by_position(ax, where(data, model=model, task=task))
            ax.set_title(f"{short(model)}\n{visible(task)}", fontsize=8.5)
        figure.supxlabel("place of the step in the reasoning", fontsize=9)
        figure.supylabel("share changed", fontsize=9)
        _legend_above(figure, axes[0, 0])
    return Picture(
        "position",
        "Which steps carry the answer",
        "Share of edits that change the answer, by the relative place of the edited step, with "
        "95 % Wilson bands. Where later text is frozen, only the steps that the answer is read "
        "from can show; where it is written anew, every step that leads to them shows too.",
        data,
        figure,
        "No step was edited.",
    )


def _agreement_picture(agreement: pd.DataFrame) -> Picture:
    data = where(agreement, edit="remove")
    figure = None
    if len(data):
        lines = pairs_of(data)
        figure = Figure(figsize=(9, 1.1 + 0.42 * len(lines)), layout="constrained")
        ax = agreements(figure.add_subplot(), data)
        _legend_above(figure, ax)
    return Picture(
        "agreement",
        "Do readings and framings agree?",
        "Share of step removals on which two ways of measuring say the same: the generated "
        "answer against the scored labels, the edited reasoning in its own place (prefix) "
        "against quoted in a new prompt (reprompt). Cohen's kappa is in the table.",
        data,
        figure,
        "Only one framing and one reading were run, so there is nothing to compare.",
    )


def _legend_above(figure: Figure, ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        figure.legend(
            handles,
            labels,
            loc="outside upper left",
            ncols=3 if len(labels) == 3 else 2,
            fontsize=8.5,
        )
