"""SLRC against graded necessity, NLDD and TTS on the same items and the same steps.

The comparison that the SLRC paper (Limitations) names as future work.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.tables import ranks, stats
from experiments.tables.outcomes import READINGS, Record, flips, measured, of_probe
from experiments.tables.tidy import columns, mean, present, with_interval

GRADED = ("graded_necessity", "removed_tv", "nldd", "nldd_own", "tts")
"""Of `probes.causal_effects`; the first two remove a step, the others corrupt it."""
FLIPS = {"necessity": "remove", "regenerate": "regenerate"}
"""Measures of SLRC that say of a step whether the answer changed, by their edit."""
ORDER = (
    *(f"{name}_{reading}" for name in ("necessity", "slrc", "regenerate") for reading in READINGS),
    *GRADED,
)
TIE = 3
"""Decimals in which two scores must differ to be ranked: what lies past them is float noise."""


@dataclass(frozen=True)
class Score:
    """What a measure says of one item."""

    value: float
    steps: Mapping[int, float]
    """By step index; without those it says nothing of, empty for a measure of items alone."""


Scores = dict[str, Score]
"""Of one measure, by item."""


def head_to_head_table(
    records: Iterable[Record], *, seed: int = 0, resamples: int = stats.RESAMPLES
) -> pd.DataFrame:
    """Every two measures: do they rank the items alike, and the steps within an item?

    `framing` is that of the SLRC measures; the graded ones are always taken in `prefix`, and
    two of them are compared in its rows alone.

        spearman, kendall   over the `n` items that both have a score of, with bootstrap
                            intervals over items; scores that agree to `TIE` decimals tie
        step_spearman       of the steps within an item, mean over the `n_ranked` items in
                            which neither says the same of all steps
        same_highest        share of the `n_highest` items in which each has one highest step,
                            and it is the same one; Wilson interval
    """
    records = list(records)
    rows = []
    graded = {key: _graded(same) for key, same in of_probe(records, "causal_effects")}
    slrc = _of_slrc(records)
    for model, task in sorted(graded.keys() | {key[:2] for key in slrc}):
        framings = [f for m, t, f in slrc if (m, t) == (model, task)]
        for framing in sorted({"prefix", *framings}):
            ours = graded.get((model, task), {})
            by_name = slrc.get((model, task, framing), {}) | ours
            names = [name for name in ORDER if by_name.get(name)]
            for one, other in itertools.combinations(names, 2):
                if framing == "prefix" or one not in ours:
                    row = _compared(by_name[one], by_name[other], seed, resamples)
                    where = {"model": model, "task": task, "framing": framing}
                    rows.append(where | {"measure": one, "other": other} | row)
    names = ["model", "task", "framing", "measure", "other", "n"]
    names += [*with_interval("spearman", "kendall"), "n_ranked", *with_interval("step_spearman")]
    return pd.DataFrame(rows, columns=[*names, "n_highest", *with_interval("same_highest")])


def _compared(one: Scores, other: Scores, seed: int, resamples: int) -> dict[str, Any]:
    items = sorted(one.keys() & other.keys())
    x, y = (np.array([of[i].value for i in items], dtype=float).round(TIE) for of in (one, other))
    within = [r for i in items if (r := _within(one[i], other[i])) is not None]
    best = [(a, b) for i in items if (a := _best(one[i])) and (b := _best(other[i]))]
    same = stats.share([a == b for a, b in best])
    ranked = stats.mean_of_items(within, seed=seed, resamples=resamples)
    return {
        "n": len(items),
        **columns("spearman", ranks.spearman(x, y, seed=seed, resamples=resamples)),
        **columns("kendall", ranks.kendall(x, y, seed=seed, resamples=resamples)),
        "n_ranked": len(within),
        **columns("step_spearman", ranked),
        "n_highest": len(best),
        **columns("same_highest", same),
    }


def _within(one: Score, other: Score) -> float | None:
    steps = sorted(one.steps.keys() & other.steps.keys())
    x, y = (np.array([s.steps[i] for i in steps], dtype=float).round(TIE) for s in (one, other))
    if len(steps) < 2 or not np.ptp(x) or not np.ptp(y):
        return None
    return ranks.rho(x, y)


def _best(score: Score) -> tuple[int] | None:
    """The step with the highest value; None where several share it."""
    values = {step: round(v, TIE) for step, v in score.steps.items()}
    highest = [step for step, v in values.items() if v == max(values.values())]
    return (highest[0],) if len(highest) == 1 < len(values) else None


def _graded(records: Iterable[Record]) -> dict[str, Scores]:
    found: dict[str, Scores] = {name: {} for name in GRADED}
    for r in records:
        for name in GRADED:
            if r[f"mean_{name}"] is not None:
                pairs = zip(r["steps"], r[name], strict=True)
                steps = {step: v for step, v in pairs if v is not None}
                found[name][str(r["item"])] = Score(r[f"mean_{name}"], steps)
    return found


def _of_slrc(records: Iterable[Record]) -> dict[tuple[str, str, str], dict[str, Scores]]:
    """By model, task and framing."""
    found: dict[tuple[str, str, str], dict[str, Scores]] = {}
    for r in measured(records):
        of_framing = found.setdefault((r["model"], r["dataset"], r["framing"]), {})
        for name, edit in FLIPS.items():
            pairs = zip(r["steps"], flips(r, edit), strict=False)
            steps = {step: float(flip) for step, flip in pairs if flip is not None}
            if steps:
                score = Score(mean(list(steps.values())), steps)
                of_framing.setdefault(f"{name}_{r['reading']}", {})[str(r["item"])] = score
        removed, alone = present(flips(r, "remove")), present(flips(r, "keep_only"))
        if removed and alone:
            sufficiency = 1 - mean(alone)
            score = Score(stats.slrc(mean(removed), sufficiency), {})
            of_framing.setdefault(f"slrc_{r['reading']}", {})[str(r["item"])] = score
    return found
