"""Tables of all measures of a run: their means, and how alike they rank items and steps.

Probe records are reduced to one number per item and measure, so that measures can be compared
with each other and with a planted truth. Each measure is defined in the report of its probe.

Costs are the model calls needed for this measure alone, without sharing a forest with others: one
per branch answered or scored, one per rewritten continuation, and one per forward pass whose
internals are read. All labels scored after one text count as one call.

The comparison of SLRC with graded necessity, NLDD and TTS is named as future work in the SLRC paper
(Limitations).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import SHARED, Column, with_intervals
from faithscope.experiments.analysis.failures import Failures, kept
from faithscope.experiments.analysis.measure import Measure
from faithscope.experiments.analysis.record_frames import COUNTED
from faithscope.experiments.analysis.statistics import ranks, stats
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, spearman
from faithscope.experiments.analysis.statistics.stats import over
from faithscope.experiments.analysis.stored_records import Record, place_of
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns, distinct, keep, mean, present, rows, where
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.tables.outcomes import FRAMING
from faithscope.probes.framing import FRAMINGS, READINGS
from faithscope.probes.record import KEYS

LEAST_ITEMS = 5
"""Minimum number of items for a correlation."""


def _means_of_measures(scores: pd.DataFrame, how: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    for pair in sorted(distinct(scores, "model", "task"), key=lambda p: (p["model"], p["task"])):
        of_pair = where(scores, **pair)
        wide = _by_item(of_pair)
        values = wide.to_numpy(dtype=float)
        units = how.units(wide.reset_index())
        drawn = stats.bootstrapped(
            values, _means, units=units, seed=how.seed, resamples=how.resamples
        )
        there = (~np.isnan(values)).sum(axis=0).tolist()
        for name, n, estimate in zip(map(str, wide.columns), there, drawn, strict=True):
            row: dict[str, Any] = pair | {"measure": name}
            row |= {"family": MEASURES[name].family, "n": n}
            row |= columns("score", estimate)
            row |= {"higher_is_faithful": MEASURES[name].higher_is_faithful}
            yield row | {"forwards": mean_forwards(of_pair, name)}


HIGHER_IS_FAITHFUL = Column(
    "higher_is_faithful", meaning="The direction that theory gives the measure."
)
FORWARDS = Column("forwards", "calls", "Mean model calls of an item for this measure alone.")
MEANS_OF_MEASURES = computed_table(
    "measures",
    (
        *(SHARED[name] for name in ("model", "task", "measure", "family")),
        *COUNTED.columns,
        Column(
            "score",
            meaning="Mean score over items as measured, whatever its direction.",
            interval=True,
        ),
        HIGHER_IS_FAITHFUL,
        FORWARDS,
    ),
    "scores",
    _means_of_measures,
    caption="Mean score of every measure",
    folded="Mean of every measure",
)
"""One row per model, task and measure: the mean score over the items that have one, with percentile
bootstrap intervals over items."""


def _correlations(scores: pd.DataFrame, how: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    for model in sorted(set(scores["model"])):
        wide = _by_item(where(scores, model=model))
        rho = wide.corr(method="spearman", min_periods=LEAST_ITEMS).to_numpy()
        there = wide.notna().to_numpy().astype(int)
        both = there.T @ there
        for i, j in zip(*np.triu_indices(len(rho), 1), strict=True):
            if not np.isnan(rho[i, j]):
                pair = {"measure": wide.columns[i], "other": wide.columns[j]}
                yield {"model": model} | pair | {"n": int(both[i, j]), "spearman": float(rho[i, j])}


SPEARMAN = Column("spearman", meaning="Rank correlation over the items that both have a score of.")
MEASURE_CORRELATIONS = computed_table(
    "measure_correlations",
    (*(SHARED[name] for name in ("model", "measure", "other")), *COUNTED.columns, SPEARMAN),
    "scores",
    _correlations,
)
"""Spearman's rank correlation over items, one row per model and pair of measures.

