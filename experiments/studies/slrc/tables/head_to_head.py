"""SLRC against graded necessity, NLDD and TTS on the same items and the same steps.

The comparison that the SLRC paper (Limitations) names as future work.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.item_tables import Analysis
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics import ranks, stats
from faithscope.experiments.analysis.tidy import columns, rows, with_interval
from faithscope.experiments.studies.slrc.tables.measures import all_scores, all_step_scores
from faithscope.probes.framing import FRAMINGS, READINGS

GRADED = ("graded_necessity", "removed_tv", "nldd", "nldd_own", "tts")
"""Of `probes.causal_effects`; the first two remove a step, the others corrupt it."""
OF_SLRC = tuple((name, r) for name in ("necessity", "slrc", "regenerate") for r in READINGS)
ORDER = (*(f"{name}_{reading}" for name, reading in OF_SLRC), *GRADED)
_READ = ("slrc", "causal_effects")
TIE = 3
"""Decimals in which two scores must differ to be ranked: what lies past them is float noise."""


class Score(NamedTuple):
    """What a measure says of one item."""

    value: float
    steps: Mapping[int, float]
    """By step index; without those it says nothing of, empty for a measure of items alone."""


Scores = dict[str, Score]
"""Of one measure, by item."""


def head_to_head_table(records: Iterable[Record], analysis: Analysis) -> pd.DataFrame:
    """Every two measures: do they rank the items alike, and the steps within an item?

    `framing` is that of the SLRC measures; the graded ones are always taken in `prefix`, and
    two of them are compared in its rows alone.
    """
    scores = _scores([r for r in records if r["probe"] in _READ])
    found = []
    for (model, task), by_measure in scores.items():
        for framing in FRAMINGS:
            named = {
                f"{name}_{reading}": by_measure.get(f"{name}_{framing}_{reading}", {})
                for name, reading in OF_SLRC
            } | {name: by_measure.get(name, {}) for name in GRADED}
            for one, other in itertools.combinations(filter(named.get, ORDER), 2):
                if framing == "prefix" or one not in GRADED:
                    where = {"model": model, "task": task, "framing": framing}
                    row = _compared(named[one], named[other], analysis)
                    found.append(where | {"measure": one, "other": other} | row)
    names = ["model", "task", "framing", "measure", "other", "n"]
    names += [*with_interval("spearman", "kendall"), "n_ranked", *with_interval("step_spearman")]
    return pd.DataFrame(found, columns=[*names, "n_highest", *with_interval("same_highest")])


def _compared(one: Scores, other: Scores, analysis: Analysis) -> dict[str, Any]:
    items = sorted(one.keys() & other.keys())
    x, y = (np.array([of[i].value for i in items], dtype=float).round(TIE) for of in (one, other))
    within = [r for i in items if (r := _within(one[i], other[i])) is not None]
    best = [
        (a, b) for i in items if (a := _best(one[i], other[i])) and (b := _best(other[i], one[i]))
    ]
    same = stats.share([a == b for a, b in best])
    how = {"seed": analysis.seed, "resamples": analysis.resamples}
    return {
        "n": len(items),
        **columns("spearman", ranks.spearman(x, y, **how)),
        **columns("kendall", ranks.kendall(x, y, **how)),
        "n_ranked": len(within),
        **columns("step_spearman", stats.mean_of_items(within, **how)),
        "n_highest": len(best),
        **columns("same_highest", same),
    }


def _within(one: Score, other: Score) -> float | None:
    steps = sorted(one.steps.keys() & other.steps.keys())
    x, y = (np.array([s.steps[i] for i in steps], dtype=float).round(TIE) for s in (one, other))
    if len(steps) < 2 or not np.ptp(x) or not np.ptp(y):
        return None
    return ranks.rho(x, y)


def _best(score: Score, other: Score) -> tuple[int] | None:
    """Of the steps that both have, the one with the highest value; None where several share it."""
    values = {step: round(v, TIE) for step, v in score.steps.items() if step in other.steps}
    highest = [step for step, v in values.items() if v == max(values.values())]
    return (highest[0],) if len(highest) == 1 < len(values) else None


def _scores(records: Sequence[Record]) -> dict[tuple[str, str], dict[str, Scores]]:
    """By model and task, then by the measure's name."""
    steps: dict[tuple[str, ...], dict[int, float]] = {}
    for row in rows(all_step_scores(records)):
        place = (row["model"], row["task"], row["item"], row["measure"])
        steps.setdefault(place, {})[row["step"]] = row["score"]
    scores: dict[tuple[str, str], dict[str, Scores]] = {}
    for row in rows(all_scores(records)):
        place = (row["model"], row["task"], row["item"], row["measure"])
        of_measure = scores.setdefault(place[:2], {}).setdefault(row["measure"], {})
        of_measure[row["item"]] = Score(row["score"], steps.get(place, {}))
    return scores
