"""Four kinds of disagreement between families of evidence, and what their traces have in common.

There are three sides: judges, behaviour (answers and their probabilities), and the model's
internals. A side ranks the traces of one model and task by the mean rank over its measures, each
turned so that more is more faithful, and calls the upper half faithful. Two sides disagree on a
trace that one has in its upper half and the other in its lower half. Since ranks are taken inside a
model and task, a difference between models or tasks is no disagreement about traces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.agreement import DECIMALS, questions, settings
from faithscope.experiments.analysis.comparison.join import KEY, TRAITS, Joined
from faithscope.experiments.analysis.comparison.scores import PLACE
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means, weights
from faithscope.experiments.analysis.statistics.stats import CONFIDENCE, Estimate, over
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns, numbers, only, where

SIDES = {
    "judges": ("judged",),
    "behaviour": ("behavioural", "logit"),
    "internals": ("internal",),
}
"""Side -> its families of measures. Answers and their probabilities are one side: behaviour."""


@dataclass(frozen=True)
class Disagreement:
    """One kind of disagreement: one side calls a trace faithful, the other unfaithful."""

    name: str
    faithful: str
    """Side (a key of `SIDES`) that calls the trace faithful."""
    unfaithful: str
    """Side that calls the trace unfaithful."""
    words: str
    """The disagreement in a sentence, for the page."""


KINDS = (
    Disagreement(
        "judged_faithful_unused_inside",
        *("judges", "internals"),
        "judges call the reasoning faithful, and the model's internals hardly use it",
    ),
    Disagreement(
        "judged_unfaithful_used_inside",
        *("internals", "judges"),
        "the model's internals use the reasoning, and judges call it unfaithful",
    ),
    Disagreement(
        "answer_moves_unused_inside",
        *("behaviour", "internals"),
        "the answer moves with the reasoning, and the model's internals hardly use it",
    ),
    Disagreement(
        "answer_stays_used_inside",
        *("internals", "behaviour"),
        "the model's internals use the reasoning, and the answer does not move with it",
    ),
)
KIND = Column("kind", meaning="The way in which two sides disagree.")
_RANK = "Mean rank of the trace by {}, among those of its model and task, from 0 to 1."
PARTING = computed_table("disagreements", (
    KIND,
    Column("faithful_by", meaning="The side that calls the trace faithful."),
    Column("unfaithful_by", meaning="The side that calls the trace unfaithful."),
    Column("n", meaning="Traces on which the two sides disagree so."),
    Column("n_items", "items", "Traces that both sides have a say on."),
    Column("share", meaning="Share of the traces that both sides have a say on."),
    Column("expected", "by chance", "Traces on which independent sides would disagree so."),
    Column("beyond", "beyond chance", "Traces minus those by chance; the interval is for four "
           "kinds at once.", interval=True),
    "reason",
))  # fmt: skip
"""A row per kind of disagreement: number of traces (`n`), number expected if the two sides were
independent inside each model and task (`expected`), and the difference (`beyond`)."""
LISTED = computed_table("disagreements_items", (
    KIND,
    Column("rank", meaning="Place of the trace in its kind by the gap, from 1."),
    *PLACE,
    Column("trace", meaning="Digest of what has to be the same for scores to stand in one row."),
    Column("gap", meaning="Rank by one side minus rank by the other, as a share."),
    Column("judges", meaning=_RANK.format("the judges")),
    Column("behaviour", meaning=_RANK.format("the measures of answers and their probabilities")),
    Column("internals", meaning=_RANK.format("the measures of the model's internals")),
    Column("n_steps", meaning="Steps of the trace that edits may touch."),
    Column("n_tokens", meaning="Tokens of the reasoning."),
    Column("correct", meaning="Whether the model's answer is right; empty where nobody knows."),
    Column("settled", meaning="Share of the steps after which the answer stands."),
))  # fmt: skip
"""For each kind of disagreement, the traces on which the two sides are furthest apart."""
COMMON = computed_table("disagreements_traits", (
    KIND,
    Column("trait", meaning="The property of traces that is compared."),
    Column("n", meaning="Traces of the kind of which the trait is known."),
    Column("mean", meaning="Mean of the trait over the traces of the kind."),
    Column("mean_others", "mean, others", "Mean of the trait over all other traces that both sides "
           "have a say on."),
    Column("difference", meaning="Mean of the kind minus mean of the others.", interval=True),
))  # fmt: skip
"""A row per kind of disagreement and trait (length, correctness, …): its mean over the traces of
the kind, compared with all other traces that both sides score."""


def sides(joined: Joined) -> pd.DataFrame:
    """A row per trace and a column per side: the side's rank of the trace inside its model and
    task, as a share from 0 to 1.

    It is NaN where the side has no score of the trace, or scores no other trace of that model and
    task.
    """
    strata = settings(joined)

    def shares(scores: Any, fewest: str) -> Any:
        """Ranks inside each model and task as shares; NaN where the aggregation `fewest` (`count`,
        or `nunique` for distinct scores) gives less than two."""
        inside = scores.round(DECIMALS).groupby(strata)
        ranks = (inside.rank() - 0.5) / inside.transform("count")
        return ranks.where(inside.transform(fewest) > 1)

    table = pd.DataFrame(index=joined.index, columns=list(SIDES), dtype=float)
    for side, families in SIDES.items():
        if names := list(where(joined.measures, family=set(families)).index):
            mean = shares(only(joined.oriented, names), "nunique").mean(axis=1)
            table[side] = shares(mean, "count")
    return table


def disagreement_tables(joined: Joined, how: Bootstrap, listed: int) -> dict[str, pd.DataFrame]:
    """The tables `PARTING`, `LISTED` and `COMMON` of a comparison, by name.

    Args:
        listed: maximum number of traces of each kind in `LISTED`.
    """
    say, clusters, strata = sides(joined), questions(joined), settings(joined)
    counts, items, common = [], [], []
    traits = joined.traces.set_index(list(KEY)).reindex(joined.index)
    for kind in KINDS:
        up, down = say[kind.faithful].to_numpy(), say[kind.unfaithful].to_numpy()
        known = ~np.isnan(up) & ~np.isnan(down)
        row: dict[str, Any] = {"kind": kind.name, "faithful_by": kind.faithful}
        row |= {"unfaithful_by": kind.unfaithful, "n_items": int(known.sum())}
        if not known.any():
            both = (kind.faithful, kind.unfaithful)
            lacking = [side for side in both if np.isnan(numbers(say[side])).all()]
            words = f"no measure of {' or '.join(lacking)} varies within a model and task"
            words = words if lacking else "no trace has both"
            counts.append(row | {"n": 0, "reason": words})
            continue
        parts = known & (up > 0.5) & (down < 0.5)
        n, of = int(parts.sum()), int(known.sum())
        halves = np.stack([parts, up > 0.5, down < 0.5, known])[:, known]
        beyond = _beyond_chance(halves, clusters[known], strata[known], how)
        row |= {"n": n, "share": n / of, "expected": n - beyond.value, "reason": ""}
        counts.append(row | columns("beyond", beyond))
        gap = np.where(parts, up - down, -math.inf)
        order = np.argsort(-gap, kind="stable")[: min(listed, n)]
        for rank, i in enumerate(order.tolist(), start=1):
            about = dict(zip(KEY, joined.index[i], strict=True)) | {"gap": float(gap[i])}
            about |= say.iloc[i].to_dict() | traits.iloc[i][list(TRAITS)].to_dict()
            items.append({"kind": kind.name, "rank": rank} | about)
        common += _in_common(kind.name, traits, parts, known, clusters, how)
    return {
        table.name: table.filled(rows)
        for table, rows in ((PARTING, counts), (LISTED, items), (COMMON, common))
    }


def _beyond_chance(
    halves: np.ndarray, clusters: np.ndarray, strata: np.ndarray, how: Bootstrap
) -> Estimate:
    """Number of traces with the disagreement minus the number expected by chance inside each model
    and task, with a bootstrap interval over questions.

    The interval is corrected for all kinds together (Bonferroni): if sides were independent, one
    comparison in twenty would have a kind whose interval does not contain 0.

    Args:
        halves: (4, traces) whether the sides disagree, whether the one calls the trace faithful,
            whether the other calls it unfaithful, and 1.
        clusters: question of each trace.
        strata: model and task of each trace.
    """
    places = [np.unique(x, return_inverse=True)[1] for x in (clusters, strata)]
    shape = [int(place.max()) + 1 for place in places]
    cells, n_cells = np.ravel_multi_index(places, shape), shape[0] * shape[1]
    sums = np.stack([np.bincount(cells, x, n_cells).reshape(shape) for x in halves])

    def beyond(totals: np.ndarray) -> np.ndarray:
        parts, up, down, n = totals
        by_chance = np.nan_to_num(over(up * down, n))
        return len(cells) * (parts - by_chance).sum(axis=-1) / n.sum(axis=-1)

    drawn = np.concatenate([w.astype(float) @ sums for w in weights(shape[0], how)], axis=1)
    tail = (1 - CONFIDENCE) / 2 / len(KINDS)
    low, high = np.quantile(beyond(drawn), [tail, 1 - tail])
    return Estimate(float(beyond(sums.sum(axis=1))), float(low), float(high), len(cells))


def _in_common(
    kind: str,
    traits: pd.DataFrame,
    parts: np.ndarray,
    known: np.ndarray,
    clusters: Any,
    how: Bootstrap,
) -> list[Mapping[str, Any]]:
    rows = []
    for trait in TRAITS:
        value = traits[trait].to_numpy(dtype=float)
        both = {
            "in": np.where(parts, value, np.nan),
            "out": np.where(known & ~parts, value, np.nan),
        }
        if any(np.isnan(of).all() for of in both.values()):
            continue
        found = means(clusters, both, minus={"difference": ("in", "out")}, how=how)
        row = {"kind": kind, "trait": trait, "n": found["in"].n, "mean": found["in"].value}
        rows.append(
            row | {"mean_others": found["out"].value} | columns("difference", found["difference"])
        )
    return rows
