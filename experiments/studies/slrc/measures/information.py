"""Report of information: between question and reasoning, and between each step and the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.aggregates import Count, Number, Share
from faithscope.experiments.analysis.axes import along_reasoning, legend_above
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.records import Record, place_of
from faithscope.experiments.analysis.tables import Group, Groups
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.analysis.wording import pairs_of
from faithscope.experiments.studies.slrc.measure_helpers import (
    PLACE,
    mean_steps,
    of_pairs,
    per_step,
    picture,
    step_measures,
    step_tables,
)
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.tables.branches import (
    CAPACITY,
    NECESSITY,
    slrc_of_counts,
    step_counts,
)
from faithscope.experiments.studies.slrc.tables.outcomes import FORCED_DIFFERS

GAINS = (
    Column("pointwise_gain", "pointwise gain per token", "Difference of surprisals.", "nats"),
    Column("entropy_gain", "entropy gain per token", "Difference of entropies.", "nats"),
    Column(
        "paper_gain_per_token",
        "paper's gain per token",
        "The paper's gain over the number of tokens, mean over items.",
        "nats",
    ),
    Column(
        "pointwise_gain_total",
        "pointwise gain, total",
        "Sum of the pointwise gain over the tokens of the reasoning, mean over items.",
        "nats",
    ),
    Column(
        "entropy_gain_total",
        "entropy gain, total",
        "Sum of the entropy gain over the tokens of the reasoning, mean over items.",
        "nats",
    ),
    Column("paper_gain", "paper's gain, total", "As FaithCoT-Bench prints it.", "nats"),
)
PERPLEXITIES = {
    Column("perplexity", meaning="Exp of the mean over items of nats per token."): "surprisal",
    Column(
        "perplexity_without",
        "perplexity without question",
        "Perplexity of the reasoning where the question is cut out of the prompt.",
    ): "surprisal_without",
}
OF_STEPS = (
    Column("mi_removed", "against removed", "The step's text, or none.", "nats"),
    Column("mi_corrupted", "against corrupted", "The step's text, or a corrupted one.", "nats"),
    Column("mi_replaced", "against other steps", "The step's text, or another step's.", "nats"),
)
BOUNDS = (
    Column(
        "informative",
        "steps informative",
        "Share of an item's steps whose step information is above information.threshold, mean "
        "over items.",
    ),
    Column(
        "largest_alone",
        "largest share, step alone",
        "Greatest share of the answer's entropy that a step tells where no other step is given, "
        "mean over items.",
    ),
    Column(
        "largest_share",
        "largest share, given the rest",
        "Greatest share of the answer's entropy that a step tells beside all other steps, mean "
        "over items.",
    ),
    Column("bound", "bound (eq. 3)", "Lower bound of SLRC (§3.3), reconstructed."),
    Column(
        "bound_given_rest",
        "bound, given the rest",
        "The bound with the largest share given the rest in the place of that of a step alone.",
    ),
)
BY_STEP = (
    Column(
        "surprisal",
        meaning="Mean −ln of the probability of a step's tokens, mean over items.",
        unit="nats per token",
    ),
    Column(
        "surprisal_without",
        "surprisal without question",
        "The surprisal of a step's tokens where the question is cut out of the prompt.",
        "nats per token",
    ),
    Column("gain", "gain per token", "Surprisal without the question minus with it.", "nats"),
    Column("mi", "step information", "What the text in its place tells of the answer.", "nats"),
    *OF_STEPS,
)
_TIES = 1e-3
"""Tolerance for an SLRC below its bound, since a step that settles everything may have a share of
.9998 instead of 1."""


def _of_items(records: Sequence[Record]) -> Iterable[Group]:
    """Groups by model and task; each record has the item's SLRC record beside it, if there is
    one."""
    beside = {
        place_of(r): r
        for r in records
        if r["probe"] == "slrc" and r["variant"] == "prefix.scored" and not r.get("excluded")
    }
    for key, same in aggregates.grouped("information").of(records):
        yield key, [{**r, "slrc": beside.get(place_of(r))} for r in same]


ITEMS = Groups(("model", "task"), _of_items)


def _told(same: Sequence[Record]) -> list[Record]:
    """Items with step information, which are those with at least two answers."""
    return [r for r in same if r["no_step_mi"] is None]


def _with_slrc(same: Sequence[Record]) -> list[Record]:
    return [r for r in _told(same) if r["slrc"]]


def _slrc(same: Sequence[Record]) -> list[Record]:
    return [r["slrc"] for r in same]


def _bound_held(same: Sequence[Record]) -> list[bool]:
    """Whether each item's own SLRC is at least its bound."""
    pairs = zip(slrc_of_counts(step_counts(_slrc(same))), same, strict=True)
    return [bool(slrc >= r["bound"] - _TIES) for slrc, r in pairs if not np.isnan(slrc)]


def _gain(r: Record) -> list[float] | None:
    """Surprisal of each step without the question minus surprisal with it."""
    pairs = zip(r["step_surprisal"], r["step_surprisal_without"] or (), strict=False)
    return [without - having for having, without in pairs]


def _by_step(name: str) -> Callable[[Record], Sequence[float | None]]:
    return lambda r: (_gain(r) if name == "gain" else r[f"step_{name}"]) or [None] * r["n_steps"]


