"""Answer tracing over items: when the answer is there, and which steps brought it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.axes import Axes

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.axes import PLAIN, share_rise, share_ticks
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.details import Curve
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import mean
from faithscope.experiments.studies.slrc.parts import (
    of_forced_choice,
    per_pair,
    per_step,
    picture,
)
from faithscope.experiments.studies.slrc.slice import Frame, Monitor, Slice, Table
from faithscope.experiments.studies.slrc.tables.outcomes import (
    FORCED_DIFFERS,
    LABEL_MASS,
    forced_averages,
)
from faithscope.probes.tracing import NEVER_SETTLED, NEVER_STATED, NO_ANSWER, POSITIONS

MEANS = ("p_before", "p_after", "rise", "early_depth", "horizon_depth", "largest", "spearman")

GAP = ("gap", "gap_share")
_LINES = 5
"""Answers that are drawn of one trace: its own, and those that were ever the likeliest."""

ITEMS = kit.grouped("tracing")


def _finish(ax: Axes) -> None:
    share_rise(ax).set_xlim(0, 1)
    share_ticks(ax.xaxis)


tracing_picture = picture(
    "tracing",
    "When is the answer there?",
    "Probability of the answer that the chain states among the task's answers, when the reasoning "
    "is cut off and the model has to answer, mean over items with 95 % bootstrap intervals. A line "
    "that starts high was settled before the reasoning; one that jumps at the end is read "
    "off the last step.",
    per_pair(
        "position",
        {"p": PLAIN},
        ("share of the reasoning given", "probability of the chain's answer"),
        _finish,
    ),
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
    # An answer that was settled long before the text states it was not got by what is between.
    Measure(
        "tracing_gap",
        "tracing",
        "logit",
        value("gap_share"),
        _cuts,
        higher_is_faithful=False,
        in_short="settled before the text states it",
    ),
    Measure("tracing_spearman", "tracing", "logit", value("spearman"), _cuts),
)


def _of_trace(record: Record, arrays: Mapping[str, Any]) -> Iterator[Curve]:
    if record.get("excluded") or "p" not in arrays:
        return
    lines = dict(zip(record["options"], arrays["p"].T.tolist(), strict=True))
    likeliest = sorted(lines, key=lambda name: (name != record["answer"], -max(lines[name])))
    yield Curve(
        "Answer tracing",
        "tokens of the reasoning given",
        "probability",
        arrays["at"].tolist(),
        {name: lines[name] for name in likeliest[:_LINES]},
    )


_OF_ANSWER = (
    Column("p_before", "p before", "Probability of the answer before any reasoning."),
    Column("p_after", "p after", "Probability of the answer after the whole reasoning."),
    Column("rise", meaning="Probability of the answer after the reasoning minus that before it."),
    Column(
        "early_depth",
        "settled at (share of steps)",
        "From where on the answer is the likeliest, of items in which it ever is for good.",
    ),
    Column(
        "horizon_depth",
        "last effect at (share of steps)",
        "The last step that moves the answer's probability by tracing.effect; 0 for none.",
    ),
    Column(
        "largest",
        "largest step's share",
        "Of all that steps raise the answer's probability, what the one that raises it most does.",
    ),
    Column("spearman", meaning="Rank correlation of the answer's probability with the cut."),
)
"""Columns that there are of the answer that a chain states and of the forced choice."""

SLICE = Slice(
    "tracing",
    Section(
        "tracing",
        "Along the reasoning",
        markup(
            "The reasoning is cut off after every token and the answer asked for: how likely is "
            "the one that the chain states? Of a chain that states none, and in columns that begin "
            "with <code>forced_</code> of every chain, it is the likeliest after the whole of it. "
            "“Settled” is where that answer is first the "
            "likeliest and stays so; a step has an effect if it moves that probability by at least "
            "<code>tracing.effect</code> of the config. The gap is from the token after which the "
            "answer is settled to the token with which the text states it: a long one says that "
            "the text in between was not needed, as far as this answer tells."
        ),
    ),
    (
        Table(
            "tracing",
            kit.item_table(
                ITEMS,
                kit.COUNTED,
                kit.means(MEANS),
                kit.shares(
                    {
                        "settled_before": lambda same: [r["early"] == 0 for r in same],
                        "no_horizon": lambda same: [r["horizon"] == 0 for r in same],
                    }
                ),
                # records of earlier runs do not have these
                kit.means({name: lambda r, name=name: r.get(name) for name in GAP}),
                kit.plain(
                    n_settled_first=lambda same: sum(r.get("committed") == 0 for r in same),
                    **{
                        f"n_{reason}": lambda same, reason=reason: sum(
                            r.get("gap_reason") == reason for r in same
                        )
                        for reason in (NO_ANSWER, NEVER_SETTLED, NEVER_STATED)
                    },
                    n_steps=lambda same: sum(r["n_steps"] for r in same),
                ),
                forced_averages({f"forced_{name}": f"forced_{name}" for name in MEANS}),
                FORCED_DIFFERS,
                LABEL_MASS,
            ),
            "Answer tracing",
        ),
        Table(
            "tracing_by_position",
            kit.curve_table(
                ITEMS,
                ("position",),
                lambda r: [(i / (POSITIONS - 1),) for i in range(POSITIONS)],
                kit.COUNTED,
                *kit.mean_curves({"p": "curve"}),
            ),
            "Probability of the chain's answer by place",
            folded="By place in the reasoning",
            draw=tracing_picture,
        ),
    ),
    (
        Frame(
            "tracing",
            "A row per item and step: the answer's probability after it, and what it moved.",
            ("position", "step", "answer", "p", "delta", "forced_p", "forced_delta"),
            per_step("delta", p="p_steps", forced_p="forced_p_steps", forced_delta="forced_delta"),
        ),
    ),
    OF_TRACING,
    (
        Column("p", "p(answer)", "Probability of the chain's answer among the task's answers."),
        *_OF_ANSWER,
        *map(of_forced_choice, _OF_ANSWER),
        Column(
            "settled_before", "settled before reasoning", "Items whose answer needs no reasoning."
        ),
        Column("gap", "stated minus settled", "Of the answer that the model wrote.", unit="tokens"),
        Column("gap_share", "stated minus settled (share)", "As a share of the reasoning."),
        Column("n_settled_first", "settled before the first token", "Their gap is a lower bound."),
        Column("n_answer_unparsed", "answer unparsed", "Items without a gap for this reason."),
        Column("n_never_settled", "never settled", "The whole reasoning leads to another answer."),
        Column("n_never_stated", "never stated", "The reasoning does not end by stating it."),
        Column("no_horizon", "no step has an effect", "Items of which no step moves p."),
    ),
    monitor=Monitor("tracing_curve", lambda record, arrays: record["curve"]),
    of_trace=_of_trace,
)
