"""Information over items: between question and reasoning, between each step and the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, listed, mean_of, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture, legend_above
from faithscope.experiments.analysis.plots import LINES, along_reasoning, pairs_of, short
from faithscope.experiments.analysis.records import Place, Record, place_of
from faithscope.experiments.analysis.stats import Estimate
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import columns, mean, present, where, with_interval
from faithscope.experiments.studies.slrc.measures.slice import (
    Frame,
    Slice,
    Table,
    per_step,
)
from faithscope.experiments.studies.slrc.tables import capacity
from faithscope.experiments.studies.slrc.tables.by_place import by_place_table
from faithscope.experiments.studies.slrc.tables.outcomes import flips, of_probe

GAINS = (
    "pointwise_gain",
    "entropy_gain",
    "paper_gain_per_token",
    "pointwise_gain_total",
    "entropy_gain_total",
    "paper_gain",
)
PERPLEXITIES = {"perplexity": "surprisal", "perplexity_without": "surprisal_without"}
OF_STEPS = ("mean_mi", "mi_removed", "mi_corrupted", "mi_replaced")
BOUNDS = ("informative", "largest_alone", "largest_share", "bound", "bound_given_rest")
BY_STEP = ("surprisal", "surprisal_without", "gain", "mi", "mi_removed", "mi_corrupted")
BY_STEP += ("mi_replaced",)
_TIES = 1e-3
"""How far below its bound an SLRC may lie: a share of .9998 for a step that settles all is 1."""


def information_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """Means over items with bootstrap intervals; see `probes.information` for each measure.

    Nats, but for perplexity and the shares (`informative`, `largest_*`, bounds). Gains and
    `…_without` are over the `n_compared` items with a prompt without the question, step
    measures over the `n_step_mi` with two answers or more. `perplexity` is the exp of the mean
    over items of nats per token. `mi_*` are means over an item's steps, then over items.

    Beside the bound, of the `n_slrc` items that probe `slrc` measured too (prefix framing,
    scored reading, as here): necessity and SLRC of the aggregates, and `bound_held`, the share
    of items whose own SLRC is at least the bound, with a Wilson interval.
    """
    records = list(records)
    beside = {
        place_of(r): r
        for r in records
        if r["probe"] == "slrc" and r["variant"] == "prefix.scored" and not r.get("excluded")
    }
    found = []
    for (model, task), same in of_probe(records, "information"):
        told = [r for r in same if r["no_step_mi"] is None]
        row: dict[str, Any] = {"model": model, "task": task, "n": len(same)}
        row["n_compared"] = sum(r["no_comparison"] is None for r in same)
        row["n_step_mi"] = len(told)
        for name, surprisal in PERPLEXITIES.items():
            row |= columns(name, _exp(_mean([r[surprisal] for r in same], seed, resamples)))
        for name in GAINS:
            row |= columns(name, _mean([r[name] for r in same], seed, resamples))
        for name in OF_STEPS:
            row |= columns(name, _mean([_over_steps(r, name) for r in told], seed, resamples))
        for name in BOUNDS:
            row |= columns(name, _mean([r[name] for r in told], seed, resamples))
        found.append(row | _beside_slrc(told, beside, seed, resamples))
    names = ["model", "task", "n", "n_compared", "n_step_mi"]
    names += with_interval(*PERPLEXITIES, *GAINS, *OF_STEPS, *BOUNDS)
    return pd.DataFrame(found, columns=[*names, "n_slrc", *with_interval(*_SLRC)])


def information_by_step_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """The same per step, by relative place in the reasoning.

    See `by_place_table`. `gain` is the step's surprisal without the question minus that with it.
    """
    groups = (
        ({"model": model, "task": task}, [dict(r) | _by_step(r) for r in same])
        for (model, task), same in of_probe(records, "information")
    )
    fields = {name: name for name in BY_STEP}
    return by_place_table(groups, ("model", "task"), fields, seed, resamples)


_SLRC = ("necessity", "slrc", "bound_held")


def _beside_slrc(
    same: Sequence[Record], beside: dict[Place, Record], seed: int, resamples: int
) -> dict[str, Any]:
    """What SLRC measured of the same items."""
    pairs = [(r, beside[place_of(r)]) for r in same if place_of(r) in beside]
    removed = [present(flips(other, "remove")) for _, other in pairs]
    returned = [[not flip for flip in present(flips(other, "keep_only"))] for _, other in pairs]
    necessity = stats.share([flip for of_item in removed for flip in of_item])
    sufficiency = stats.share([back for of_item in returned for back in of_item])
    slrc = capacity.slrc(necessity.value, sufficiency.value)
    low, high = capacity.slrc_interval(
        np.array([sum(x) for x in removed]),
        np.array([len(x) for x in removed]),
        np.array([sum(x) for x in returned]),
        np.array([len(x) for x in returned]),
        seed=seed,
        resamples=resamples,
    )
    held = [
        capacity.slrc(mean(gone), mean(back)) >= r["bound"] - _TIES
        for (r, _), gone, back in zip(pairs, removed, returned, strict=True)
        if gone and back
    ]
    return {
        "n_slrc": len(pairs),
        **columns("necessity", necessity),
        **columns("slrc", Estimate(slrc, low, high, len(pairs))),
        **columns("bound_held", stats.share(held)),
    }


def _over_steps(record: Record, name: str) -> float | None:
    if name == "mean_mi":
        return record[name]
    values = present(record[f"step_{name}"])
    return mean(values) if values else None


def _by_step(record: Record) -> dict[str, Sequence[float | None]]:
    """The columns of `BY_STEP`, one value per step; all None where a record has none at all."""
    with_it, without = record["step_surprisal"], record["step_surprisal_without"]
    made = {name: record.get(f"step_{name}") for name in BY_STEP}
    made["gain"] = without and [b - a for a, b in zip(with_it, without, strict=True)]
    return {name: values or [None] * record["n_steps"] for name, values in made.items()}


def _mean(values: Sequence[float | None], seed: int, resamples: int) -> Estimate:
    return stats.mean_of_items(values, seed=seed, resamples=resamples)


def _exp(estimate: Estimate) -> Estimate:
    value, low, high = map(math.exp, (estimate.value, estimate.low, estimate.high))
    return Estimate(value, low, high, estimate.n)


def by_place(ax: Axes, table: pd.DataFrame, measure: str, dashed: str | None = None) -> Axes:
    """A line per model and task over the reasoning, with its 95 % interval as a band.

    Args:
        dashed: a second measure, in the same colours, without bands.
    """
    for i, (model, task) in enumerate(pairs_of(table)):
        colour, marker = LINES[i % len(LINES)]
        line = where(table, model=model, task=task)
        x = line["position"]
        label = f"{short(model)} · {visible(task)}"
        ax.plot(x, line[measure], f"{marker}-", color=colour, lw=1, ms=4, label=label)
        low, high = line[f"{measure}_low"], line[f"{measure}_high"]
        ax.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)
        if dashed is not None:
            ax.plot(x, line[dashed], f"{marker}--", color=colour, lw=1, ms=3, mfc="none")
    ax.set_xlabel("place of the step in the reasoning")
    ax.set_ylim(bottom=0)
    return along_reasoning(ax)


def information_picture(table: pd.DataFrame) -> Picture:
    """Surprisal with and without the question (left), step mutual information (right)."""
    figure = None
    if len(table):
        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        by_place(left, table, "surprisal", "surprisal_without")
        left.set(ylabel="nats per token")
        by_place(right, table, "mi")
        right.set(ylabel="nats about the answer")
        legend_above(figure, left)
    return Picture(
        "information",
        "What question, steps and answer tell of each other",
        "Left: how surprising the reasoning's tokens are to the model that wrote them, with the "
        "question (lines) and with its text cut out of the prompt (dashed); what lies between is "
        "what the question tells of the step. Right: step mutual information, what it tells of "
        "the answer which text stands in the step's place: its own, none, a corrupted one, "
        "another step's. Means over items, with 95 % bootstrap intervals.",
        table,
        figure,
        "No item was measured.",
    )


def _of_information(name: str, field: str, forwards: Any, **more: Any) -> Measure:
    return Measure(name, "information", "logit", value(field), forwards, **more)


def _texts_put_in(records: OfItem) -> int | None:
    """Each text in each step's place, and the reasoning as written once."""
    made = records[0].get("n_variants")
    return None if made is None else 1 + sum(n - 1 for n in made)


