"""Combination of measures: classifiers of a label from all measures, compared with the best single
measure; what each family adds; transfer to other tasks and models.

Classifier and single measure use the same folds. Classifiers choose their settings on inner folds;
the single measure is chosen on the rows on which the classifiers are fitted. `auroc` compares
traces of one model and task. `pooled` compares all traces, so a classifier can gain by recognising
the model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.comparison.scores_vs_labels import (
    AUROC,
    LABEL,
    N_UNFAITHFUL,
    NOT_WITHIN,
    ONE_KIND,
    POOLED,
    TOO_FEW,
    N,
    Target,
)
from faithscope.experiments.analysis.comparison.trust import LEVEL
from faithscope.experiments.analysis.statistics import detection
from faithscope.experiments.analysis.statistics.against_label import against_label
from faithscope.experiments.analysis.statistics.areas import area, behind
from faithscope.experiments.analysis.statistics.exchanging import exchange_test
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns, columns_of

CLASSIFIERS: dict[str, detection.Fit] = {
    "logistic regression": detection.logistic,
    "gradient-boosted trees": detection.trees,
}
GAIN, LOSS, NONE = "gain", "loss", "none"
CROSSED = 0.005
"""Maximum p-value at which a classifier's own AUROC counts as better than chance. It is strict
because predictions for one fold come from labels of the others: without any signal they vary more
than exchanged labels do (on 60 traces 1.4 times as much), which turns .005 into about .03."""
TOO_FEW_KNOWN = "fewer than 2 measures that vary and whose gaps do not hang on the label"
N_MEASURES = Column("n_measures", "measures", "Measures that the classifier was given.")
GAINED = Column("gain", meaning="AUROC of the classifier minus that of what it is compared with.",
                interval=True)  # fmt: skip
VERDICT = Column("verdict", meaning="Gain, loss or none, by the interval of the gain and by p.")
COMBINED = computed_table("combined", (
    LABEL,
    Column("trained_on", meaning="What the classifier was fitted to."),
    Column("tested_on", meaning="What the classifier was tested on: all, or one task or model."),
    Column("classifier", meaning="What was fitted to all measures together."),
    *(N, N_UNFAITHFUL, N_MEASURES, AUROC, POOLED),
    Column("single", "best single", "Best single measure on the rows of the fit, by fold."),
    Column("single_auroc", "AUROC, single", "AUROC of the best single measure on the same traces, "
           "within models and tasks.", interval=True),
    GAINED,
    Column("p", meaning="How often exchanged labels give the classifier so high an AUROC."),
    *(VERDICT, "reason"),
))  # fmt: skip
"""A row per label, classifier, and training and test set.

`gain` is the classifier's AUROC minus that of the best single measure, which is chosen on the
training rows; both use the same bootstrap draws. `verdict` is `none` where the interval of the gain
contains 0; it is also `none` instead of `gain` where the classifier itself is not better than
chance (`p`, from exchanging labels between questions). A classifier trained on other questions is
fitted fold by fold, and each fold may choose another single measure; one trained on other tasks or
models is fitted once.
"""
ABLATION = computed_table("ablation", (
    LABEL,
    Column("families", meaning="Families of the measures that the classifier was given."),
    Column("added", meaning="The family whose gain over the others is given."),
    *(N_MEASURES, N, AUROC, POOLED, GAINED, VERDICT),
))  # fmt: skip
"""A row per label and set of families: a logistic regression on the measures of these families.

