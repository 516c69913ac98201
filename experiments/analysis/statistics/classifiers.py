"""Linear classifiers over items: cross-validated, with a control and a baseline.

The score is the accuracy of a logistic regression on items that it was not fitted on. A probe with
many features and few items fits anything, so the number is held against the same probe on shuffled
classes: selectivity = accuracy − control (Hewitt & Liang, "Designing and Interpreting Probes with
Control Tasks", EMNLP 2019). Their control task gives every word type a random class; our items have
no types, so our control shuffles classes over items.

scikit-learn is imported where something is fitted: most reports fit nothing, and its import takes a
fifth of a second and 30 MB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

TOO_FEW = "too_few_items"
ONE_CLASS = "fewer_than_2_classes"
ONE_VALUE = "fewer_than_2_values"


@dataclass(frozen=True)
class Classifying:
    """Settings of the classifiers and of their controls."""

    folds: int = 5
    controls: int = 3
    """Number of seeded shuffles of the classes."""
    inverse_regularisation: float = 0.1
    """C of scikit-learn's logistic regression, on standardised features."""
    min_items: int = 20
    """Least number of items with a usable class; with fewer nothing is fitted."""
    seed: int = 0


@dataclass(frozen=True)
class Split:
    """The items with a usable class, and their folds; or the reason why there are none."""

    rows: Int[np.ndarray, " kept"]
    """Indices of the kept items, ascending."""
    classes: np.ndarray
    """(kept,) class of each item, a string."""
    groups: np.ndarray
    """(kept,) group of each item; every split keeps a group on one side."""
    fold: Int[np.ndarray, " kept"]
    """(kept,) fold in which each item is tested."""
    control: np.ndarray
    """(controls, kept) the classes shuffled within each fold, so that every training set and
    test set keeps its numbers of each class."""
    reason: str = ""

    @cached_property
    def n_classes(self) -> int:
        return len(set(self.classes.tolist()))

    @cached_property
    def majority(self) -> float:
        """The share of the largest class: the accuracy of always predicting it."""
        return max(Counter(self.classes.tolist()).values()) / len(self.rows)


def split(classes: Sequence[str | None], groups: Sequence[str], how: Classifying) -> Split:
    """Choose the items to classify, and the fold in which each is tested.

    Items without a class are left out, and classes with fewer groups than folds, which some
    training set or test set would lack. Folds are stratified by class as far as groups allow.
    """
    of_class: dict[str, set[str]] = {}
    for name, group in zip(classes, groups, strict=True):
        if name is not None:
            of_class.setdefault(name, set()).add(group)
    enough = {
        name for name, groups_of_class in of_class.items() if len(groups_of_class) >= how.folds
    }
    rows = np.array([i for i, name in enumerate(classes) if name in enough], dtype=int)
    y = np.array([classes[i] for i in rows], dtype=str)
    g = np.array([groups[i] for i in rows], dtype=str)
    reason = ONE_CLASS if len(enough) < 2 else TOO_FEW if len(rows) < how.min_items else ""
    if reason:
        none = np.empty(0, dtype=int)
        return Split(rows, y, g, none, np.empty((0, 0), dtype=str), reason)
    return _folded(rows, y, g, y, how)