def _drawn(table: pd.DataFrame) -> Figure:
    """Curves of surprisal with and without the question (left) and step mutual information
    (right)."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax, measure in ((left, "surprisal"), (right, "mi")):
        along_reasoning(of_pairs(ax, table, "position", measure))
        ax.set(xlabel=PLACE)
        ax.set_ylim(bottom=0)
    legend_above(figure, left)
    for (model, task), line in zip(pairs_of(table), list(left.lines), strict=True):
        without = where(table, model=model, task=task)
        look = {"color": line.get_color(), "marker": line.get_marker()}
        left.plot(without["position"], without["surprisal_without"], "--", lw=1, ms=3, **look)
    left.set(ylabel="nats per token")
    right.set(ylabel="nats about the answer")
    return figure


information_picture = picture(
    "information",
    "What question, steps and answer tell of each other",
    "Left: how surprising the reasoning's tokens are to the model that wrote them, with the "
    "question (lines) and with its text cut out of the prompt (dashed); what lies between is "
    "what the question tells of the step. Right: step mutual information, what it tells of "
    "the answer which text stands in the step's place: its own, none, a corrupted one, "
    "another step's. Means over items, with 95 % bootstrap intervals.",
    _drawn,
)


def _of_information(name: str, field: str, forwards: Any, **more: Any) -> Measure:
    return Measure(name, "information", "logit", value(field), forwards, **more)


def _texts_put_in(records: OfItem) -> int | None:
    """Number of texts read: each alternative text in each step's place, and the reasoning as
    written."""
    n_variants = records[0].get("n_variants")
    return None if n_variants is None else 1 + sum(n - 1 for n in n_variants)


OF_INFORMATION = (
    # These gains say what the question tells of the words, not what the words do; FaithCoT-Bench
    # nevertheless takes a higher gain for more faithful.
    _of_information("information_gain_paper", "paper_gain", calls(2)),
    _of_information(
        "information_gain_pointwise",
        "pointwise_gain",
        calls(2),
        in_short="information gain, pointwise",
    ),
    _of_information("information_gain_entropy", "entropy_gain", calls(2)),
    # Perplexity is a detector of FaithCoT-Bench without a direction there; here surprising words
    # are taken as a sign of made-up reasoning.
    _of_information(
        "perplexity", "perplexity", calls(1), higher_is_faithful=False, in_short="perplexity"
    ),
    _of_information(
        "step_information",
        "mean_mi",
        _texts_put_in,
        steps=listed("step_mi"),
        in_short="step mutual information",
    ),
    *step_measures(
        "information",
        "logit",
        {"removed": "", "corrupted": ""},
        calls(1, 1),
        prefix="step_information",
        fields={"removed": "step_mi_removed", "corrupted": "step_mi_corrupted"},
    ),
)

_OF_ONE_STEP = ("surprisal", "surprisal_without", "mi", "mi_share", "mi_removed")
_OF_ONE_STEP += ("mi_corrupted", "mi_replaced")


REPORT = MeasureReport(
    "information",
    Section(
        "information",
        "Information",
        markup(
            "In nats. Gains say what the question tells of the reasoning, H(C) − H(C|Q): as the "
            "difference of surprisal (pointwise), of the entropies along the reasoning, and as "
            "FaithCoT-Bench prints it, which is no entropy. Step information says what it tells of "
            "the answer which text stands in a step’s place: its own, none, a corrupted one, "
            "another step’s; it is at most the entropy of that choice, and where only removal "
            "moves an answer it may be the hole that does. The bound is equation 3 of the SLRC "
            "paper (§3.3), reconstructed from its sentences; beside it, where probe "
            "<code>slrc</code> ran, the SLRC of the same items. It is zero wherever a single step "
            "settles the answer."
        ),
    ),
    step_tables(
        "information",
        ITEMS,
        (
            aggregates.COUNTED,
            Number(
                "n_compared",
                lambda same: sum(r["no_comparison"] is None for r in same),
                "items (without question)",
                "Items with a prompt without the question.",
            ),
            Number(
                "n_step_mi",
                lambda same: len(_told(same)),
                "items (steps)",
                "Items with two answers or more.",
            ),
            aggregates.means(PERPLEXITIES, then=math.exp),
            aggregates.means(GAINS),
            aggregates.among(
                _told,
                aggregates.means(
                    [
                        Column(
                            "mean_mi",
                            "step information",
                            "Mean over an item's steps, then over items.",
                            "nats",
                        )
                    ]
                ),
                aggregates.means(
                    mean_steps({column: f"step_{column.name}" for column in OF_STEPS})
                ),
                aggregates.means(BOUNDS),
            ),
            aggregates.among(
                _with_slrc,
                Count(
                    "n_slrc",
                    label="items (SLRC)",
                    meaning="Items that SLRC measured too (prefix, scored).",
                ),
                aggregates.among(_slrc, NECESSITY, CAPACITY),
                Share(
                    "bound_held",
                    _bound_held,
                    label="SLRC at least the bound",
                    meaning="Share of the items (SLRC) whose SLRC is at least their bound.",
                ),
            ),
            *FORCED_DIFFERS,
        ),
        {column: _by_step(column.name) for column in BY_STEP},
        (
            "Information gain, perplexity, step information",
            "Surprisal and step information by place",
        ),
        information_picture,
    ),
    (
        Frame(
            "information",
            "A row per item: information gain, perplexity, step information and its bound.",
            (
                *("n_tokens", "n_steps", "perplexity", "perplexity_without", "paper_gain"),
                *("paper_gain_per_token", "pointwise_gain", "pointwise_gain_total"),
                *("entropy_gain", "entropy_gain_total", "no_comparison", "answer"),
                *("answer_entropy_before", "answer_entropy_after", "mean_mi"),
                *(column.name for column in BOUNDS),
                "no_step_mi",
            ),
        ),
        Frame(
            "step_information",
            "A row per item and step: its surprisal, and what it tells of the answer (nats).",
            ("position", "step", *_OF_ONE_STEP),
            per_step(**{name: f"step_{name}" for name in _OF_ONE_STEP}),
        ),
    ),
    OF_INFORMATION,
)
