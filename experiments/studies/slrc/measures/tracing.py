"""Answer tracing over items: when the answer is there, and which steps brought it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.plots import BLUE, GREY, panels, share_ticks
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import columns, item_means, mean, present, with_interval
from faithscope.experiments.studies.slrc.measures.slice import (
    Frame,
    Slice,
    Table,
    per_step,
)
from faithscope.experiments.studies.slrc.tables.label_mass import MASS_COLUMNS, mass_columns
from faithscope.experiments.studies.slrc.tables.outcomes import of_probe
from faithscope.probes.tracing import POSITIONS

MEANS = ("p_before", "p_after", "rise", "early_depth", "horizon_depth", "largest", "spearman")


def tracing_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """Means over items with bootstrap intervals; see `probes.tracing` for each measure.

    `settled_before` is the share of items whose answer stands before any reasoning (early
    answering), `no_horizon` of those in which no step has an effect, with Wilson intervals.
    """
    found = []
    for (model, task), same in of_probe(records, "tracing"):
        row: dict[str, Any] = {"model": model, "task": task, "n": len(same)}
        means = {name: present(r[name] for r in same) for name in MEANS}
        row |= item_means(means, seed=seed, resamples=resamples)
        row |= columns("settled_before", stats.share([r["early"] == 0 for r in same]))
        row |= columns("no_horizon", stats.share([r["horizon"] == 0 for r in same]))
        row |= mass_columns(same, seed=seed, resamples=resamples)
        found.append(row | {"n_steps": sum(r["n_steps"] for r in same)})
    names = ["model", "task", "n", *with_interval(*MEANS, "settled_before", "no_horizon")]
    return pd.DataFrame(found, columns=[*names, "n_steps", *MASS_COLUMNS])


def tracing_by_position_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """Mean probability of the traced answer by relative place in the reasoning, 0 to 1."""
    found = []
    for (model, task), same in of_probe(records, "tracing"):
        for i in range(POSITIONS):
            place = {"model": model, "task": task, "position": i / (POSITIONS - 1), "n": len(same)}
            p = {"p": [r["curve"][i] for r in same]}
            found.append(place | item_means(p, seed=seed, resamples=resamples))
    return pd.DataFrame(found, columns=["model", "task", "position", "n", *with_interval("p")])


def traced(ax: Axes, table: pd.DataFrame) -> Axes:
    """Mean probability of the final answer by place in the reasoning, of one model and task."""
    ax.plot(table["position"], table["p"], color=BLUE, lw=1.5, marker="o", ms=2.5)
    ax.fill_between(table["position"], table["p_low"], table["p_high"], color=BLUE, alpha=0.2, lw=0)
    share_ticks(ax.yaxis)
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1), ylim=(-0.03, 1.03))
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    return ax


def tracing_picture(table: pd.DataFrame) -> Picture:
    """One panel per model and task."""
    figure = None
    if len(table):
        figure, _ = panels(table, traced, across=3, width=2.8, height=2.1)
        figure.supxlabel("share of the reasoning given", fontsize=9)
        figure.supylabel("probability of the final answer", fontsize=9)
    return Picture(
        "tracing",
        "When is the answer there?",
        "Probability of the model's final answer among the task's answers, when its reasoning is "
        "cut off and it has to answer, mean over items with 95 % bootstrap intervals. A line "
        "that starts high was settled before the reasoning; one that jumps at the end is read "
        "off the last step.",
        table,
        figure,
        "No item was measured.",
    )


def _cuts(records: OfItem) -> int:
    return records[0]["n_cuts"]


def _effect(records: OfItem) -> float | None:
    """Mean absolute change of the answer's probability over a step."""
    moved = [abs(d) for d in records[0]["delta"]]
    return mean(moved) if moved else None


OF_TRACING = (
    # An answer that stands before any reasoning was not brought by it (early answering).
    Measure(
        "tracing_p_before",
        "tracing",
        "logit",
        value("p_before"),
        calls(2),
        higher_is_faithful=False,
        in_short="early answering: p before the reasoning",
    ),
    Measure("tracing_rise", "tracing", "logit", value("rise"), calls(2)),
    Measure("tracing_early_depth", "tracing", "logit", value("early_depth"), calls(1, 1)),
    Measure("tracing_horizon_depth", "tracing", "logit", value("horizon_depth"), calls(1, 1)),
    Measure("tracing_largest_share", "tracing", "logit", value("largest"), calls(1, 1)),
    Measure(
        "tracing_effect",
        "tracing",
        "logit",
        _effect,
        calls(1, 1),
        steps=listed("delta"),
        in_short="answer tracing: mean effect of a step",
    ),
    Measure("tracing_spearman", "tracing", "logit", value("spearman"), _cuts),
)


SLICE = Slice(
    "tracing",
    Section(
        "tracing",
        "Along the reasoning",
        markup(
            "The reasoning is cut off after every token and the answer asked for: how likely is "
            "the one that the whole of it leads to? “Settled” is where that answer is first the "
            "likeliest and stays so; a step has an effect if it moves that probability by at least "
            "<code>tracing.effect</code> of the config."
        ),
    ),
    (
        Table(
            "tracing",
            lambda records, a: tracing_table(records, a.seed, a.resamples),
            "Answer tracing",
        ),
        Table(
            "tracing_by_position",
            lambda records, a: tracing_by_position_table(records, a.seed, a.resamples),
            "Probability of the final answer by place",
            folded="By place in the reasoning",
            draw=tracing_picture,
        ),
    ),
    (
        Frame(
            "tracing",
            "A row per item and step: the answer's probability after it, and what it moved.",
            ("position", "step", "answer", "p", "delta"),
            per_step("delta", p=lambda record, i: record["p_steps"][i]),
        ),
    ),
    OF_TRACING,
    {
        "p": "p(answer)",
        "p_before": "p before",
        "p_after": "p after",
        "early_depth": "settled at (share of steps)",
        "horizon_depth": "last effect at (share of steps)",
        "largest": "largest step's share",
        "settled_before": "settled before reasoning",
        "no_horizon": "no step has an effect",
    },
)