def split_numbers(values: Sequence[float | None], groups: Sequence[str], how: Classifying) -> Split:
    """`split` of items whose label is a number: its `classes` and `control` are numbers.

    Items without a number are left out. Folds are stratified by the rank of the number.
    """
    rows = np.array([i for i, x in enumerate(values) if x is not None], dtype=int)
    y = np.array([values[i] for i in rows], dtype=float)
    g = np.array([groups[i] for i in rows], dtype=str)
    few = len(rows) < how.min_items or len(set(g)) < how.folds
    if reason := ONE_VALUE if len(set(y)) < 2 else TOO_FEW if few else "":
        return Split(rows, y, g, np.empty(0, dtype=int), np.empty((0, 0)), reason)
    bins = min(how.folds, len(rows) // how.folds)
    return _folded(rows, y, g, np.argsort(np.argsort(y, kind="stable")) * bins // len(rows), how)


def _folded(
    rows: np.ndarray, y: np.ndarray, groups: np.ndarray, strata: np.ndarray, how: Classifying
) -> Split:
    from sklearn.model_selection import StratifiedGroupKFold

    folds = StratifiedGroupKFold(how.folds, shuffle=True, random_state=how.seed)
    fold = np.empty(len(rows), dtype=int)
    for i, (_, test) in enumerate(folds.split(y, strata, groups)):
        fold[test] = i
    control = np.stack([_shuffled(y, fold, how.seed + 1 + i) for i in range(how.controls)])
    return Split(rows, y, groups, fold, control)


def classified_right(
    features: Float[np.ndarray, "kept D"], split: Split, how: Classifying
) -> tuple[Bool[np.ndarray, " kept"], Bool[np.ndarray, "controls kept"]]:
    """Whether a classifier fitted without an item predicts its class, for the real classes and for
    each control.

    Features are standardised by the training items.
    """
    targets = np.concatenate([split.classes[None], split.control])
    right = np.zeros(targets.shape, dtype=bool)
    for train, test, span in spans(features, split.fold):
        tested = span.project(features[test])
        for row, y in zip(right, targets, strict=True):
            fitted = classifier(how).fit(span.rows, y[train])
            row[test] = fitted.predict(tested) == y[test]
    return right[0], right[1:]


class Span:
    """Standardised features of training items, in their span if there are more features than items.

    The solution under an L2 penalty lies in the span, so a fit there predicts the same and takes a
    fraction of the time.
    """

    def __init__(self, features: Float[np.ndarray, "train D"]) -> None:
        self._mean, self._scale = features.mean(0), _scale_of(features)
        self._whole = self._standardised(features)
        self._corner: np.ndarray | None = None
        self.rows: Float[np.ndarray, "train k"] = self._whole
        """The training items, to fit on."""
        n, width = self._whole.shape
        if width > n:
            products = self._whole @ self._whole.T
            # centred rows are dependent, and rounding may make the products indefinite
            products[np.diag_indices(n)] += 1e-10 * products.trace() / n + 1e-12
            self.rows = self._corner = scipy.linalg.cholesky(products, lower=True)

    def project(self, features: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "n k"]:
        """Other items as `rows` has those of training."""
        other = self._standardised(features)
        if self._corner is None:
            return other
        return scipy.linalg.solve_triangular(self._corner, self._whole @ other.T, lower=True).T

    def raw(self, weights: Float[np.ndarray, " k"]) -> tuple[Float[np.ndarray, " D"], float]:
        """Weights on `rows` as weights on features as they are, and what is to be added to the
        intercept."""
        if self._corner is not None:
            weights = self._whole.T @ scipy.linalg.solve_triangular(
                self._corner, weights, lower=True, trans=1
            )
        own = weights / self._scale
        return own, -float(own @ self._mean)

    def _standardised(self, features: np.ndarray) -> np.ndarray:
        return (features - self._mean) / self._scale


def _scale_of(features: Float[np.ndarray, "n D"]) -> Float[np.ndarray, " D"]:
    """Standard deviations; 1 for a feature that varies by rounding alone, as scikit-learn's
    `StandardScaler` has it."""
    n, mean, variance = len(features), features.mean(0), features.var(0)
    eps = np.finfo(float).eps
    constant = variance <= n * eps * variance + (n * mean * eps) ** 2
    return np.where(constant, 1.0, np.sqrt(variance))


def spans(
    features: Float[np.ndarray, "kept D"], fold: Int[np.ndarray, " kept"]
) -> Iterator[tuple[Bool[np.ndarray, " kept"], Bool[np.ndarray, " kept"], Span]]:
    """Yields for every fold which items are fitted on, which are tested, and the `Span` of the
    former."""
    for i in np.unique(fold):
        yield fold != i, fold == i, Span(features[fold != i])


def classifier(how: Classifying) -> LogisticRegression:
    """An unfitted logistic regression, for standardised features."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=how.inverse_regularisation, max_iter=2_000)


def _shuffled(classes: np.ndarray, fold: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shuffled = classes.copy()
    for i in np.unique(fold):
        shuffled[fold == i] = rng.permutation(classes[fold == i])
    return shuffled
