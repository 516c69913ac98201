"""Attention of the answer to the reasoning, real against shuffled (SLRC, 2.7, Table 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from faithscope.experiments.analysis.cells import Kept, Number, Total, boots, means
from faithscope.experiments.analysis.colours import BLUE, GREEN, GREY, ORANGE, Style
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.item_view import HeatMap
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import (
    COUNTED,
    LAYER_AND_DEPTH,
    N_LAYERS,
    STATED,
    item_table,
    per_layer,
)
from faithscope.experiments.analysis.statistics.stats import FEWEST, ROUNDING
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tidy import numbers
from faithscope.experiments.studies.slrc.figures.per_pair import per_pair, picture
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport, Monitor
from faithscope.experiments.studies.slrc.step_reports import span_table

SEMANTIC, POSITIONAL = 0.07, 0.05
"""Attention gaps that separate models that read the reasoning's content (`SEMANTIC` or more) from
those that read only positions (`POSITIONAL` or less)."""
SHARES = (
    Column("real", meaning="Share of the answer's attention that goes to the reasoning."),
    Column(
        "shuffled",
        meaning="Share of the answer's attention that goes to the reasoning with its steps in "
        "another order.",
    ),
    Column("gap", meaning="Real minus shuffled: what the order of the steps is worth."),
)
DROPS = (
    Column("real_drop", "real, drop", "First layer minus last, mean over heads."),
    Column("shuffled_drop", "shuffled, drop", "First layer minus last, steps shuffled."),
    Column("gap_drop", "gap, drop", "Drop of the real reasoning minus that of the shuffled."),
)
OTHERS = (
    Column("first_token", "first token", "Share that goes to the first token."),
    Column(
        "template", meaning="Share of the answer's attention that goes to the rest of the prompt."
    ),
    Column("question", meaning="Share of the answer's attention that goes to the question."),
    Column("answer_prefix", "answer prefix", "Share that goes to the words of the answer cue."),
    Column("entropy", unit="nats", meaning="Entropy of the attention, mean over heads."),
)
"""Columns for the rest of the answer's attention: its targets, and how spread it is."""
_BY_LAYER = {c.name: f"{c.name}_by_layer" for c in (*SHARES, *OTHERS)}
_BY_LAYER |= {"real": "reasoning_by_layer"}
"""Column -> field with its values by layer."""


def signal(gap: float) -> str:
    """Class of a gap by the thresholds of Table 4: `semantic`, `borderline` or `positional`; empty
    for an unknown one."""
    if math.isnan(gap):
        return ""
    return "semantic" if gap >= SEMANTIC else "positional" if gap <= POSITIONAL else "borderline"


def _signal_of(field: str) -> Callable[[pd.DataFrame], str]:
    """Maps the rows of items to the class of their mean gap; to no class where there are too few
    for an interval, or none differs from the others."""

    def of(rows: pd.DataFrame) -> str:
        gaps = numbers(rows[field].dropna())
        known = len(gaps) >= FEWEST and np.ptp(gaps) > ROUNDING
        return signal(float(gaps.mean())) if known else ""

    return of


TO_SPANS = (
    Column("share", meaning="Share of the queries' attention that goes to the span."),
    Column(
        "density",
        meaning="The share over what the span's length alone would bring it, both without the "
        "first token.",
    ),
)


def _finish(ax: Axes) -> None:
    ax.axhline(0, color=GREY, lw=0.7)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(color=GREY, alpha=0.25, lw=0.5)


attention_picture = picture(
    "attention",
    "Attention of the answer to the reasoning",
    "Share of the attention of the token before the answer that goes to the reasoning, mean "
    "over heads, with 95 % bootstrap intervals over items. Where the gap is above zero the "
    "order of the steps matters to the attention: it reads more than a place.",
    per_pair(
        "layer",
        {
            "real": Style(BLUE, "", "real reasoning"),
            "shuffled": Style(ORANGE, "", "steps shuffled"),
            "gap": Style(GREEN, "", "gap"),
        },
        ("layer", "share of the answer's attention"),
        _finish,
    ),
)