The correlation is over the items with both scores from all tasks of a model, so it includes
differences between tasks. Scores are as measured, whatever their direction. A pair has no row if
one score never varies, or if fewer than `LEAST_ITEMS` items have both.
"""


def mean_forwards(scores: pd.DataFrame, measure: str) -> float:
    """Mean model calls per item for one measure alone; NaN where no record has the number."""
    return mean(present(where(scores, measure=measure)["forwards"].tolist()))


def _by_item(scores: pd.DataFrame) -> pd.DataFrame:
    """One row per task and item, one column per measure in the order of the registry."""
    wide = scores.pivot(index=["task", "item"], columns="measure", values="score")
    return wide.reindex(columns=[name for name in MEASURES if name in wide.columns])


def _means(values: np.ndarray) -> np.ndarray:
    """Column means without NaN; NaN where a draw has no item with a score."""
    return over(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))


MEASURES: dict[str, Measure] = {m.name: m for s in REPORTS.values() for m in s.measures}
"""Name -> measure, for all measures."""
PROBES_READ = tuple(dict.fromkeys(m.probe for m in MEASURES.values()))
"""Names of the probes whose records some measure reads."""
_PLACE = ("model", "task", "item")
SCORES = KEYS | {
    "measure": "name of the measure, as in table `measures`",
    "family": "behavioural | logit | internal",
    "score": "score as measured, whatever its direction",
    "forwards": "model calls of the measure on this item; none where the records do not say",
}
"""Columns of `all_scores` -> meaning."""
_BY_PROBE = {p: [m for m in MEASURES.values() if m.probe == p] for p in PROBES_READ}


def all_scores(records: Iterable[Record], failed: Failures | None = None) -> pd.DataFrame:
    """One row per model, task, item and measure, with the columns `SCORES`.

    Items without a score have no row. A key is None if the records behind a score differ in it (the
    variant, for a mean over variants).

    Args:
        failed: takes the measures whose score cannot be computed, which then have no row; without
            it the first of them raises its error.
    """

    def scored(place: dict[str, str], m: Measure, of: list[Record]) -> Iterator[dict[str, Any]]:
        if (score := m.score(of)) is not None:
            row = {**_shared(of), **place, "measure": m.name, "family": m.family}
            yield row | {"score": score, "forwards": m.forwards(of)}

    return pd.DataFrame(_rows(records, scored, failed), columns=list(SCORES))


def _shared(records: Sequence[Record]) -> dict[str, Any]:
    """Key fields that all records share; None for a field in which they differ."""
    first, *rest = ({key: record.get(key) for key in KEYS} for record in records)
    return {k: v if all(other[k] == v for other in rest) else None for k, v in first.items()}


def all_step_scores(records: Iterable[Record], failed: Failures | None = None) -> pd.DataFrame:
    """One row per model, task, item, measure and step, for measures that credit steps.

    Args:
        failed: as of `all_scores`.
    """

    def credited(place: dict[str, str], m: Measure, of: list[Record]) -> Iterator[dict[str, Any]]:
        if m.steps is not None:
            for step, score in m.steps(of).items():
                yield {**place, "measure": m.name, "step": step, "score": score}

    columns = [*_PLACE, "measure", "step", "score"]
    return pd.DataFrame(_rows(records, credited, failed), columns=columns)


def _rows(
    records: Iterable[Record],
    rows_of: Callable[[dict[str, str], Measure, list[Record]], Iterable[dict[str, Any]]],
    failed: Failures | None,
) -> list[dict[str, Any]]:
    """Rows of every item and measure, without those of measures that fail on an item."""
    made: list[dict[str, Any]] = []
    for place, m, of in _each(records):
        with kept(failed, "score", m.name):
            made += rows_of(place, m, of)
    return [row for row in made if failed is None or ("score", row["measure"]) not in failed]


def _each(records: Iterable[Record]) -> Iterable[tuple[dict[str, str], Measure, list[Record]]]:
    """All combinations of item and measure with records, as (place, measure, records)."""
    included = [r for r in records if r["probe"] in _BY_PROBE and not r.get("excluded")]
    included.sort(key=lambda r: (place_of(r), r["probe"]))
    for (place, probe), same in itertools.groupby(
        included, key=lambda r: (place_of(r), r["probe"])
    ):
        of_probe = list(same)
        for measure in _BY_PROBE[probe]:
            if of := measure.records(of_probe):
                yield dict(zip(_PLACE, place, strict=True)), measure, of


GRADED = ("graded_necessity", "removed_tv", "nldd", "nldd_own", "tts")
"""Measures of `probes.causal_effects`; the first two remove a step, the others corrupt it."""
OF_SLRC = tuple((name, r) for name in ("necessity", "slrc", "regenerate") for r in READINGS)
ORDER = (*(f"{name}_{reading}" for name, reading in OF_SLRC), *GRADED)
_READ = ("slrc", "causal_effects")
TIE = 3
"""Number of decimals that scores are rounded to before ranking; the rest is float noise."""


class Score(NamedTuple):
    """The score of one item by one measure, with its credit of steps."""

    value: float
    steps: Mapping[int, float]
    """Step index -> credit, without uncredited steps; empty for measures of whole items."""


Scores = dict[str, Score]
"""Item -> its score by one measure."""


def with_steps(scores: pd.DataFrame, step_scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of items with, below them, the credits of their steps (`step` is then known)."""
    return pd.concat([scores.assign(step=math.nan), step_scores], ignore_index=True)


