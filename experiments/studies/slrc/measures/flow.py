"""Information flow: where the reasoning is like the answer token (SLRC, 2.7), over items."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.axes import legend_above
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, calls, value
from faithscope.experiments.studies.slrc.parts import LAYERS, of_pairs, over_depth, picture
from faithscope.experiments.studies.slrc.slice import Frame, Slice, Table

ITEMS = kit.grouped("flow", alike=("n_layers",))
_PEAK = ("peak_layer", "peak_depth", "peak_value")


def _peak(curves: np.ndarray) -> np.ndarray:
    """Layer (from 1), depth and height of the mean curve's peak."""
    curve = curves.mean(0)
    layer = 1 + curve.argmax()
    return np.array([layer, layer / len(curve), curve.max()])


def _drawn(by_layer: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = over_depth(of_pairs(figure.add_subplot(), by_layer, "depth", "cosine"))
    ax.set(ylabel="cosine")
    legend_above(figure, ax)
    return figure


flow_picture = picture(
    "flow",
    "Where the reasoning is like the answer token",
    "Cosine between the mean state of the reasoning and the answer token's at the same "
    "layer, mean over items with 95 % bootstrap intervals. States of one layer share a "
    "direction in most models, so the height alone says little.",
    _drawn,
)

SLICE = Slice(
    "flow",
    LAYERS,
    (
        Table(
            "flow",
            kit.item_table(
                ITEMS,
                kit.COUNTED,
                kit.first("n_layers"),
                kit.drawn(_PEAK, lambda same: np.array([r["cosine"] for r in same]), _peak),
                kit.means({f"item_{name}": name for name in _PEAK}),
            ),
            "The layer at which reasoning and answer token are most alike",
            over_steps=False,
        ),
        Table(
            "flow_by_layer",
            kit.curve_table(
                ITEMS,
                *kit.LAYERS_OF_ALL,
                kit.COUNTED,
                *kit.mean_curves({"cosine": "cosine", "token_cosine": "token_cosine"}),
            ),
            "Cosine of reasoning and answer token",
            folded="Information flow, layer by layer",
            draw=flow_picture,
            over_steps=False,
        ),
    ),
    (
        Frame(
            "flow",
            "A row per item: cosines of reasoning and answer token by layer, and their peak.",
            (
                *("n_layers", "n_tokens", "peak_layer", "peak_depth", "peak_value", "cosine"),
                *("token_cosine", "steps", "step_peak_layers"),
            ),
        ),
    ),
    (
        # a late peak is integration after the answer was fixed (SLRC, 2.7)
        Measure(
            "flow_peak_depth",
            "flow",
            "internal",
            value("peak_depth"),
            calls(1),
            higher_is_faithful=False,
            in_short="information flow: peak layer",
        ),
    ),
    (
        Column("peak_layer", meaning="Where the mean curve over items peaks."),
        Column("peak_depth", meaning="The same over the number of layers."),
        Column("peak_value", meaning="The cosine there."),
        Column("item_peak_layer", "peak layer, mean of items", "Mean of the items' own peaks."),
        Column(
            "item_peak_depth",
            "peak depth, mean of items",
            "Mean over items of each item's own peak layer over the number of layers.",
        ),
        Column(
            "item_peak_value",
            "peak value, mean of items",
            "Mean over items of the cosine at each item's own peak.",
        ),
        Column("cosine", meaning="Of the mean state of the reasoning and the answer token's."),
        Column("token_cosine", meaning="Mean over the tokens of the reasoning, each by itself."),
    ),
)
