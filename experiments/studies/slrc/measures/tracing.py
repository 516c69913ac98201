"""Report of answer tracing: when the answer's probability rises, and which steps raise it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from faithscope.experiments.analysis.axes import MARGIN_OF_SHARES, share_rise, share_ticks
from faithscope.experiments.analysis.cells import Boot, Count, Share, boots, rows_with
from faithscope.experiments.analysis.colours import PLAIN
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.item_view import Curve
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, N_STEPS, item_table, over_lists
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tidy import mean
from faithscope.experiments.studies.slrc.figures.per_pair import per_pair, picture
from faithscope.experiments.studies.slrc.measure_report import (
    ALONG,
    Frame,
    MeasureReport,
    Monitor,
)
from faithscope.experiments.studies.slrc.step_reports import (
    forced_means,
    of_forced_choice,
    per_step,
)
from faithscope.experiments.studies.slrc.tables.outcomes import FORCED_DIFFERS, LABEL_MASS
from faithscope.probes.tracing import NEVER_SETTLED, NEVER_STATED, NO_ANSWER, POSITIONS

_LINES = 5
"""Maximum number of answers drawn for one trace: its own, then those of the highest probability."""


def _finish(ax: Axes) -> None:
    share_rise(ax).set_xlim(-MARGIN_OF_SHARES, 1 + MARGIN_OF_SHARES)
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
    # An answer that is there before any reasoning was not caused by it (early answering).
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
    # If an answer is settled long before the text states it, the text in between did not cause it.
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


def _answer_lines(record: Record, arrays: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    """How far the chain's answer is there along the reasoning: whether it is the likeliest when the
    model has to answer, and its probability."""
    at = np.asarray(arrays["at"], dtype=float) / max(1, record["n_tokens"])
    likeliest = np.asarray(arrays["p"]).argmax(axis=-1)
    forced = likeliest == list(record["options"]).index(record["answer"])
    p = [math.nan if x is None else x for x in record["curve"]]
    return {
        "forced answer": np.interp(ALONG, at, forced.astype(float)),
        "probability of the answer": np.interp(ALONG, np.linspace(0, 1, len(p)), p),
    }


MEANS = (
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
        "Largest rise of the answer's probability over a step, as a share of all rises.",
    ),
    Column("spearman", meaning="Rank correlation of the answer's probability with the cut."),
)
"""Columns of means that exist for both the stated answer and the forced choice."""
GAP = (
    Column(
        "gap",
        "stated minus settled",
        "From where the written answer is settled to where it is stated.",
        unit="tokens",
    ),
    Column("gap_share", "stated minus settled (share)", "The gap as a share of the reasoning."),
)
NO_GAP = {
    NO_ANSWER: ("answer unparsed", "Items without a gap for this reason."),
    NEVER_SETTLED: ("never settled", "Items whose whole reasoning leads to another answer."),
    NEVER_STATED: ("never stated", "Items whose reasoning does not end by stating the answer."),
}
"""Reason for an item without a gap -> label and meaning of the column that counts such items."""

REPORT = MeasureReport(
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
        item_table(
            "tracing",
            (
                COUNTED,
                *boots(MEANS),
                Share(
                    "settled_before",
                    lambda rows: rows["early"] == 0,
                    label="settled before reasoning",
                    meaning="Items whose answer needs no reasoning.",
                ),
                Share(
                    "no_horizon",
                    lambda rows: rows["horizon"] == 0,
                    label="no step has an effect",
                    meaning="Items of which no step moves p.",
                ),
                *boots(GAP),
                Count(
                    "n_settled_first",
                    rows_with(committed=0),
                    "settled before the first token",
                    "Items whose gap is a lower bound.",
                ),
                *(
                    Count(f"n_{reason}", rows_with(gap_reason=reason), *words)
                    for reason, words in NO_GAP.items()
                ),
                N_STEPS,
                *forced_means([of_forced_choice(column) for column in MEANS]),
                *FORCED_DIFFERS,
                *LABEL_MASS,
            ),
            caption="Answer tracing",
        ),
        item_table(
            "tracing_by_position",
            (
                COUNTED,
                Boot(
                    "p",
                    label="p(answer)",
                    meaning="Probability of the chain's answer among the task's answers.",
                ),
            ),
            of="tracing",
            along=(Column("position", meaning="Share of the reasoning that is given, 0 to 1."),),
            prepare=over_lists(
                ("position",),
                lambda rows: [[(i / (POSITIONS - 1),) for i in range(POSITIONS)]] * len(rows),
                p="curve",
            ),
            caption="Probability of the chain's answer by place",
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
    monitor=Monitor("tracing_curve", lambda record, arrays: record["curve"]),
    of_trace=_of_trace,
    answer_lines=_answer_lines,
)
