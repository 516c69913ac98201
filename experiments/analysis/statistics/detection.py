"""Detection: thresholds and classifiers that tell two kinds of items apart, tested on held-out
folds.

Thresholds, calibration curves and classifiers are fitted on some folds and applied to the others;
folds keep a cluster (a question) on one side.

scikit-learn is imported where something is fitted: most reports fit nothing, and its import takes a
fifth of a second and 30 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from faithscope.experiments.analysis.statistics.resampling import Clusters

LEAST_OF_KIND = 10
"""Least number of items of either kind for fitting anything."""
Scores = Float[np.ndarray, " rows"]
IsPositive = Bool[np.ndarray, " rows"]
"""(rows,) whether a row is of the kind to be detected, such as unfaithful."""
Folds = Int[np.ndarray, " rows"]
"""(rows,) number of the fold in which a row is tested."""
Features = Float[np.ndarray, "rows columns"]
Fit = Callable[[Features, IsPositive, np.ndarray], Callable[[Features], Scores]]
"""Fits on features, kinds and clusters of training rows; returns a function that gives the
probability of the kind for the features of other rows."""


def folds(kind: IsPositive, clusters: Clusters, n: int, seed: int) -> Folds | None:
    """The fold in which each row is tested, stratified by kind as far as clusters allow.

    None with too little data: fewer than `LEAST_OF_KIND` rows of either kind, or a kind in fewer
    clusters than folds.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    groups = np.asarray(clusters, dtype=str)
    fewest = min(len(set(groups[kind])), len(set(groups[~kind])))
    if min(kind.sum(), (~kind).sum()) < LEAST_OF_KIND or fewest < n:
        return None
    fold = np.zeros(len(kind), dtype=int)
    cut = StratifiedGroupKFold(n, shuffle=True, random_state=seed)
    for i, (_, test) in enumerate(cut.split(kind, kind, groups)):
        fold[test] = i
    both = all(0 < kind[fold != i].sum() < (fold != i).sum() for i in range(n))
    return fold if both else None


def _parts(fold: Folds) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    return ((fold != i, fold == i) for i in np.unique(fold))


def best_threshold(kind: IsPositive, score: Scores) -> float:
    """The threshold with the greatest squared g-mean, the highest among ties; rows with a score at
    or above it are called."""
    from sklearn.metrics import roc_curve

    false, true, thresholds = roc_curve(kind, score, drop_intermediate=False)
    return float(thresholds[int(np.argmax(true * (1 - false)))])


def threshold_for(
    kind: IsPositive, score: Scores, *, precision: float | None = None, recall: float | None = None
) -> float | None:
    """The threshold with the highest recall at a required precision, or the reverse; None if no
    threshold meets the requirement."""
    from sklearn.metrics import precision_recall_curve

    p, r, thresholds = precision_recall_curve(kind, score)
    p, r = p[:-1], r[:-1]
    kept = p >= precision if precision is not None else r >= (recall or 0)
    if not kept.any():
        return None
    most = np.where(kept, r if precision is not None else p, -1.0)
    # among ties the highest threshold, which calls the fewest rows
    return float(thresholds[len(most) - 1 - int(np.argmax(most[::-1]))])


def called_by(
    kind: IsPositive,
    score: Scores,
    fold: Folds,
    threshold: Callable[[IsPositive, Scores], float | None],
) -> IsPositive | None:
    """Rows called by a threshold chosen on the other folds; None if a fold has no threshold."""
    called = np.zeros(len(kind), dtype=bool)
    for train, test in _parts(fold):
        cut = threshold(kind[train], score[train])
        if cut is None:
            return None
        called[test] = score[test] >= cut
    return called


def precision_and_recall(kind: IsPositive, called: IsPositive) -> tuple[int, int, int]:
    """Counts of true positives, of called rows, and of rows of the kind."""
    return int((called & kind).sum()), int(called.sum()), int(kind.sum())


def cross_fitted(
    features: Features, kind: IsPositive, clusters: Clusters, fold: Folds, fit: Fit
) -> Scores:
    """The probability of the kind for each row, by a fit on the other folds."""
    groups = np.asarray(clusters, dtype=str)
    p = np.full(len(kind), np.nan)
    for train, test in _parts(fold):
        p[test] = fit(features[train], kind[train], groups[train])(features[test])
    return p


def platt(
    features: Features, kind: IsPositive, clusters: np.ndarray
) -> Callable[[Features], Scores]:
    """Fits a logistic curve of the first column (Platt, 1999) that never falls; a missing score is
    taken as the median.

    If the best curve falls, the score points the wrong way, and every row gets the share of the
    kind: the direction of a score is never reversed.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    logit = LogisticRegression()
    curve = _probability(
        make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), logit),
        features[:, :1],
        kind,
    )
    if np.ravel(logit.coef_)[0] < 0:
        share = float(kind.mean())
        return lambda other: np.full(len(other), share)
    return lambda other: curve(other[:, :1])


def best_column(features: Features, kind: IsPositive, strata: np.ndarray) -> int:
    """Index of the column with the greatest AUROC inside strata, in its stated direction, with
    missing scores at the median; AUROC over all rows if the kind varies in no stratum."""
    from sklearn.metrics import roc_auc_score

    varied = [s for s in np.unique(strata) if 0 < kind[strata == s].sum() < (strata == s).sum()]
    parts = [strata == s for s in varied] or [np.ones(len(kind), dtype=bool)]
    pairs = [int(kind[part].sum()) * int((~kind[part]).sum()) for part in parts]

    def auroc(column: np.ndarray) -> float:
        known = column[~np.isnan(column)]
        score = np.where(np.isnan(column), np.median(known), column)
        areas = [roc_auc_score(kind[part], score[part]) for part in parts]
        return float(np.average(areas, weights=pairs))

    known = [j for j in range(features.shape[1]) if (~np.isnan(features[:, j])).any()]
    return max(known, key=lambda j: auroc(features[:, j]))


STRENGTHS = (0.01, 0.1, 1.0)
"""Inverse penalty strengths among which the inner folds choose."""


def logistic(
    features: Features, kind: IsPositive, clusters: np.ndarray
) -> Callable[[Features], Scores]:
    """Fits a logistic regression on standardised columns; its penalty is chosen on inner folds by
    cluster.

    A missing score is replaced by the column's median, and an extra column marks it as missing.
    """
    from sklearn.feature_selection import VarianceThreshold
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True),
        VarianceThreshold(),
        StandardScaler(),
        LogisticRegression(max_iter=2_000),
    )
    inner = min(3, len(set(clusters[kind])), len(set(clusters[~kind])))
    if inner >= 2:
        cut = list(StratifiedGroupKFold(inner).split(features, kind, clusters))
        if all(0 < kind[part].sum() < len(part) for parts in cut for part in parts):
            grid = {"logisticregression__C": list(STRENGTHS)}
            model = GridSearchCV(model, grid, cv=cut, scoring="neg_log_loss")
    return _probability(model, features, kind)


def trees(
    features: Features, kind: IsPositive, clusters: np.ndarray
) -> Callable[[Features], Scores]:
    """Fits scikit-learn's gradient-boosted trees, which treat a missing score as a separate
    value."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    least = max(2, min(20, len(kind) // 10))
    model = HistGradientBoostingClassifier(
        max_iter=50, max_leaf_nodes=8, min_samples_leaf=least, random_state=0
    )
    return _probability(model, features, kind)


def _probability(model: Any, features: Features, kind: IsPositive) -> Callable[[Features], Scores]:
    fitted = model.fit(features, kind)
    return lambda other: np.asarray(fitted.predict_proba(other))[:, 1]
