"""Table of every measure on the planted models: does it tell models of known truth apart?

`python -m faithscope.experiments.studies.slrc.tables.planted` prints the short table of
`docs/measures.md` from a given `planted.csv`, by default `docs/planted.csv`, the result of the
shipped `configs/planted.yaml`.

Each column of `PLANTED` says which items are positive and which negative. Some columns are about
models that rely on their steps like `faithful` but whose text is unfaithful: it leaves out an
operation (`silent_step`; `half_silent` on half of its items), names a source that the answer does
not follow (`false_source`) or an operation that was not carried out (`wrong_operation`). A measure
of reliance (`Measure.about`) should not tell them from `faithful`, so theory expects an AUROC of
one half there; only a measure of faithfulness can be expected to do better. A measure is taken
in the direction that theory gives it (`Measure.higher_is_faithful`): below one half it points the
wrong way, and is shown so. The table validates measures on known mechanisms in tiny models, not on
large ones.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy

from faithscope.experiments.analysis.columns import SHARED, Column, with_intervals
from faithscope.experiments.analysis.removal_units import UNIT_WORDS
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.areas import area
from faithscope.experiments.analysis.statistics.stats import NOTHING, Estimate
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns, keep, mean, rows, where
from faithscope.experiments.analysis.wording import planted_variant
from faithscope.experiments.data.planted.data import Problem, is_true, true_steps
from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.data.planted.questions import named_step, problem_asked
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.measures import (
    FORWARDS,
    MEASURES,
    Measure,
    items_and_steps,
    mean_forwards,
    with_steps,
)
from faithscope.experiments.studies.slrc.tables.sources import Sources
from faithscope.interp.errors import UserError

POSITIVE = "faithful"


class Side(NamedTuple):
    """Items that a column compares with others."""

    model: str
    true: bool | None = None
    """Whether to take only items with a faithful text, or only the others; None takes all."""


AGAINST = {
    Column("auroc", "AUROC", "Items of `faithful` against those of `decorative`."): (
        Side(POSITIVE),
        Side("decorative"),
    ),
    **{
        Column(f"auroc_{name}", f"AUROC, {label}", meaning): (Side(POSITIVE), Side(model))
        for name, model, label, meaning in (
            ("confound", "hint_no_deletions", "confound", "Against those of `hint_no_deletions`."),
            ("hint", "hint", "hint", "Against those of `hint`."),
            (
                *("silent_step", "silent_step", "silent step"),
                "Against those of `silent_step`; one half is expected of a measure of reliance.",
            ),
            (
                *("false_source", "false_source", "false source"),
                "Against those of `false_source`; one half is expected of a measure of reliance.",
            ),
        )
    },
    Column(
        "auroc_half_silent",
        "AUROC, half silent",
        "Items of `half_silent` whose text says all that was computed, against its other items.",
    ): (Side("half_silent", True), Side("half_silent", False)),
    Column(
        "auroc_wrong_operation",
        "AUROC, wrong operation",
        "Against those of `wrong_operation`; one half is expected of a measure of reliance.",
    ): (Side(POSITIVE), Side("wrong_operation")),
    Column(
        "auroc_2_steps",
        "AUROC, 2 steps",
        "Items of `faithful_2` against those of `hint_2`, whose chains have 2 steps.",
    ): (Side("faithful_2"), Side("hint_2")),
    Column(
        "auroc_5_steps",
        "AUROC, 5 steps",
        "Items of `faithful_5` against those of `hint_5`, whose chains have 5 steps.",
    ): (Side("faithful_5"), Side("hint_5")),
}
"""Column -> items that are positive and negative."""
OF_STEPS = ("false_source", "wrong_operation")
"""Models whose texts have true and untrue sentences."""
FALSE_ALARMS = Column(
    "false_alarms",
    "false alarms",
    "Items of `faithful`, `faithful_2` and `faithful_5` that the measure's rule, which was fixed "
    "beforehand, calls unfaithful.",
    interval=True,
)
DETECTED = Column(
    "detected",
    meaning="Items with an unfaithful text, of all models but the mixtures and `select`, that the "
    "rule calls unfaithful.",
    interval=True,
)
MIXTURES = ("hint", "mixture_25", "mixture_50", "mixture_75", POSITIVE)
"""Mixture models by rising p, the share of training rows in which the answer follows the steps."""
LEAST_LEVELS = 3


def has_planted_truth(frames: Sources) -> bool:
    """Whether a run has the planted models for a comparison: `faithful` with `decorative` or
    `hint_no_deletions`, or three mixtures, or `select`."""
    models = {planted_variant(model) for model in frames.models}
    return (
        (POSITIVE in models and bool(models & {"decorative", "hint_no_deletions"}))
        or len(models & set(MIXTURES)) >= LEAST_LEVELS
        or "select" in models
    )


def of_planted(scores: pd.DataFrame, step_scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of planted models and, below them, the credits of their steps (`with_steps`)."""
    whole = with_steps(scores, step_scores)
    return keep(whole, [bool(planted_variant(model)) for model in whole["model"]])


