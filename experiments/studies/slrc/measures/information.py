"""Report of information: between question and reasoning, and between each step and the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import along_reasoning, legend_above, narrow, sheet
from faithscope.experiments.analysis.cells import (
    INCLUDED,
    Among,
    Count,
    Share,
    all_of,
    boots,
    rows_known,
    rows_with,
)
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import groups, keep, numbers, where
from faithscope.experiments.analysis.wording import pairs_of
from faithscope.experiments.studies.slrc.figures.per_pair import PLACE, of_pairs, picture
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.step_reports import (
    by_part,
    per_step,
    step_means,
    step_measures,
)
from faithscope.experiments.studies.slrc.tables.branch_frame import (
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


_ITEM, _BRANCH = (rows_with(part=part) for part in ("item", "branch"))
_TOLD = all_of(_ITEM, lambda rows: rows["no_step_mi"].isna().to_numpy())
"""Mask of the items with step information, which are those with at least two answers."""


def _beside_slrc(information: pd.DataFrame, branches: pd.DataFrame) -> pd.DataFrame:
    """The items with the SLRC of each (prefix, scored), `own_slrc`, if SLRC measured it; and below
    them the branches of those with step information, told by the column `part`."""
    items = keep(information, INCLUDED(information)).assign(part="item")
    if not len(items):
        return items
    way = rows_with(framing="prefix", reading="scored")(branches)
    place = ["model", "task", "item"]
    known = keep(items, _TOLD(items))[place].astype(str)
    own = keep(branches, way).astype(dict.fromkeys(place, str)).merge(known, on=place)
    counts = {
        (*key.values(), item): slrc_of_counts(of_item.to_numpy()[None])[0]
        for key, of_pair in groups(own, ["model", "task"])
        for item, of_item in step_counts(of_pair).iterrows()
    }
    slrc = [counts.get((m, t, str(i))) for m, t, i in items[place].itertuples(index=False)]
    items["own_slrc"], items["measured"] = np.array(slrc, float), [x is not None for x in slrc]
    return pd.concat([items, own.assign(part="branch")], ignore_index=True)


def _bound_held(rows: pd.DataFrame) -> np.ndarray:
    return numbers(rows["own_slrc"]) >= numbers(rows["bound"]) - _TIES


def _gains(rows: pd.DataFrame) -> list[list[float] | None]:
    """Surprisal of each step without the question minus surprisal with it, per record."""
    pairs = zip(rows["step_surprisal"], rows["step_surprisal_without"], strict=True)
    return [
        [b - a for a, b in zip(having, without, strict=True)] if without is not None else None
        for having, without in pairs
    ]


def _drawn(table: pd.DataFrame) -> Figure:
    """Curves of surprisal with and without the question (left) and step mutual information
    (right)."""
    figure = sheet(4.6 if narrow() else 2.6)
    left, right = figure.subplots(2 if narrow() else 1, 1 if narrow() else 2)
    for ax, measure in ((left, "surprisal"), (right, "mi")):
        along_reasoning(of_pairs(ax, table, "position", measure))
        ax.set(xlabel=PLACE)
    legend_above(figure, left)
    for (model, task), line in zip(pairs_of(table), list(left.lines), strict=True):
        without = where(table, model=model, task=task)
        look = {"color": line.get_color(), "marker": line.get_marker()}
        left.plot(without["position"], without["surprisal_without"], "--", lw=1, ms=3, **look)
    left.set(ylabel="nats per token")
    right.set(ylabel="nats about the answer")
    for ax in (left, right):
        ax.set_ylim(bottom=0)
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
    (
        Table(
            "information",
            ("information", "branches"),
            ("model", "task"),
            (
                replace(COUNTED, among=_ITEM),
                Count(
                    "n_compared",
                    all_of(_ITEM, lambda rows: rows["no_comparison"].isna().to_numpy()),
                    "items (without question)",
                    "Items with a prompt without the question.",
                ),
                Count("n_step_mi", _TOLD, "items (steps)", "Items with two answers or more."),
                Among(_ITEM, (*boots(PERPLEXITIES, then=np.exp), *boots(GAINS))),
                Among(
                    _TOLD,
                    (
                        *boots(
                            [
                                Column(
                                    "mean_mi",
                                    "step information",
                                    "Mean over an item's steps, then over items.",
                                    "nats",
                                )
                            ]
                        ),
                        *boots(step_means({column: f"step_{column.name}" for column in OF_STEPS})),
                        *boots(BOUNDS),
                        Count(
                            "n_slrc",
                            rows_with(measured=True),
                            "items (SLRC)",
                            "Items that SLRC measured too (prefix, scored).",
                        ),
                    ),
                ),
                Among(_BRANCH, (NECESSITY, CAPACITY)),
                Share(
                    "bound_held",
                    _bound_held,
                    all_of(_TOLD, rows_known("own_slrc")),
                    "SLRC at least the bound",
                    "Share of the items (SLRC) whose SLRC is at least their bound.",
                ),
                *FORCED_DIFFERS,
            ),
            prepare=_beside_slrc,
            caption="Information gain, perplexity, step information",
        ),
        by_part(
            "information_by_step",
            "information",
            (),
            {column: f"step_{column.name}" for column in BY_STEP}
            | {column: _gains for column in BY_STEP if column.name == "gain"},
            caption="Surprisal and step information by place",
            folded="By place of the step",
            draw=information_picture,
        ),
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
