"""Attention of the answer to the reasoning, real against shuffled (SLRC, 2.7, Table 4)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from faithscope.experiments.analysis.measure import Measure, OfItem, calls, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture, legend_above
from faithscope.experiments.analysis.plots import BLUE, GREEN, GREY, ORANGE, panels
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import item_means, with_interval
from faithscope.experiments.studies.slrc.measures.slice import Frame, Slice, Table
from faithscope.experiments.studies.slrc.tables.outcomes import of_probe
from faithscope.probes.attention import REGIONS

SEMANTIC, POSITIONAL = 0.07, 0.05
"""Gaps from, and up to, which a model reads the content of its reasoning, or its place only."""
SHARES = ("real", "shuffled", "gap")
DROPS = tuple(f"{name}_drop" for name in SHARES)
ALLOCATED = tuple(name for name in REGIONS if name != "reasoning")
_BY_LAYER = {"real": "reasoning_by_layer", "shuffled": "shuffled_by_layer", "gap": "gap_by_layer"}


def signal(gap: float) -> str:
    """`semantic`, `borderline` or `positional`, by the thresholds that Table 4 goes by."""
    if math.isnan(gap):
        return ""
    return "semantic" if gap >= SEMANTIC else "positional" if gap <= POSITIONAL else "borderline"


def attention_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """Shares of the answer's attention, means over items with bootstrap intervals.

    `real`, `shuffled` and `gap` are means over layers and heads, `…_drop` what the mean over
    heads loses from the first layer to the last; `signal` and `signal_drop` class either gap.
    The other regions and `entropy` (nats) are of the real reasoning.
    """
    found = []
    for (model, task), same in of_probe(records, "attention"):
        row: dict[str, Any] = {"model": model, "task": task, "n": len(same)}
        shares = {name: [r[name] for r in same] for name in (*SHARES, *DROPS)}
        row |= item_means(shares, seed=seed, resamples=resamples)
        row |= {"signal": signal(row["gap"]), "signal_drop": signal(row["gap_drop"])}
        for name in (*ALLOCATED, "entropy"):
            row[name] = math.fsum(r[name] for r in same) / len(same)
        row["n_layers"], row["n_heads"] = same[0]["n_layers"], same[0]["n_heads"]
        row["question_found"] = sum(r["question_found"] for r in same)
        found.append(row)
    names = ["model", "task", "n", *with_interval(*SHARES), "signal", *with_interval(*DROPS)]
    rest = ["signal_drop", *ALLOCATED, "entropy", "n_layers", "n_heads", "question_found"]
    return pd.DataFrame(found, columns=[*names, *rest])


def attention_by_layer_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """The same per layer (from 1), means over heads and then over items; `depth` = layer / L."""
    found = []
    for (model, task), same in of_probe(records, "attention"):
        for i in range(same[0]["n_layers"]):
            row: dict[str, Any] = {"model": model, "task": task, "layer": i + 1}
            row |= {"depth": (i + 1) / same[0]["n_layers"], "n": len(same)}
            shares = {name: [r[field][i] for r in same] for name, field in _BY_LAYER.items()}
            row |= item_means(shares, seed=seed, resamples=resamples)
            for name in ALLOCATED:
                row[name] = math.fsum(r[f"{name}_by_layer"][i] for r in same) / len(same)
            row["entropy"] = math.fsum(r["entropy_by_layer"][i] for r in same) / len(same)
            found.append(row)
    names = ["model", "task", "layer", "depth", "n", *with_interval(*SHARES), *ALLOCATED]
    return pd.DataFrame(found, columns=[*names, "entropy"])


STYLES = {
    "real": (BLUE, "-", "real reasoning"),
    "shuffled": (ORANGE, "--", "steps shuffled"),
    "gap": (GREEN, "-.", "gap"),
}


def by_layer(ax: Axes, table: pd.DataFrame) -> Axes:
    """Shares of the answer's attention over the layers of one model on one task."""
    ax.axhline(0, color=GREY, lw=0.7)
    for name, (colour, line, label) in STYLES.items():
        ax.plot(table["layer"], table[name], color=colour, ls=line, lw=1.4, label=label)
        ax.fill_between(
            table["layer"],
            table[f"{name}_low"],
            table[f"{name}_high"],
            color=colour,
            alpha=0.18,
            lw=0,
        )
    ax.set_xlim(1, max(2, len(table)))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    return ax


def attention_picture(table: pd.DataFrame) -> Picture:
    """One panel per model and task."""
    figure = None
    if len(table):
        figure, axes = panels(table, by_layer, across=3, width=2.8, height=2.1)
        figure.supxlabel("layer", fontsize=9)
        figure.supylabel("share of the answer's attention", fontsize=9)
        legend_above(figure, axes[0, 0])
    return Picture(
        "attention",
        "Attention of the answer to the reasoning",
        "Share of the attention of the token before the answer that goes to the reasoning, mean "
        "over heads, with 95 % bootstrap intervals over items. Where the gap is above zero the "
        "order of the steps matters to the attention: it reads more than a place.",
        table,
        figure,
        "No item was measured.",
    )


def _shuffled_rows(records: OfItem) -> int | None:
    made = records[0].get("n_shuffles")
    return None if made is None else 1 + made


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


SLICE = Slice(
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
        Table(
            "attention",
            lambda records, a: attention_table(records, a.seed, a.resamples),
            "Attention of the answer to the reasoning, real and shuffled",
        ),
        Table(
            "attention_by_layer",
            lambda records, a: attention_by_layer_table(records, a.seed, a.resamples),
            "Attention of the answer by layer",
            folded="Layer by layer",
            draw=attention_picture,
        ),
    ),
    (
        Frame(
            "attention",
            "A row per item: where the answer's attention goes, real and shuffled.",
            (
                *(*SHARES, *DROPS, "first_token", "template", "question", "answer_prefix"),
                *("entropy", "n_steps", "excluded"),
            ),
        ),
    ),
    OF_ATTENTION,
    {
        "real_drop": "real, drop",
        "shuffled_drop": "shuffled, drop",
        "gap_drop": "gap, drop",
        "signal_drop": "signal, drop",
        "first_token": "first token",
        "answer_prefix": "answer prefix",
        "n_heads": "heads",
        "question_found": "question found",
        "n_layers": "layers",
    },
    reasons={
        "no_attention_rows": "model gives no attention rows",
        "steps_have_one_order": "steps have one order only",
    },
)
