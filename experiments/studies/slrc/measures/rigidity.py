"""Rigidity map: from which layer the answer is settled (SLRC, 2.7), over items.

Layers are 1..L and depth is layer / L. Intervals are percentile bootstraps over items, those
of shares Wilson's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.measure import Measure, calls, value
from faithscope.experiments.analysis.picture import Picture, legend_above
from faithscope.experiments.analysis.plots import LINES, share_ticks
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.stats import NOTHING, Estimate
from faithscope.experiments.analysis.tidy import columns, distinct, rows, where, with_interval
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.studies.slrc.measures.over_layers import (
    LAYERS,
    PAIR,
    as_depth,
    by_depth,
    by_model,
    over_items,
)
from faithscope.experiments.studies.slrc.measures.slice import Frame, Slice, Table

BY_DEPTH = (25, 50, 75)
"""Percent of the layers by which items are counted as stable."""
_WIDE = (9, 4)


def rigidity_table(records: Iterable[Record], *, seed: int, resamples: int) -> pd.DataFrame:
    """A row per model, task and lens: the stable layer over items.

    `stable_layer` and `depth` are means, `median_layer` and `median_depth` medians;
    `stable_by_25`: the share of items whose stable layer is at most at 25 % depth.
    `top_is_option`: the share whose first token begins an answer. `option_*`: the same among
    the answers alone, over the `n_options` items where that could be read.
    """
    made = []
    for key, mine in by_model(records, "rigidity", "lens"):
        layers, found = mine[0]["n_layers"], _stable(mine, "stable_layer")
        among = _stable(mine, "option_stable_layer")
        mean, median = _spread(found, seed, resamples)
        option_mean, _ = _spread(among, seed, resamples)
        told = [r["top_is_option"] for r in mine if r["top_is_option"] is not None]
        row = key | {"n": len(mine), "n_layers": layers}
        row |= columns("stable_layer", mean) | columns("median_layer", median)
        row |= columns("depth", as_depth(mean, layers))
        row |= columns("median_depth", as_depth(median, layers))
        for percent in BY_DEPTH:
            by = [100 * int(x) <= percent * layers for x in found]
            row |= columns(f"stable_by_{percent}", stats.share(by))
        row |= columns("top_is_option", stats.share(told)) | {"n_options": len(among)}
        row |= columns("option_layer", option_mean)
        made.append(row | columns("option_depth", as_depth(option_mean, layers)))
    names = ["stable_layer", "median_layer", "depth", "median_depth"]
    names += [*(f"stable_by_{p}" for p in BY_DEPTH), "top_is_option"]
    ordered = [*PAIR, "lens", "n", "n_layers", *with_interval(*names), "n_options"]
    ordered += with_interval("option_layer", "option_depth")
    return pd.DataFrame(made, columns=ordered)


def rigidity_by_layer_table(
    records: Iterable[Record], *, seed: int, resamples: int
) -> pd.DataFrame:
    """A row per model, task, lens and layer: the share of items stable from there on.

    `log_prob`: the mean log-probability (nats) that the lens gives there to the token which
    the model itself puts first.
    """
    made = []
    for key, mine in by_model(records, "rigidity", "lens"):
        found, among = _stable(mine, "stable_layer"), _stable(mine, "option_stable_layer")
        said = stats.bootstrapped(
            np.array([r["log_prob"] for r in mine]), over_items, seed=seed, resamples=resamples
        )
        for i, log_prob in enumerate(said):
            layer = i + 1
            row = key | {"layer": layer, "depth": layer / len(said), "n": len(mine)}
            row |= columns("stable", stats.share([bool(x <= layer) for x in found]))
            row |= columns("log_prob", log_prob) | {"n_options": len(among)}
            among_by = stats.share([bool(x <= layer) for x in among])
            made.append(row | columns("option_stable", among_by))
    ordered = [*PAIR, "lens", "layer", "depth", "n", *with_interval("stable", "log_prob")]
    return pd.DataFrame(made, columns=[*ordered, "n_options", *with_interval("option_stable")])


def _stable(records: Sequence[Record], name: str) -> np.ndarray:
    return np.array([r[name] for r in records if r[name] is not None], dtype=float)


def _spread(values: np.ndarray, seed: int, resamples: int) -> tuple[Estimate, Estimate]:
    """Mean and median."""
    if not len(values):
        return NOTHING, NOTHING

    def both(x: np.ndarray) -> np.ndarray:
        return np.array([x.mean(), np.median(x)])

    mean, median = stats.bootstrapped(values[:, None], both, seed=seed, resamples=resamples)
    return mean, median


def newly_stable(by_layer: pd.DataFrame) -> pd.DataFrame:
    """`rigidity_by_layer` with `share`: of items whose stable layer is this very one."""
    table = by_layer.copy()
    before = table.groupby(["model", "task", "lens"], sort=False)["stable"].shift(fill_value=0.0)
    return table.assign(share=table["stable"] - before)


def rigidity_picture(by_layer: pd.DataFrame) -> Picture:
    """Histogram of the stable layer, and the share of items stable from each depth on."""
    data = newly_stable(by_layer)
    figure = None
    if len(data):
        figure = Figure(figsize=_WIDE, layout="constrained")
        left, right = figure.subplots(1, 2)
        pairs = sorted(distinct(data, "model", "task"), key=lambda p: model_order(p["model"]))
        for i, pair in enumerate(pairs):
            line = rows(where(data, **pair))
            width = 0.8 / len(line) / len(pairs)
            at = [r["depth"] + (i - (len(pairs) - 1) / 2) * width for r in line]
            left.bar(at, [r["share"] for r in line], width, color=LINES[i % len(LINES)][0])
        share_ticks(left.xaxis)
        share_ticks(left.yaxis)
        left.set(xlim=(0, 1.15), ylim=(0, 1.04))
        left.set(xlabel="depth (layer over layers)", ylabel="items whose stable layer it is")
        by_depth(right, data, "stable")
        share_ticks(right.yaxis)
        right.set(ylim=(0, 1.04), ylabel="items stable by this layer")
        legend_above(figure, right)
    return Picture(
        "rigidity",
        "When the answer is settled",
        "From which layer on the lens gives the token that the model itself puts first after the "
        "answer cue: how many items settle at a layer (left), and how many have settled by it, "
        "with 95 % Wilson intervals (right). Early is what the SLRC paper calls rigid; but the "
        "first token may be one that follows any reasoning: the table says how often it begins "
        "an answer.",
        data,
        figure,
        "No item was measured.",
    )


SLICE = Slice(
    "rigidity",
    LAYERS,
    (
        Table(
            "rigidity",
            lambda records, a: rigidity_table(records, seed=a.seed, resamples=a.resamples),
            "The layer from which the lens gives the model's own token",
            over_steps=False,
        ),
        Table(
            "rigidity_by_layer",
            lambda records, a: rigidity_by_layer_table(records, seed=a.seed, resamples=a.resamples),
            "Items settled from each layer on",
            folded="Rigidity, layer by layer",
            draw=rigidity_picture,
            over_steps=False,
        ),
    ),
    (
        Frame(
            "rigidity",
            "A row per item: the layer from which the lens gives the model's own token.",
            (
                *("lens", "n_layers", "stable_layer", "depth", "final_token", "top", "log_prob"),
                *("top_is_option", "no_options", "option_stable_layer", "option_depth"),
                "option_top",
            ),
        ),
    ),
    (
        # early is rigid
        Measure(
            "rigidity_depth",
            "rigidity",
            "internal",
            value("depth"),
            calls(1),
            in_short="rigidity map: stable layer",
        ),
        Measure("rigidity_option_depth", "rigidity", "internal", value("option_depth"), calls(1)),
    ),
    {
        "n_layers": "layers",
        "stable_layer": "stable layer, mean",
        "median_layer": "stable layer, median",
        "stable_by_25": "stable by 25 %",
        "stable_by_50": "stable by 50 %",
        "stable_by_75": "stable by 75 %",
        "top_is_option": "first token is an answer's",
        "n_options": "items (answers)",
        "option_layer": "stable layer among answers",
        "option_depth": "depth among answers",
        "option_stable": "stable among answers",
        "log_prob": "log-prob of the final token",
    },
)
