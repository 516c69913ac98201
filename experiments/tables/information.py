"""Information over items: between question and reasoning, between each step and the answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.tables import stats
from faithscope.experiments.tables.outcomes import Place, Record, flips, of_probe, place_of
from faithscope.experiments.tables.stats import Estimate
from faithscope.experiments.tables.tidy import columns, mean, present, with_interval

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
BINS = 5
"""Equal parts of the reasoning that steps are pooled in."""
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

    Step i of T stands at (i - ½) / T; `position` is the middle of its fifth. An item's steps
    in one fifth are averaged first, and a fifth without steps has no row; `n` counts items,
    `n_steps` steps. `gain` is the step's surprisal without the question minus that with it.
    """
    found = []
    for (model, task), same in of_probe(records, "information"):
        for i in range(BINS):
            inside = [(r, [t for t in range(r["n_steps"]) if _bin(t, r) == i]) for r in same]
            inside = [(r, at) for r, at in inside if at]
            if not inside:
                continue
            row: dict[str, Any] = {"model": model, "task": task, "position": (i + 0.5) / BINS}
            row |= {"n": len(inside), "n_steps": sum(len(at) for _, at in inside)}
            for name in BY_STEP:
                by_item = [_picked(_by_step(r, name), at) for r, at in inside]
                row |= columns(name, _mean(by_item, seed, resamples))
            found.append(row)
    names = ["model", "task", "position", "n", "n_steps", *with_interval(*BY_STEP)]
    return pd.DataFrame(found, columns=names)


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
    slrc = stats.slrc(necessity.value, sufficiency.value)
    low, high = stats.slrc_interval(
        np.array([sum(x) for x in removed]),
        np.array([len(x) for x in removed]),
        np.array([sum(x) for x in returned]),
        np.array([len(x) for x in returned]),
        seed=seed,
        resamples=resamples,
    )
    held = [
        stats.slrc(mean(gone), mean(back)) >= r["bound"] - _TIES
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


def _by_step(record: Record, name: str) -> Sequence[float | None] | None:
    """One value per step of a record; None where there are none at all."""
    if name != "gain":
        return record[f"step_{name}"]
    with_it, without = record["step_surprisal"], record["step_surprisal_without"]
    return without and [b - a for a, b in zip(with_it, without, strict=True)]


def _picked(values: Sequence[float | None] | None, at: Sequence[int]) -> float | None:
    kept = present(values[i] for i in at) if values else []
    return mean(kept) if kept else None


def _bin(step: int, record: Record) -> int:
    return int((step + 0.5) / record["n_steps"] * BINS)


def _mean(values: Sequence[float | None], seed: int, resamples: int) -> Estimate:
    return stats.mean_of_items(values, seed=seed, resamples=resamples)


def _exp(estimate: Estimate) -> Estimate:
    value, low, high = map(math.exp, (estimate.value, estimate.low, estimate.high))
    return Estimate(value, low, high, estimate.n)
