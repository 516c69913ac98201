"""Information flow: where the reasoning is like the answer token (SLRC, 2.7), over items.

Layers are 1..L and depth is layer / L. Intervals are percentile bootstraps over items, those
of shares Wilson's.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.measure import Measure, calls, value
from faithscope.experiments.analysis.picture import Picture, legend_above
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import columns, with_interval
from faithscope.experiments.studies.slrc.measures.over_layers import (
    LAYERS,
    PAIR,
    as_depth,
    by_depth,
    by_model,
    over_items,
)
from faithscope.experiments.studies.slrc.measures.slice import Frame, Slice, Table


def flow_table(records: Iterable[Record], *, seed: int, resamples: int) -> pd.DataFrame:
    """A row per model and task: where the cosine of reasoning and answer token peaks.

    `peak_*` are those of the mean curve over items, as the paper's one number per model
    seems to be; `item_peak_*` the means of the items' own peaks. The interval of a peak's
    layer is that of the drawn curves' peaks.
    """
    made = []
    for key, mine in by_model(records, "flow"):
        boot = partial(stats.bootstrapped, seed=seed, resamples=resamples)
        layers = mine[0]["n_layers"]
        layer, value = boot(np.array([r["cosine"] for r in mine]), _peak)
        own = np.array([[r["peak_layer"], r["peak_value"]] for r in mine], dtype=float)
        own_layer, own_value = boot(own, over_items)
        row = key | {"n": len(mine), "n_layers": layers}
        row |= columns("peak_layer", layer) | columns("peak_depth", as_depth(layer, layers))
        row |= columns("peak_value", value) | columns("item_peak_layer", own_layer)
        row |= columns("item_peak_depth", as_depth(own_layer, layers))
        made.append(row | columns("item_peak_value", own_value))
    names = [f"{whose}peak_{what}" for whose in ("", "item_") for what in _PEAK]
    return pd.DataFrame(made, columns=[*PAIR, "n", "n_layers", *with_interval(*names)])


_PEAK = ("layer", "depth", "value")


def flow_by_layer_table(records: Iterable[Record], *, seed: int, resamples: int) -> pd.DataFrame:
    """A row per model, task and layer: mean cosine over items.

    `cosine` is of the reasoning's mean state, `token_cosine` the mean over its tokens' own.
    """
    made = []
    for key, mine in by_model(records, "flow"):
        boot = partial(stats.bootstrapped, seed=seed, resamples=resamples)
        whole = boot(np.array([r["cosine"] for r in mine]), over_items)
        tokens = boot(np.array([r["token_cosine"] for r in mine]), over_items)
        for i, (one, other) in enumerate(zip(whole, tokens, strict=True)):
            row = key | {"layer": i + 1, "depth": (i + 1) / len(whole), "n": len(mine)}
            made.append(row | columns("cosine", one) | columns("token_cosine", other))
    ordered = [*PAIR, "layer", "depth", "n", *with_interval("cosine", "token_cosine")]
    return pd.DataFrame(made, columns=ordered)


def _peak(curves: np.ndarray) -> np.ndarray:
    """Layer (from 1) and height of the mean curve's peak."""
    curve = curves.mean(0)
    return np.array([1 + curve.argmax(), curve.max()])


def flow_picture(by_layer: pd.DataFrame) -> Picture:
    """Cosine of reasoning and answer token over depth."""
    figure = None
    if len(by_layer):
        figure = Figure(figsize=(6, 4), layout="constrained")
        ax = by_depth(figure.add_subplot(), by_layer, "cosine")
        ax.set(ylabel="cosine")
        legend_above(figure, ax)
    return Picture(
        "flow",
        "Where the reasoning is like the answer token",
        "Cosine between the mean state of the reasoning and the answer token's at the same "
        "layer, mean over items with 95 % bootstrap intervals. States of one layer share a "
        "direction in most models, so the height alone says little.",
        by_layer,
        figure,
        "No item was measured.",
    )


SLICE = Slice(
    "flow",
    LAYERS,
    (
        Table(
            "flow",
            lambda records, a: flow_table(records, seed=a.seed, resamples=a.resamples),
            "The layer at which reasoning and answer token are most alike",
            over_steps=False,
        ),
        Table(
            "flow_by_layer",
            lambda records, a: flow_by_layer_table(records, seed=a.seed, resamples=a.resamples),
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
    {
        "n_layers": "layers",
        "item_peak_layer": "peak layer, mean of items",
        "item_peak_depth": "peak depth, mean of items",
        "item_peak_value": "peak value, mean of items",
    },
)
