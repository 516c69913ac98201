"""What measures are worth together: classifiers of a label over all of them, held against the best
single measure, on the same folds; families left out; other tasks and models.

Classifiers choose their own settings on inner folds, and the single measure is chosen on the same
rows as they are fitted on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.comparison.against import ONE_KIND, TOO_FEW, Target
from faithscope.experiments.analysis.statistics import detection
from faithscope.experiments.analysis.statistics.resampling import Drawing, auroc
from faithscope.experiments.analysis.tidy import columns, with_interval

CLASSIFIERS: dict[str, detection.Fit] = {
    "logistic regression": detection.logistic,
    "gradient-boosted trees": detection.trees,
}
SINGLE = "best single measure"
NONE = "none"
COMBINED = ["label", "trained_on", "tested_on", "classifier", "n", "n_unfaithful", "n_measures"]
COMBINED += [*with_interval("auroc"), "single", *with_interval("single_auroc", "gain"), "verdict"]
COMBINED += ["reason"]
ABLATION = ["label", "families", "added", "n_measures", "n", *with_interval("auroc", "gain")]
ABLATION += ["verdict"]


def combined_table(of_labels: list[Target], how: Drawing) -> pd.DataFrame:
    """A row per label, classifier, and what it was trained and tested on.

    `gain`: its AUROC minus that of the best single measure, chosen on the rows it was fitted on, in
    the same draws; `verdict` is `none` where the gain's interval holds 0. Trained on other
    questions, it was fitted fold by fold and every fold may have chosen another measure; trained on
    the other tasks or models it was fitted once.
    """
    table = []
    for target in of_labels:
        names = _known(target, target.measures())
        if target.fold is None or len(names) < 2:
            one = len(set(target.unfaithful)) < 2
            reason = (
                ONE_KIND if one else TOO_FEW if target.fold is None else "fewer than 2 measures"
            )
            table.append({"label": target.label, "n": len(target.rows), "reason": reason})
            continue
        features = target.matrix(names)
        single = _crossed(target, features, detection.best_single)
        chosen = [
            names[
                detection.best_column(
                    features[target.fold != i], target.unfaithful[target.fold != i]
                )
            ]
            for i in np.unique(target.fold)
        ]
        of = {"label": target.label, "trained_on": "other questions", "tested_on": "all"}
        of |= {"single": ", ".join(sorted(set(chosen)))}
        for title, fit in CLASSIFIERS.items():
            p = _crossed(target, features, fit)
            whole = np.ones(len(p), dtype=bool)
            table.append(
                of | {"classifier": title} | _gain(target, whole, p, single, how, len(names))
            )
        table += _transfers(target, features, names, how)
    return pd.DataFrame(table, columns=COMBINED)


def _known(target: Target, names: list[str]) -> list[str]:
    """Those that have two values in every set of rows that is fitted on."""
    fold = target.fold if target.fold is not None else np.zeros(len(target.rows), dtype=int)
    parts = [fold != i for i in np.unique(fold)] if target.fold is not None else [fold == 0]

    def varies(score: np.ndarray) -> bool:
        return all(len(np.unique(score[part][~np.isnan(score[part])])) > 1 for part in parts)

    return [name for name in names if varies(target.scores[name])]


def _crossed(target: Target, features: np.ndarray, fit: detection.Fit) -> np.ndarray:
    assert target.fold is not None
    return detection.cross_fitted(features, target.unfaithful, target.clusters, target.fold, fit)


def _gain(
    target: Target, rows: np.ndarray, p: np.ndarray, single: np.ndarray, how: Drawing, n: int
) -> dict[str, Any]:
    kind, clusters = target.unfaithful[rows], target.clusters[rows]
    gain = auroc(clusters, kind, p[rows], how, minus=single[rows])
    row = {"n": int(rows.sum()), "n_unfaithful": int(kind.sum()), "n_measures": n, "reason": ""}
    row |= columns("auroc", auroc(clusters, kind, p[rows], how))
    row |= columns("single_auroc", auroc(clusters, kind, single[rows], how))
    return row | columns("gain", gain) | {"verdict": _verdict(gain.low, gain.high)}


def _verdict(low: float, high: float) -> str:
    """`none` where the interval holds 0, or there is none."""
    return "gain" if low > 0 else "loss" if high < 0 else NONE


def _transfers(
    target: Target, features: np.ndarray, names: list[str], how: Drawing
) -> Iterator[dict[str, Any]]:
    """Yields what comes of it where one task, or one model, is held out whole."""
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
            single = names[detection.best_column(*fitted_on[:2])]
            of_single = np.full(len(test), np.nan)
            of_single[test] = detection.best_single(*fitted_on)(features[test])
            for title, fit in CLASSIFIERS.items():
                p = np.full(len(test), np.nan)
                p[test] = fit(*fitted_on)(features[test])
                row = about | {"classifier": title, "single": single}
                yield row | _gain(target, test, p, of_single, how, len(names))


def ablation_table(of_labels: list[Target], how: Drawing) -> pd.DataFrame:
    """A row per label and set of families, by logistic regression on other questions.

    `gain` is what the family in `added` adds to the other ones of the row.
    """
    table = []
    for target in of_labels:
        if target.fold is None:
            continue
        of_family = {
            family: names
            for family in dict.fromkeys(target.families[n] for n in target.measures())
            if (names := _known(target, target.measures(family)))
        }
        p: dict[frozenset[str], np.ndarray] = {}
        for families in _sets(list(of_family)):
            names = [name for family in families for name in of_family[family]]
            key = frozenset(families)
            p[key] = _crossed(target, target.matrix(names), detection.logistic)
            row: dict[str, Any] = {"label": target.label, "families": " + ".join(families)}
            row |= {"n_measures": len(names), "n": len(target.rows), "added": ""}
            row |= columns("auroc", auroc(target.clusters, target.unfaithful, p[key], how))
            without = [(f, key - {f}) for f in families if key - {f} in p]
            if not without:
                table.append(row | {"verdict": ""})
            for family, others in without:
                gain = auroc(target.clusters, target.unfaithful, p[key], how, minus=p[others])
                words = {"added": family, "verdict": _verdict(gain.low, gain.high)}
                table.append(row | words | columns("gain", gain))
    return pd.DataFrame(table, columns=ABLATION)


def _sets(families: list[str]) -> list[tuple[str, ...]]:
    """Every set of families, the small ones first."""
    sizes = range(1, len(families) + 1)
    return [of for size in sizes for of in itertools.combinations(families, size)]
