"""Report of information flow: similarity of reasoning states to the answer token (SLRC, 2.7)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import legend_above, sheet
from faithscope.experiments.analysis.cells import Bootstrapped, Kept, boots
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, calls, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import (
    COUNTED,
    LAYER_AND_DEPTH,
    N_LAYERS,
    STATED,
    item_table,
    per_layer,
)
from faithscope.experiments.studies.slrc.figures.per_pair import of_pairs, over_depth, picture
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport

_PEAK = (
    Column("peak_layer", meaning="The layer at which the mean curve over items peaks."),
    Column("peak_depth", meaning="The peak layer over the number of layers."),
    Column("peak_value", meaning="The cosine at the peak of the mean curve over items."),
)
_OF_ITEMS = {
    Column("item_peak_layer", "peak layer, mean of items", "Mean of the items' own peaks."): (
        "peak_layer"
    ),
    Column(
        "item_peak_depth",
        "peak depth, mean of items",
        "Mean over items of each item's own peak layer over the number of layers.",
    ): "peak_depth",
    Column(
        "item_peak_value",
        "peak value, mean of items",
        "Mean over items of the cosine at each item's own peak.",
    ): "peak_value",
}
_COSINES = (
    Column("cosine", meaning="Cosine of the mean state of the reasoning and the answer token's."),
    Column(
        "token_cosine",
        meaning="Cosine with the answer token's state, mean over the tokens of the reasoning.",
    ),
)
LAYERS = Section(
    "layers",
    "By layer",
    "Inside the model, at the token whose logits give the answer's first token (§2.7). Depth is "
    "the layer over the number of layers; the embeddings are layer 0 and count for neither.",
)


def _peak(curves: np.ndarray) -> np.ndarray:
    """Layer (from 1), depth and height of the peak of the mean curve."""
    curve = curves.mean(0)
    layer = 1 + curve.argmax()
    return np.array([layer, layer / len(curve), curve.max()])


def _drawn(by_layer: pd.DataFrame) -> Figure:
    figure = sheet(2.6, 4.5)
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

REPORT = MeasureReport(
    "flow",
    LAYERS,
    (
        item_table(
            "flow",
            (
                COUNTED,
                STATED,
                Kept((N_LAYERS,)),
                Bootstrapped(_PEAK, lambda rows: np.array(rows["cosine"].tolist()), _peak),
                *boots(_OF_ITEMS),
            ),
            alike=("n_layers",),
            caption="The layer at which reasoning and answer token are most alike",
        ),
        item_table(
            "flow_by_layer",
            (COUNTED, *boots(_COSINES)),
            of="flow",
            along=LAYER_AND_DEPTH,
            alike=("n_layers",),
            prepare=per_layer(cosine="cosine", token_cosine="token_cosine"),
            caption="Cosine of reasoning and answer token",
            folded="Information flow, layer by layer",
            draw=flow_picture,
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
        # A late peak means that information is integrated after the answer was fixed (SLRC, 2.7).
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
    over_steps=False,
)