def _head_to_head(scores: pd.DataFrame, how: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    for (model, task), by_measure in _scores(scores).items():
        for framing in FRAMINGS:
            named = {
                f"{name}_{reading}": by_measure.get(f"{name}_{framing}_{reading}", {})
                for name, reading in OF_SLRC
            } | {name: by_measure.get(name, {}) for name in GRADED}
            for one, other in itertools.combinations(filter(named.get, ORDER), 2):
                if framing == "prefix" or one not in GRADED:
                    place = {"model": model, "task": task, "framing": framing}
                    row = _compared(named[one], named[other], how)
                    yield place | {"measure": one, "other": other} | row


HEAD_TO_HEAD = computed_table(
    "head_to_head",
    (
        *(SHARED["model"], SHARED["task"], FRAMING, SHARED["measure"], SHARED["other"]),
        *COUNTED.columns,
        *with_intervals(
            SPEARMAN,
            Column("kendall", meaning="Tau-b over the items; scores that agree to 3 decimals tie."),
        ),
        Column("n_ranked", "items (steps)", "Items in which neither says the same of all steps."),
        Column(
            "step_spearman",
            "spearman of steps",
            "Rank correlation of the steps within an item, mean over items.",
            interval=True,
        ),
        Column(
            "n_highest",
            "items (highest step)",
            "Items of two steps or more in which each of the two measures has one step "
            "alone with the highest score.",
        ),
        Column(
            "same_highest",
            "same highest step",
            "Share of the items (highest step) in which both have one and the same.",
            interval=True,
        ),
    ),
    ("scores", "step_scores"),
    _head_to_head,
    prepare=with_steps,
    caption="Measures head to head",
    folded="Every two measures, with intervals",
)
"""Rank agreement of every two measures, over items and over the steps within an item.

`framing` is that of the SLRC measures; the graded ones are always taken in `prefix`, and two of
them are compared in its rows alone.
"""


def _compared(one: Scores, other: Scores, analysis: Bootstrap) -> dict[str, Any]:
    items = sorted(one.keys() & other.keys())
    x, y = (np.array([of[i].value for i in items], dtype=float).round(TIE) for of in (one, other))
    within = [(i, r) for i in items if (r := _within(one[i], other[i])) is not None]
    best = [
        (i, a, b)
        for i in items
        if (a := _best(one[i], other[i])) and (b := _best(other[i], one[i]))
    ]
    of_items = dict(zip(items, analysis.units(pd.DataFrame({"item": items})), strict=True))
    units = list(of_items.values())
    same = stats.share([a == b for _, a, b in best], [of_items[i] for i, *_ in best])
    how: dict[str, Any] = {"seed": analysis.seed, "resamples": analysis.resamples}
    alone = stats.of_units(units) is None
    rho = ranks.spearman(x, y, **how) if alone else spearman(units, x, y, analysis)[0]
    of_within = {"units": [of_items[i] for i, _ in within], **how}
    return {
        "n": len(items),
        **columns("spearman", rho),
        **columns("kendall", ranks.kendall(x, y, units=units, **how)),
        "n_ranked": len(within),
        **columns("step_spearman", stats.mean_of_items([r for _, r in within], **of_within)),
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
    """Step with the highest value among those that both scores credit; None if there is a tie."""
    values = {step: round(v, TIE) for step, v in score.steps.items() if step in other.steps}
    highest = [step for step, v in values.items() if v == max(values.values())]
    return (highest[0],) if len(highest) == 1 < len(values) else None


def items_and_steps(whole: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The two frames that `with_steps` was made of."""
    of_steps = whole["step"].notna()
    steps = keep(whole, of_steps)
    return keep(whole, ~of_steps), steps.assign(step=steps["step"].astype(int))


def _scores(scores: pd.DataFrame) -> dict[tuple[str, str], dict[str, Scores]]:
    """(model, task) -> measure -> scores of its items, of the measures of `_READ`."""
    steps: dict[tuple[str, ...], dict[int, float]] = {}
    of_measures: dict[tuple[str, str], dict[str, Scores]] = {}
    compared = [MEASURES[name].probe in _READ for name in scores["measure"]]
    of_items, of_steps = items_and_steps(keep(scores, compared))
    for row in rows(of_steps):
        place = (row["model"], row["task"], row["item"], row["measure"])
        steps.setdefault(place, {})[row["step"]] = row["score"]
    for row in rows(of_items):
        place = (row["model"], row["task"], row["item"], row["measure"])
        of_measure = of_measures.setdefault(place[:2], {}).setdefault(row["measure"], {})
        of_measure[row["item"]] = Score(row["score"], steps.get(place, {}))
    return of_measures