OF_INFORMATION = (
    # What the question tells of the words, not what the words do; FaithCoT-Bench takes more of
    # it for more faithful all the same.
    _of_information("information_gain_paper", "paper_gain", calls(2)),
    _of_information(
        "information_gain_pointwise",
        "pointwise_gain",
        calls(2),
        in_short="information gain, pointwise",
    ),
    _of_information("information_gain_entropy", "entropy_gain", calls(2)),
    # A detector of FaithCoT-Bench, there without a direction: odd words are taken for made up.
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
    *(
        Measure(
            f"step_information_{kind}",
            "information",
            "logit",
            mean_of(f"step_mi_{kind}"),
            calls(1, 1),
            steps=listed(f"step_mi_{kind}"),
        )
        for kind in ("removed", "corrupted")
    ),
)


_OF_ONE_STEP = ("surprisal", "surprisal_without", "mi", "mi_share", "mi_removed")
_OF_ONE_STEP += ("mi_corrupted", "mi_replaced")


def _of_step(name: str) -> Callable[[Record, int], float | None]:
    def of(record: Record, i: int) -> float | None:
        values = record[f"step_{name}"]
        return values[i] if values else None

    return of


SLICE = Slice(
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
            lambda records, a: information_table(records, a.seed, a.resamples),
            "Information gain, perplexity, step information",
        ),
        Table(
            "information_by_step",
            lambda records, a: information_by_step_table(records, a.seed, a.resamples),
            "Surprisal and step information by place",
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
                *("answer_entropy_before", "answer_entropy_after", "mean_mi", *BOUNDS),
                "no_step_mi",
            ),
        ),
        Frame(
            "step_information",
            "A row per item and step: its surprisal, and what it tells of the answer (nats).",
            ("position", "step", *_OF_ONE_STEP),
            per_step(**{name: _of_step(name) for name in _OF_ONE_STEP}),
        ),
    ),
    OF_INFORMATION,
    {
        "n_compared": "items (without question)",
        "n_step_mi": "items (steps)",
        "perplexity_without": "perplexity without question",
        "surprisal_without": "surprisal without question",
        "pointwise_gain": "pointwise gain per token",
        "entropy_gain": "entropy gain per token",
        "paper_gain": "paper's gain, total",
        "paper_gain_per_token": "paper's gain per token",
        "pointwise_gain_total": "pointwise gain, total",
        "entropy_gain_total": "entropy gain, total",
        "gain": "gain per token",
        "mi": "step information",
        "mean_mi": "step information",
        "mi_removed": "against removed",
        "mi_corrupted": "against corrupted",
        "mi_replaced": "against other steps",
        "informative": "steps informative",
        "largest_alone": "largest share, step alone",
        "largest_share": "largest share, given the rest",
        "bound": "bound (eq. 3)",
        "bound_given_rest": "bound, given the rest",
        "n_slrc": "items (SLRC)",
        "bound_held": "SLRC at least the bound",
    },
)