`gain` is the AUROC that the family in `added` adds to the other families of the row. Predictions
are for questions that the regression was not fitted on.
"""


def combined_table(of_labels: list[Target], how: Bootstrap) -> pd.DataFrame:
    """The table `COMBINED`: classifiers of each label from all measures."""
    table = []
    for target in of_labels:
        names = _known(target, target.measures(), how.seed)
        if target.fold is None or len(names) < 2:
            one = len(set(target.unfaithful)) < 2
            reason = ONE_KIND if one else TOO_FEW if target.fold is None else TOO_FEW_KNOWN
            table.append({"label": target.label, "n": len(target.rows), "reason": reason})
            continue
        features = target.matrix(names)
        single, chosen = np.full(len(target.rows), np.nan), []
        for i in np.unique(target.fold):
            j, single[target.fold == i] = _single(target, features, target.fold == i)
            chosen.append(names[j])
        of = {"label": target.label, "trained_on": "other questions", "tested_on": "all"}
        of |= {"single": ", ".join(sorted(set(chosen)))}
        for title, fit in CLASSIFIERS.items():
            p = _crossed(target, features, fit)
            whole = np.ones(len(p), dtype=bool)
            table.append(
                of | {"classifier": title} | _gain(target, whole, p, single, how, len(names))
            )
        table += _transfers(target, features, names, how)
    return COMBINED.filled(table)


def _known(target: Target, names: list[str], seed: int) -> list[str]:
    """Measures that vary in every training fold and whose missing scores do not depend on the
    label, since a classifier would learn the label from which traces have no score.

    If the number of missing scores over the remaining measures still depends on the label, only
    measures without missing scores are returned.
    """
    fold = target.fold if target.fold is not None else np.zeros(len(target.rows), dtype=int)
    parts = [fold != i for i in np.unique(fold)] if target.fold is not None else [fold == 0]

    def varies(score: np.ndarray) -> bool:
        return all(len(np.unique(score[part][~np.isnan(score[part])])) > 1 for part in parts)

    def hang(gaps: np.ndarray) -> np.ndarray:
        of = (target.unfaithful, target.settings, target.clusters, seed)
        chance = exchange_test(gaps.astype(float), *of)
        return 2 * np.fmin(chance.low, chance.high) <= LEVEL

    names = [name for name in names if varies(target.scores[name])]
    gaps = np.isnan(target.matrix(names)) if names else np.empty((0, 0))
    if not gaps.any():
        return names
    free = ~hang(gaps)
    left = gaps[:, free].sum(axis=1, keepdims=True)
    if left.any() and hang(left).any():
        free &= ~gaps.any(axis=0)
    return [name for name, is_free in zip(names, free, strict=True) if is_free]


def _crossed(target: Target, features: np.ndarray, fit: detection.Fit) -> np.ndarray:
    assert target.fold is not None
    return detection.cross_fitted(features, target.unfaithful, target.clusters, target.fold, fit)


def _single(target: Target, features: np.ndarray, test: np.ndarray) -> tuple[int, np.ndarray]:
    """Index of the column with the best AUROC within models and tasks on the training rows, and the
    probabilities that Platt scaling of it gives the test rows.

    Args:
        features: (traces, measures) scores.
        test: (traces,) whether a row is tested; all others train.
    """
    rest = ~test
    j = detection.best_column(features[rest], target.unfaithful[rest], target.settings[rest])
    column = features[:, [j]]
    fitted = detection.platt(column[rest], target.unfaithful[rest], target.clusters[rest])
    return j, fitted(column[test])


def _gain(
    target: Target, rows: np.ndarray, p: np.ndarray, single: np.ndarray, how: Bootstrap, n: int
) -> dict[str, Any]:
    kind, clusters = target.unfaithful[rows], target.clusters[rows]
    strata = target.settings[rows]
    both, alone = (area(clusters, kind, of[rows], strata) for of in (p, single))
    gain = behind(both, alone)
    row = {"n": int(rows.sum()), "n_unfaithful": int(kind.sum()), "n_measures": n}
    row |= {"reason": NOT_WITHIN if math.isnan(gain.value) else ""}
    held = against_label(("auroc", "pooled"), kind, clusters, how, score=p[rows], strata=strata)
    row |= columns_of(held)
    row |= columns("single_auroc", alone.estimate())
    chance = exchange_test(p[rows][:, None], kind, target.settings[rows], clusters, how.seed)
    p_of_chance = float(chance.high[0])
    row |= columns("gain", gain) | {"p": p_of_chance}
    return row | {"verdict": _verdict(gain, p_of_chance)}


def _verdict(gain: Estimate, p: float) -> str:
    """`gain`, `loss` or `none`: `none` where the interval of the gain contains 0 or is unknown, and
    for a gain whose classifier may be chance (p above `CROSSED`)."""
    if gain.low > 0:
        return GAIN if p <= CROSSED else NONE
    return LOSS if gain.high < 0 else NONE


def _transfers(
    target: Target, features: np.ndarray, names: list[str], how: Bootstrap
) -> Iterator[dict[str, Any]]:
    """Yields rows of `COMBINED` in which one task, or one model, is held out as the test set."""
    parts = [setting.rpartition(" on ") for setting in target.settings]
    model, task = (np.array([part[i] for part in parts]) for i in (0, 2))
    for word, of in (("task", task), ("model", model)):
        values = sorted(set(of))
        for value in values if len(values) > 1 else ():
            test = of == value
            about = {"label": target.label, "trained_on": f"other {word}s", "tested_on": value}
            reason = ""
            if min(target.unfaithful[~test].sum(), (~target.unfaithful[~test]).sum()) < 2:
                reason = "the label does not vary among the others"
            elif len(set(target.unfaithful[test])) < 2:
                reason = f"the label does not vary in this {word}"
            if reason:
                yield about | {"n": int(test.sum()), "reason": reason}
                continue
            fitted_on = (features[~test], target.unfaithful[~test], target.clusters[~test])
            of_single = np.full(len(test), np.nan)
            j, of_single[test] = _single(target, features, test)
            single = names[j]
            for title, fit in CLASSIFIERS.items():
                p = np.full(len(test), np.nan)
                p[test] = fit(*fitted_on)(features[test])
                row = about | {"classifier": title, "single": single}
                yield row | _gain(target, test, p, of_single, how, len(names))


def ablation_table(of_labels: list[Target], how: Bootstrap) -> pd.DataFrame:
    """The table `ABLATION`: every set of families of measures, for each label."""
    table = []
    for target in of_labels:
        if target.fold is None:
            continue
        of_family = {
            family: names
            for family in dict.fromkeys(target.families[n] for n in target.measures())
            if (names := _known(target, target.measures(family), how.seed))
        }
        p: dict[frozenset[str], np.ndarray] = {}
        for families in _sets(list(of_family)):
            names = [name for family in families for name in of_family[family]]
            key = frozenset(families)
            p[key] = _crossed(target, target.matrix(names), detection.logistic)
            row: dict[str, Any] = {"label": target.label, "families": " + ".join(families)}
            row |= {"n_measures": len(names), "n": len(target.rows), "added": ""}
            rows = (target.unfaithful, target.settings, target.clusters)
            to = (target.clusters, target.unfaithful)
            chance = exchange_test(p[key][:, None], *rows, how.seed)
            held = against_label(
                *(("auroc", "pooled"), target.unfaithful, target.clusters, how),
                score=p[key],
                strata=target.settings,
            )
            row |= columns_of(held)
            without = [(f, key - {f}) for f in families if key - {f} in p]
            if not without:
                table.append(row | {"verdict": ""})
            for family, others in without:
                both, less = (area(*to, p[sets], target.settings) for sets in (key, others))
                gain = behind(both, less)
                words = {"added": family, "verdict": _verdict(gain, float(chance.high[0]))}
                table.append(row | words | columns("gain", gain))
    return ABLATION.filled(table)


def _sets(families: list[str]) -> list[tuple[str, ...]]:
    """Every non-empty set of families, small sets first."""
    sizes = range(1, len(families) + 1)
    return [of for size in sizes for of in itertools.combinations(families, size)]
