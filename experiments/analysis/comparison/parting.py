"""Where families of evidence part: four kinds of disagreement, and what their items have in common.

A family's say on a trace is the mean rank of the trace by the family's measures, each turned so
that more of it says more faithful; the upper half of the traces is called faithful. Two families
part on a trace that one has in its upper half and the other in its lower.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from faithscope.experiments.analysis.comparison.agreement import DECIMALS, questions
from faithscope.experiments.analysis.comparison.joined import KEY, TRAITS, Joined
from faithscope.experiments.analysis.statistics.resampling import Drawing, means, weights
from faithscope.experiments.analysis.statistics.stats import CONFIDENCE, Estimate
from faithscope.experiments.analysis.tidy import columns, numbers, only, where, with_interval

SIDES = {
    "judges": ("judged",),
    "behaviour": ("behavioural", "logit"),
    "internals": ("internal",),
}
"""What is read off answers and off their probabilities is one side here: what the model does."""


@dataclass(frozen=True)
class Kind:
    """Traces that one side calls faithful and the other does not."""

    name: str
    faithful: str
    unfaithful: str
    words: str


KINDS = (
    Kind(
        "judged_faithful_unused_inside",
        *("judges", "internals"),
        "judges call the reasoning faithful, and the insides of the model hardly use it",
    ),
    Kind(
        "judged_unfaithful_used_inside",
        *("internals", "judges"),
        "the insides of the model use the reasoning, and judges call it unfaithful",
    ),
    Kind(
        "answer_moves_unused_inside",
        *("behaviour", "internals"),
        "the answer moves with the reasoning, and the insides of the model hardly use it",
    ),
    Kind(
        "answer_stays_used_inside",
        *("internals", "behaviour"),
        "the insides of the model use the reasoning, and the answer does not move with it",
    ),
)
PARTING = ["kind", "faithful_by", "unfaithful_by", "n", "n_items", "share", "expected"]
PARTING += [*with_interval("beyond"), "reason"]
COMMON = ["kind", "trait", "n", "mean", "mean_others", *with_interval("difference")]
LISTED = ["kind", "rank", *KEY, "gap", *SIDES, *TRAITS]


def sides(joined: Joined) -> pd.DataFrame:
    """A row per trace, a column per side: its mean rank, as a share from 0 to 1; NaN for none."""
    table = pd.DataFrame(index=joined.index, columns=list(SIDES), dtype=float)
    for side, families in SIDES.items():
        names = list(where(joined.measures, family=set(families)).index)
        ranks = only(joined.oriented, names).round(DECIMALS).rank()
        n = ranks.notna().sum()
        shares = ((ranks - 0.5) / n.where(n > 0)).loc[:, ranks.nunique() > 1]
        mean = shares.mean(axis=1).round(DECIMALS).to_numpy()
        known = ~np.isnan(mean)
        if known.any():
            place = (rankdata(mean[known]) - 0.5) / known.sum()
            table.loc[known, side] = place
    return table


def parting_tables(joined: Joined, how: Drawing, listed: int) -> dict[str, pd.DataFrame]:
    """`parting`: how often each kind occurs, how often by chance if the two sides knew nothing of
    each other, and `beyond`, the difference, with its interval; `parting_items`: those that part
    the most; `parting_traits`: what they are like beside all other traces that both sides have a
    say on."""
    say, clusters = sides(joined), questions(joined)
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
            words = (
                f"no measure of {' or '.join(lacking)} varies" if lacking else "no trace has both"
            )
            counts.append(row | {"n": 0, "reason": words})
            continue
        parts = known & (up > 0.5) & (down < 0.5)
        n, of = int(parts.sum()), int(known.sum())
        expected = float((up[known] > 0.5).mean() * (down[known] < 0.5).mean()) * of
        row |= {"n": n, "share": n / of, "expected": expected, "reason": ""}
        halves = np.stack([parts[known], up[known] > 0.5, down[known] < 0.5], axis=1)
        counts.append(row | columns("beyond", _beyond_chance(halves, clusters[known], how)))
        gap = np.where(parts, up - down, -math.inf)
        order = np.argsort(-gap, kind="stable")[: min(listed, n)]
        for rank, i in enumerate(order.tolist(), start=1):
            about = dict(zip(KEY, joined.index[i], strict=True)) | {"gap": float(gap[i])}
            about |= say.iloc[i].to_dict() | traits.iloc[i][list(TRAITS)].to_dict()
            items.append({"kind": kind.name, "rank": rank} | about)
        common += _in_common(kind.name, traits, parts, known, clusters, how)
    return {
        "parting": pd.DataFrame(counts, columns=PARTING),
        "parting_items": pd.DataFrame(items, columns=LISTED),
        "parting_traits": pd.DataFrame(common, columns=COMMON),
    }


def _beyond_chance(halves: np.ndarray, clusters: np.ndarray, how: Drawing) -> Estimate:
    """Traces that part minus those expected by chance, with its interval from drawing questions.

    The interval is that of all kinds together (Bonferroni): one in twenty comparisons of sides
    that know nothing of each other has a kind whose interval does not hold 0.

    Args:
        halves: (traces, 3) whether the sides part, whether the one calls the trace faithful,
            whether the other calls it unfaithful.
    """
    names, codes = np.unique(clusters, return_inverse=True)
    sums = np.stack([np.bincount(codes, x, len(names)) for x in (*halves.T, np.ones(len(codes)))])

    def beyond(totals: np.ndarray) -> np.ndarray:
        parts, up, down, n = totals.T
        return len(codes) * (parts / n - up * down / n**2)

    drawn = np.concatenate([w.astype(float) @ sums.T for w in weights(len(names), how)])
    tail = (1 - CONFIDENCE) / 2 / len(KINDS)
    low, high = np.quantile(beyond(drawn), [tail, 1 - tail])
    return Estimate(float(beyond(sums.sum(axis=1)[None])[0]), float(low), float(high), len(codes))


def _in_common(
    kind: str,
    traits: pd.DataFrame,
    parts: np.ndarray,
    known: np.ndarray,
    clusters: Any,
    how: Drawing,
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
