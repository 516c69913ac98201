"""Report of rigidity: the layer from which the answer is settled (SLRC, 2.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis import item_view
from faithscope.experiments.analysis.axes import (
    legend_above,
    narrow,
    share_rise,
    share_ticks,
    sheet,
)
from faithscope.experiments.analysis.cells import (
    Boot,
    Count,
    Kept,
    Share,
    Values,
    boot_medians,
    boots,
    rows_known,
)
from faithscope.experiments.analysis.colours import LINES
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, calls, value
from faithscope.experiments.analysis.record_frames import (
    COUNTED,
    LAYER_AND_DEPTH,
    N_LAYERS,
    STATED,
    item_table,
    per_layer,
)
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.analysis.wording import pairs_of
from faithscope.experiments.studies.slrc.figures.per_pair import of_pairs, over_depth, picture
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.measures.flow import LAYERS

BY_DEPTH = (25, 50, 75)
"""Percentages of depth by which items are counted as stable."""

LENS = Column("lens", meaning="The lens that layers are read with.")
STABLE_LAYER = Column(
    "stable_layer", "stable layer, mean", "From it on the lens gives the final token."
)
MEDIAN_LAYER = Column(
    "median_layer",
    "stable layer, median",
    "Median over items of the layer from which on the lens gives the final token.",
)
STABLE_DEPTH = Column(
    "depth", meaning="Mean over items of the stable layer over the number of layers."
)
MEDIAN_DEPTH = Column(
    "median_depth", meaning="Median over items of the stable layer over the number of layers."
)
N_OPTIONS = Count(
    "n_options",
    rows_known("option_stable_layer"),
    "items (answers)",
    "Items whose answers begin with different tokens.",
)


def _stable_by(percent: int) -> Values:
    return lambda rows: 100 * rows["stable_layer"] <= percent * rows["n_layers"]


def _settled(column: Column, field: str) -> Share:
    """Share of the items that are stable by the layer of the row, of those that can be read."""
    return Share(
        column.name,
        lambda rows: rows[field] <= rows["layer"],
        rows_known(field),
        column.label,
        column.meaning,
    )


def _by_lens(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sort_values(["model", "task", "lens"], kind="stable")


def newly_stable(by_layer: pd.DataFrame) -> pd.DataFrame:
    """`rigidity_by_layer` with a column `share` of items whose stable layer is exactly this one."""
    table = by_layer.copy()
    before = table.groupby(["model", "task", "lens"], sort=False)["stable"].shift(fill_value=0.0)
    return table.assign(share=table["stable"] - before)


def _drawn(data: pd.DataFrame) -> Figure:
    figure = sheet(4.6 if narrow() else 2.6)
    left, right = figure.subplots(2 if narrow() else 1, 1 if narrow() else 2)
    pairs = pairs_of(data)
    for i, (model, task) in enumerate(pairs):
        line = where(data, model=model, task=task)
        width = 0.8 / len(line) / len(pairs)
        at = line["depth"] + (i - (len(pairs) - 1) / 2) * width
        left.bar(at, line["share"], width, color=LINES[i % len(LINES)][0])
    share_ticks(left.xaxis)
    share_ticks(left.yaxis)
    left.set(xlim=(0, 1.15), ylim=(0, 1.04))
    left.set(xlabel="depth (layer over layers)", ylabel="items whose stable layer it is")
    share_rise(over_depth(of_pairs(right, data, "depth", "stable")))
    right.set(ylabel="items stable by this layer")
    legend_above(figure, right)
    return figure


rigidity_picture = picture(
    "rigidity",
    "When the answer is settled",
    "From which layer on the lens gives the token that the model itself puts first after the "
    "answer cue: how many items settle at a layer (left), and how many have settled by it, "
    "with 95 % Wilson intervals (right). Early is what the SLRC paper calls rigid; but the "
    "first token may be one that follows any reasoning: the table says how often it begins "
    "an answer.",
    _drawn,
)


def _of_trace(record: Record, arrays: Mapping[str, Any]) -> Iterator[item_view.Curve]:
    if record.get("excluded"):
        return
    yield item_view.Curve(
        f"{record['lens'].capitalize()} lens: the final token {record['final_token']!r}, by layer",
        "layer",
        "log-prob, nats",
        range(1, record["n_layers"] + 1),
        {"log-prob": record["log_prob"]},
        [f"puts {token!r} first" for token in record["top"]],
    )


REPORT = MeasureReport(
    "rigidity",
    LAYERS,
    (
        item_table(
            "rigidity",
            (
                COUNTED,
                STATED,
                Kept((N_LAYERS,)),
                *boots({STABLE_LAYER: "stable_layer"}),
                *boot_medians({MEDIAN_LAYER: "stable_layer"}),
                *boots({STABLE_DEPTH: "depth"}),
                *boot_medians({MEDIAN_DEPTH: "depth"}),
                *(
                    Share(
                        f"stable_by_{percent}",
                        _stable_by(percent),
                        rows_known("stable_layer"),
                        f"stable by {percent} %",
                        f"Items stable by {percent} % of the layers.",
                    )
                    for percent in BY_DEPTH
                ),
                Share(
                    "top_is_option",
                    "top_is_option",
                    rows_known("top_is_option"),
                    "first token is an answer's",
                    "Items whose final token begins an answer; else it may follow any reasoning.",
                ),
                N_OPTIONS,
                *boots(
                    {
                        Column(
                            "option_layer",
                            "stable layer among answers",
                            "The stable layer among the answers' tokens alone.",
                        ): "option_stable_layer",
                        Column(
                            "option_depth",
                            "depth among answers",
                            "The stable layer among the answers' tokens over the number of layers, "
                            "mean over items.",
                        ): "option_depth",
                    }
                ),
            ),
            keys=(LENS,),
            prepare=_by_lens,
            alike=("n_layers",),
            caption="The layer from which the lens gives the model's own token",
        ),
        item_table(
            "rigidity_by_layer",
            (
                COUNTED,
                _settled(
                    Column("stable", meaning="Share of items that are stable from this layer on."),
                    "stable_layer",
                ),
                Boot(
                    "log_prob",
                    label="log-prob of the final token",
                    meaning="By the lens at this layer.",
                    unit="nats",
                ),
                N_OPTIONS,
                _settled(
                    Column(
                        "option_stable",
                        "stable among answers",
                        "Share of the items (answers) whose likeliest answer is the final one "
                        "from this layer on.",
                    ),
                    "option_stable_layer",
                ),
            ),
            of="rigidity",
            keys=(LENS,),
            along=LAYER_AND_DEPTH,
            alike=("n_layers",),
            prepare=lambda frame: per_layer(
                ("lens", "stable_layer", "option_stable_layer"), log_prob="log_prob"
            )(_by_lens(frame)),
            caption="Items settled from each layer on",
            folded="Rigidity, layer by layer",
            draw=lambda by_layer: rigidity_picture(newly_stable(by_layer)),
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
        # An early stable layer is rigid.
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
    over_steps=False,
    of_trace=_of_trace,
)