def _shuffled_rows(records: OfItem) -> int | None:
    n_shuffles = records[0].get("n_shuffles")
    return None if n_shuffles is None else 1 + n_shuffles


OF_ATTENTION = (
    Measure(
        "attention_reasoning",
        "attention",
        "internal",
        value("real"),
        calls(1),
        steps=listed("by_step"),
        in_short="attention to the reasoning",
    ),
    Measure(
        "attention_gap",
        "attention",
        "internal",
        value("gap"),
        _shuffled_rows,
        in_short="attention, real − shuffled",
    ),
    Measure("attention_gap_drop", "attention", "internal", value("gap_drop"), _shuffled_rows),
)


def _of_trace(record: Record, arrays: Mapping[str, Any]) -> Iterator[HeatMap]:
    if record.get("excluded") or "steps" not in arrays:
        return
    shares = arrays["steps"].mean(axis=1)
    yield HeatMap(
        "Attention of the answer to each step, mean over heads",
        "layer",
        "step",
        [str(layer + 1) for layer in range(len(shares))],
        [str(step + 1) for step in record["steps"]],
        shares.tolist(),
    )


REPORT = MeasureReport(
    "attention",
    Section(
        "inside",
        "Inside the model",
        "Of the attention of the token before the answer, how much goes to the reasoning, and how "
        "much still goes there when the steps stand in another order? A gap of 7 points or more "
        "counts as semantic, of 5 or less as positional (SLRC, Table 4). Shares are means over "
        "layers and heads; “drop” is what the mean over heads loses from the first layer to the "
        "last.",
    ),
    (
        item_table(
            "attention",
            (
                COUNTED,
                STATED,
                *boots(SHARES),
                Number(
                    "signal",
                    _signal_of("gap"),
                    meaning=f"Semantic from a gap of {SEMANTIC}, positional to {POSITIONAL}; "
                    "empty without an interval of the gap.",
                ),
                *boots(DROPS),
                Number(
                    "signal_drop",
                    _signal_of("gap_drop"),
                    "signal, drop",
                    "The class of the gap's drop.",
                ),
                *means(OTHERS),
                Kept((N_LAYERS, Column("n_heads", "heads", "Attention heads of one layer."))),
                Total(
                    "question_found",
                    label="question found",
                    meaning="Items whose question was found in the prompt.",
                ),
            ),
            alike=("n_layers",),
            caption="Attention of the answer to the reasoning, real and shuffled",
        ),
        item_table(
            "attention_by_layer",
            (COUNTED, *boots(SHARES), *means(OTHERS)),
            of="attention",
            along=LAYER_AND_DEPTH,
            alike=("n_layers",),
            prepare=per_layer(**_BY_LAYER),
            caption="Attention of the answer by layer",
            folded="Layer by layer",
            draw=attention_picture,
        ),
        span_table(
            "attention_spans",
            "attention",
            {
                Column("queries", meaning="Whose attention: the answer's, or a span's."): (
                    "span_queries"
                ),
                Column("span", meaning="Name of the declared span that is looked at."): (
                    "span_names"
                ),
            },
            dict(zip(TO_SPANS, ("span_shares", "span_densities"), strict=True)),
            caption="Attention to declared spans",
        ),
    ),
    (
        Frame(
            "attention",
            "A row per item: where the answer's attention goes, real and shuffled.",
            (*(column.name for column in (*SHARES, *DROPS, *OTHERS)), *("n_steps", "excluded")),
        ),
    ),
    OF_ATTENTION,
    reasons={
        "no_attention_rows": "model gives no attention rows",
        "steps_have_one_order": "steps have one order only",
    },
    monitor=Monitor("attention_by_layer", lambda record, arrays: record["reasoning_by_layer"]),
    of_trace=_of_trace,
)