def _against_truth(planted: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    how: dict[str, Any] = {"seed": analysis.seed, "resamples": analysis.resamples}
    scores, every_step = items_and_steps(planted)
    steps = where(every_step, model="planted:select")
    asked = set(scores["measure"])
    for measure in MEASURES.values():
        if measure.name not in asked:
            continue
        of_measure = where(scores, measure=measure.name)
        by_variant = _by_variant(of_measure)
        row: dict[str, Any] = {
            "measure": measure.name,
            "family": measure.family,
            "about": measure.about,
        }
        for column, sides in AGAINST.items():
            pair = (oriented(measure, _of_side(side, of_measure)) for side in sides)
            row |= columns(column.name, auroc(*pair))
        levels = {PLANTS[v].p or 0.0: by_variant[v] for v in MIXTURES if v in by_variant}
        by_p = {p: oriented(measure, of_p) for p, of_p in levels.items()}
        row |= columns("spearman_p", rank_correlation(by_p, **how))
        hits, chances = step_hits(where(steps, measure=measure.name))
        row |= columns("step_hit_rate", stats.mean_of_items(hits, **how))
        row |= {"step_chance": mean(chances)}
        row |= {"step_auroc": step_auroc(measure, where(every_step, measure=measure.name))}
        called = called_unfaithful(measure, of_measure)
        row |= columns("false_alarms", stats.share([c for c, true in called if true]))
        row |= columns("detected", stats.share([c for c, true in called if not true]))
        row |= {"calibration_mae": calibration(levels) if measure.share else math.nan}
        faithful = where(of_measure, model=f"planted:{POSITIVE}")
        row |= {"forwards": mean_forwards(faithful, measure.name)}
        yield row | {"n": sum(len(by_variant.get(v, [])) for v in (POSITIVE, "decorative"))}


PLANTED = computed_table(
    "planted",
    (
        *(SHARED["measure"], SHARED["family"]),
        Column(
            "about",
            meaning="Reliance: how much the answer depends on the text. Faithfulness: "
            "whether the text describes what the answer depends on.",
        ),
        *with_intervals(
            *AGAINST,
            Column("spearman_p", "Spearman with p", "Over the items of the mixtures."),
            Column("step_hit_rate", "step hit rate", "The step credited most is the one it reads."),
        ),
        Column("step_chance", "by chance", "What blind choice among the steps gives."),
        Column(
            "step_auroc",
            "AUROC of steps",
            "True sentences of a text against its untrue ones, within a model; mean over "
            "`false_source` and `wrong_operation`.",
        ),
        FALSE_ALARMS,
        DETECTED,
        Column("calibration_mae", "distance from p", "Mean over p, of measures that are shares."),
        FORWARDS,
        Column("n", "items", "Items of `faithful` and `decorative` that have a score."),
    ),
    ("scores", "step_scores"),
    _against_truth,
    prepare=of_planted,
    caption="Measures against the planted truth",
)
"""Every measure on planted models, one row per measure; NaN where nothing can be compared."""


def auroc(positive: Sequence[float], negative: Sequence[float]) -> Estimate:
    """Area under the ROC curve of two samples, with its interval; ties count half."""
    if not len(positive) or not len(negative):
        return NOTHING
    truth = np.repeat([True, False], [len(positive), len(negative)])
    scores = np.concatenate([np.asarray(of, float) for of in (positive, negative)])
    return area(np.arange(len(truth)), truth, scores).estimate()


def rank_correlation(
    by_p: Mapping[float, Sequence[float]], *, seed: int, resamples: int
) -> Estimate:
    """Spearman's rank correlation of p and score over items, with its bootstrap interval.

    The estimate is empty for fewer than `LEAST_LEVELS` values of p, or if all scores are equal.
    """
    scores_of = {p: np.asarray(of_p, float) for p, of_p in by_p.items() if len(of_p)}
    scores = np.concatenate([*scores_of.values(), []])
    if len(scores_of) < LEAST_LEVELS or np.ptp(scores) == 0:
        return NOTHING
    p = np.concatenate([np.full(len(of_p), level) for level, of_p in scores_of.items()])
    value = float(scipy.stats.spearmanr(p, scores).statistic)  # pyright: ignore[reportAttributeAccessIssue]
    rng = np.random.default_rng(seed)
    drawn = np.concatenate(
        [of_p[rng.integers(len(of_p), size=(resamples, len(of_p)))] for of_p in scores_of.values()],
        axis=1,
    )
    ranks = scipy.stats.rankdata(drawn, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    levels = scipy.stats.rankdata(p) - scipy.stats.rankdata(p).mean()
    draws = stats.over(ranks @ levels, np.sqrt((ranks**2).sum(axis=1) * (levels**2).sum()))
    return Estimate(value, *stats.percentiles(draws, len(scores)), len(scores))


def calibration(by_p: Mapping[float, Sequence[float]]) -> float:
    """Mean distance of the mean score from p, over values of p; NaN for fewer than
    `LEAST_LEVELS`."""
    apart = [abs(mean(list(of_p)) - p) for p, of_p in by_p.items() if len(of_p)]
    return mean(apart) if len(apart) >= LEAST_LEVELS else math.nan


def step_hits(steps: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Hits and blind chance per item of `select`: whether the step with the greatest credit is the
    named one.

    If k steps share the greatest credit and the named step is one of them, the hit counts 1 / k.

    Args:
        steps: rows `item, step, score` of one measure, all credited steps of each item.
    """
    hits, chances = [], []
    for item, of_item in steps.groupby("item", sort=True):
        credit = dict(zip(of_item["step"].tolist(), of_item["score"].tolist(), strict=True))
        first = [step for step, score in credit.items() if score == max(credit.values())]
        named = named_step(str(item))
        hits.append((named in first) / len(first))
        # A measure that never credits the named step cannot hit it by chance either.
        chances.append((named in credit) / len(credit))
    return hits, chances


def step_auroc(measure: Measure, steps: pd.DataFrame) -> float:
    """AUROC of a measure's credit of true sentences against untrue ones, mean over the models of
    `OF_STEPS`; NaN if one of them has no credits.

    Args:
        steps: rows `model, item, step, score` of the measure.
    """
    return float(np.mean([step_auroc_of(name, measure, steps) for name in OF_STEPS]))


def step_auroc_of(name: str, measure: Measure, steps: pd.DataFrame) -> float:
    """AUROC of a measure's credit of true sentences against untrue ones within one planted model;
    NaN if one of the two kinds has no credits."""
    sides: dict[bool, list[float]] = {True: [], False: []}
    for row in rows(where(steps, model=f"planted:{name}")):
        problem = _problem(name, str(row["item"]))
        truth = None if problem is None else true_steps(name, problem)
        if truth is not None and row["step"] < len(truth):
            sides[truth[row["step"]]].append(row["score"])
    pair = (oriented(measure, sides[true]) for true in (True, False))
    return auroc(*pair).value


FAITHFUL = (POSITIVE, "faithful_2", "faithful_5")
"""Models whose texts are all faithful, with every seed of weights."""


def called_unfaithful(measure: Measure, scores: pd.DataFrame) -> list[tuple[bool, bool]]:
    """Per item of a known truth, whether the measure's rule calls its text unfaithful, and whether
    it is faithful; none for a measure without a rule. Of faithful texts only those of the models
    that are faithful throughout count."""
    least = measure.unfaithful_below
    called = []
    for row in rows(scores) if least is not None else ():
        name = planted_variant(str(row["model"])) or ""
        true = truth_of(name, str(row["item"]))
        if true is False or (name and PLANTS[name].variant in FAITHFUL):
            called.append((row["score"] < least, bool(true)))
    return called


def truth_of(name: str, item: str) -> bool | None:
    """Whether an item's text is faithful; None for a mixture and `select`, and for a chain that is
    about no question of the model."""
    problem = _problem(name, item)
    return None if problem is None else is_true(name, problem)


def _problem(name: str, item: str) -> Problem | None:
    """The problem that an item asks; None for a chain that is about no question of the model."""
    try:
        return problem_asked(name, item)
    except UserError:
        return None


def _of_side(side: Side, scores: pd.DataFrame) -> list[float]:
    of_model = where(scores, model=f"planted:{side.model}")
    return [
        row["score"]
        for row in rows(of_model)
        if side.true is None or truth_of(side.model, str(row["item"])) == side.true
    ]


def _by_variant(scores: pd.DataFrame) -> dict[str, list[float]]:
    return {
        planted_variant(str(model)) or "": of_model["score"].tolist()
        for model, of_model in scores.groupby("model")
    }


def oriented(measure: Measure, scores: Sequence[float]) -> list[float]:
    """Scores with the sign that makes a higher one more faithful by theory."""
    return [s if measure.higher_is_faithful else -s for s in scores]


SHIPPED = Path("docs") / "planted.csv"
_SHOWN = {
    "auroc": "decorative",
    "auroc_confound": "confound",
    "auroc_silent_step": "silent step",
    "auroc_half_silent": "half silent",
    "auroc_false_source": "false source",
    "auroc_wrong_operation": "wrong operation",
    "step_auroc": "true steps",
    "spearman_p": "follows p",
    "step_hit_rate": "step named",
}
"""Column -> its heading in the short table."""


def short_table(planted: pd.DataFrame) -> str:
    """Short table in Markdown of the measures with `Measure.in_short`; a dash for a missing
    number."""
    heading = ("measure", "about", *_SHOWN.values(), "calls")
    lines = [heading, ("---", "---", *["---:"] * (len(heading) - 2))]
    for measure in (m for m in MEASURES.values() if m.in_short):
        for row in rows(where(planted, measure=measure.name)):
            several = "unit" in row and len(set(planted["unit"])) > 1
            unit = f" ({UNIT_WORDS[row['unit']]})" if several else ""
            named = f"{measure.in_short}{unit}"
            lines.append(
                (
                    named,
                    measure.about,
                    *(decimal(row[x]) for x in _SHOWN),
                    decimal(row["forwards"], 0),
                )
            )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(short_table(pd.read_csv(sys.argv[1] if len(sys.argv) > 1 else SHIPPED)))
