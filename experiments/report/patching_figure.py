"""Where in the model a step's content is: shares restored by layer and place."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.report.picture import Picture
from faithscope.experiments.report.plots import pairs_of, short
from faithscope.experiments.report.short_names import middle_cut
from faithscope.experiments.tables.textual import visible
from faithscope.experiments.tables.tidy import where

_TITLES = {
    ("step", "residual"): "step's tokens, residual stream",
    ("step", "attention"): "step's tokens, attention",
    ("step", "mlp"): "step's tokens, MLP",
    ("answer", "residual"): "answer's tokens, residual stream",
    ("answer", "attention"): "answer's tokens, attention",
    ("answer", "mlp"): "answer's tokens, MLP",
}


def layer_by_step(ax: Axes, table: pd.DataFrame) -> Axes:
    """Share restored, layers upwards, places of the step from first to last."""
    grid = table.pivot_table(index="layer", columns="position", values="share", dropna=False)
    colours = np.clip(grid.to_numpy(dtype=float), -1, 1)
    image = ax.imshow(
        colours, origin="lower", aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1, rasterized=True
    )
    ax.set_xticks(range(len(grid.columns)), [f"{p:.1f}" for p in grid.columns])
    ax.set_yticks(range(len(grid.index)), [str(layer) for layer in grid.index])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02, ticks=[-1, 0, 1])  # pyright: ignore
    return ax


def patching_picture(table: pd.DataFrame) -> Picture:
    """A row per model and task, a map for each place and site, denoising."""
    direction = "denoise" if "denoise" in set(table["direction"]) else "noise"
    data = where(table, direction=direction)
    figure = None
    if len(data):
        pairs = pairs_of(data)
        present = set(zip(data["place"], data["site"], strict=True))
        kinds = [kind for kind in _TITLES if kind in present]
        size = (1.2 + 2.3 * len(kinds), 0.8 + 2.0 * len(pairs))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(pairs), len(kinds), squeeze=False)
        for line, (model, task) in zip(axes, pairs, strict=True):
            for ax, (place, site) in zip(line, kinds, strict=True):
                of = where(data, model=model, task=task, place=place, site=site)
                if len(of):
                    layer_by_step(ax, of)
                else:
                    ax.set_axis_off()
            named = middle_cut(short(model), 30)
            line[0].set_ylabel(f"{named}\n{visible(task)}\nlayer", fontsize=8.5)
        for ax, kind in zip(axes[0], kinds, strict=True):
            ax.set_title(_TITLES[kind], fontsize=8.5)
        figure.supxlabel("place of the step in the reasoning", fontsize=9)
    return Picture(
        "patching",
        "Where is the step, layer by layer?",
        "Share of the answer's log-odds that comes back when the states of the real run are put "
        "into the run with a corrupted step, at the step's own tokens and at those that ask for "
        "the answer. Where the first fade and the second come up, the step is read. Only steps "
        "whose corruption moves the answer are patched.",
        data,
        figure,
        "No corrupted step moved the answer, so there was nothing to restore.",
    )
