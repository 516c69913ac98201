"""Label probes: how well labels of chains or steps are read off hidden states, by which weights.

Classes are read by logistic regression and numbers by ridge regression, on standardised features,
and tested on groups (questions) that were not fitted on. Scores are compared within one fold only,
since classifiers of different folds have different intercepts: for classes by the area under the
ROC curve (of several classes, each against the rest), with an interval between groups; for numbers
by Spearman's correlation of what is predicted beyond the mean of the training items.

A label may follow from the length of a text alone, so the same is fitted to lengths; and of labels
that are exchanged between groups nothing can be read, which gives the p-values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.areas import Area, area
from faithscope.experiments.analysis.statistics.classifiers import (
    Classifying,
    Span,
    Split,
    classifier,
    spans,
    split,
    split_numbers,
)
from faithscope.experiments.analysis.statistics.exchanging import permutations
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, spearman
from faithscope.experiments.analysis.statistics.stats import CONFIDENCE, NOTHING, Estimate

Fit = Literal["auto", "logistic", "ridge"]
Kind = Literal["logistic", "ridge"]
WITHIN_FOLDS = "constant_within_folds"
"""Why a label is not read: no fold has two classes of it, since they go with the groups."""
NO_NUMBERS = "not_a_number"
"""Why a label is not read by ridge regression: some of its values are texts."""
_Z = float(scipy.special.ndtri((1 + CONFIDENCE) / 2))
MEANS = "difference_of_means"
"""Kind of a direction from the mean state without a class to the mean state with it."""


class Labelled(NamedTuple):
    """The rows with a usable label, how the label is read, and the folds; or the reason why none
    is."""

    kind: Kind
    split: Split
    reason: str = ""

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes in order; of two, the second is the one that scores are high for. None of
        numbers."""
        return () if self.kind == "ridge" else tuple(np.unique(self.split.classes).tolist())


def labelled(
    values: Sequence[Any], groups: Sequence[str], how: Classifying, fit: Fit = "auto"
) -> Labelled:
    """Choose how a label is read and the folds in which each row is tested.

    Args:
        values: a truth value, number or text per row; anything else is a row without the label.
        groups: per row the group (question) that stands on one side of every split.
        fit: `auto` takes texts, truth values and numbers 0 and 1 for classes.
    """
    values = [x if is_label(x) else None for x in values]
    known = [x for x in values if x is not None]
    texts = any(isinstance(x, str) for x in known)
    if fit == "ridge" and texts:
        none = np.empty(0, dtype=int)
        return Labelled("ridge", Split(none, none, none, none, none), NO_NUMBERS)
    if fit == "ridge" or (fit == "auto" and not texts and set(known) - {0, 1}):
        numbers = [None if x is None else float(x) for x in values]
        cut = split_numbers(numbers, groups, how)
        return Labelled("ridge", cut, cut.reason)
    cut = split([None if x is None else class_of(x) for x in values], groups, how)
    if not cut.reason:
        parts = [cut.classes[cut.fold == i] for i in range(how.folds)]
        rest = [cut.classes[cut.fold != i] for i in range(how.folds)]
        if all(len(set(x)) < 2 for x in parts) or any(len(set(x)) < 2 for x in rest):
            return Labelled("logistic", cut, WITHIN_FOLDS)
    return Labelled("logistic", cut, cut.reason)


def is_label(value: Any) -> bool:
    """Whether a value can be a label: a text, a truth value or a finite number."""
    finite = not isinstance(value, float) or math.isfinite(value)
    return isinstance(value, str | bool | int | float) and finite


def class_of(value: Any) -> str:
    """Name of the class of a label's value; true and 1 are one class."""
    if isinstance(value, str):
        return value
    return f"{float(value):g}"


class Read(NamedTuple):
    """How well a label is read."""

    score: Estimate
    """AUROC of classes, Spearman's correlation of numbers."""
    shuffled: Float[np.ndarray, " draws"] = np.empty(0)
    """Scores of a least-squares probe of the same penalty on shuffled labels."""
    least_squares: float = math.nan
    """The score of that probe on the labels as they are."""
    area: Area | None = None
    """The AUROC with the influence of every group; None of numbers."""


UNREAD = Read(NOTHING)


def read(
    features: Float[np.ndarray, "kept D"],
    of: Labelled,
    how: Classifying,
    draws: Bootstrap,
    shuffled: np.ndarray,
) -> Read:
    """How well a label is read off features by a fit on other groups, and off chance.

    A score in cross-validation varies more than one of a fixed classifier, since what is tested in
    one fold is fitted to in the others: under shuffled labels by half and more. Intervals are
    widened by as much as shuffled labels say.

    Args:
        draws: bootstrap settings, for the interval of a correlation.
        shuffled: (kept, n) what `shuffles` gives, the same for all features that a label is read
            off.
    """
    cut = of.split
    targets = np.concatenate([cut.classes[:, None], shuffled], axis=1)
    own, by_least_squares = _held_out(features, of, targets, how)
    observed, *chance = _statistics(by_least_squares, of, targets)
    shuffled = np.array(chance)
    if of.kind == "logistic":
        found = _area(own, of)
        found = replace(found, inflation=_more(shuffled, 0.5, found.spread()))
        return Read(found.estimate(), shuffled, observed, found)
    rho, _ = spearman(cut.groups, own[:, 0], cut.classes, draws)
    # on the scale of Fisher's z a correlation varies alike whatever its value
    at, *ends = np.arctanh(np.clip([rho.value, rho.low, rho.high], -1, 1) * (1 - stats.ROUNDING))
    least = _Z * math.sqrt(np.mean(shuffled**2)) if len(shuffled) else 0.0
    low, high = (
        float(np.tanh(at + s * max(s * (e - at), least)))
        for s, e in zip((-1, 1), ends, strict=True)
    )
    return Read(Estimate(rho.value, low, high, rho.n), shuffled, observed)


def _more(shuffled: np.ndarray, chance: float, spread: float) -> float:
    """By how much more the scores of shuffled labels vary than a standard error says."""
    known = shuffled[~np.isnan(shuffled)]
    if not len(known) or not spread:
        return 1.0
    return max(1.0, float(np.mean((known - chance) ** 2)) / spread**2)


def corrected(reads: Sequence[Read]) -> list[float]:
    """p-values of a label at each of many places, corrected for their number: the share of shuffles
    whose best place reaches the score (Westfall and Young's single step); NaN without a score.

    Least squares stand for the classifier, since a thousand shuffles of one take as long as a
    single fit of the other.
    """
    best = np.nanmax([r.shuffled for r in reads], axis=0)
    return [
        math.nan
        if math.isnan(r.least_squares)
        else float(1 + np.sum(best >= r.least_squares - stats.ROUNDING)) / (1 + len(best))
        for r in reads
    ]


def shuffles(of: Labelled, seed: int, n: int) -> np.ndarray:
    """(kept, n) the label, exchanged n times between groups of equal size in one fold."""
    cut = of.split
    places = permutations(cut.groups, cut.fold, seed + 1, 1, n)
    return np.concatenate([cut.classes[block] for block in places], axis=1)


def _held_out(
    features: np.ndarray, of: Labelled, targets: np.ndarray, how: Classifying
) -> tuple[Float[np.ndarray, "kept outputs"], Float[np.ndarray, "outputs targets kept"]]:
    """Scores of every row by fits on other folds: of two classes for the second, of more for each;
    of numbers what is predicted beyond the mean. The second are by least squares, for every
    column of targets."""
    names = _outputs(of)
    own = np.zeros((len(features), len(names)))
    least_squares = np.zeros((len(names), targets.shape[1], len(features)))
    for train, test, span in spans(features, of.split.fold):
        tested = span.project(features[test])
        if of.kind == "logistic":
            fitted = classifier(how).fit(span.rows, of.split.classes[train])
            decided = fitted.decision_function(tested).reshape(len(tested), -1)
            at = [names.index(name) for name in fitted.classes_] if len(names) > 1 else [0]
            own[np.flatnonzero(test)[:, None], at] = decided
        square = span.rows.T @ span.rows
        square[np.diag_indices(len(square))] += 1 / how.inverse_regularisation
        to_weights = np.linalg.solve(square, span.rows.T)
        for into, name in zip(least_squares, names, strict=True):
            y = targets[train] if of.kind == "ridge" else targets[train] == name
            into[:, test] = (tested @ (to_weights @ (y - y.mean(0)))).T
    return own if of.kind == "logistic" else least_squares[:, 0].T, least_squares


def _outputs(of: Labelled) -> tuple[str, ...]:
    """The classes that have scores: of two the second; one nameless output of numbers."""
    return of.classes if len(of.classes) > 2 else of.classes[-1:] or ("",)


def _area(scores: np.ndarray, of: Labelled) -> Area:
    names, cut = _outputs(of), of.split
    return area(
        np.tile(cut.groups, len(names)),
        np.concatenate([np.equal(cut.classes, name) for name in names]),
        scores.T.ravel(),
        np.array([f"{i} {name}" for name in names for i in cut.fold]),
    )


def _statistics(scores: np.ndarray, of: Labelled, targets: np.ndarray) -> list[float]:
    """AUROC within folds, or Spearman's correlation, of every column of targets."""
    if of.kind == "ridge":
        ranked = (scipy.stats.rankdata(x, axis=1) for x in (scores[0], targets.T))
        x, y = (r - r.mean(axis=1, keepdims=True) for r in ranked)
        spread = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
        return stats.over((x * y).sum(axis=1), spread).tolist()
    won, pairs = np.zeros((2, targets.shape[1]))
    for into, name in zip(scores, _outputs(of), strict=True):
        for i in np.unique(of.split.fold):
            here = of.split.fold == i
            positive = np.equal(targets[here].T, name)
            n = positive.sum(axis=1)
            ranks = scipy.stats.rankdata(into[:, here], axis=1)
            won += (ranks * positive).sum(axis=1) - n * (n + 1) / 2
            pairs += n * (np.count_nonzero(here) - n)
    return stats.over(won, pairs).tolist()


class Weights(NamedTuple):
    """A direction in the space of the features as they are."""

    kind: str
    """`logistic`, `ridge` or `MEANS`."""
    direction: Float[np.ndarray, " D"]
    intercept: float
    """Added to a row's product with the direction: the logit of the class then, or the number; of
    means, what puts the middle between them at 0."""
    of_class: str = ""
    """The class that the direction points to; "" of numbers."""


def weights(
    features: Float[np.ndarray, "kept D"], of: Labelled, how: Classifying
) -> Iterator[Weights]:
    """Yields the directions fitted on all rows: of two classes for the second, of more for each."""
    from sklearn.linear_model import Ridge

    span, y = Span(features), of.split.classes
    if of.kind == "ridge":
        fitted = Ridge(1 / how.inverse_regularisation).fit(span.rows, y)
        direction, more = span.raw(fitted.coef_)
        yield Weights("ridge", direction, float(fitted.intercept_) + more)
        return
    fitted = classifier(how).fit(span.rows, y)
    names = of.classes[-1:] if len(of.classes) == 2 else of.classes
    for name, coef, intercept in zip(names, fitted.coef_, fitted.intercept_, strict=True):
        direction, more = span.raw(coef)
        yield Weights("logistic", direction, float(intercept) + more, name)
        with_it, without = features[y == name].mean(0), features[y != name].mean(0)
        between = with_it - without
        middle = -float(between @ (with_it + without)) / 2
        yield Weights(MEANS, between, middle, name)


def read_given(
    scores: Float[np.ndarray, " rows"],
    values: Sequence[Any],
    groups: Sequence[str],
    fit: Kind,
    draws: Bootstrap,
    of_class: str = "",
) -> Estimate:
    """How well scores that were not fitted on these rows tell a label: AUROC of a class, Spearman's
    correlation with a number; NaN without rows of two kinds.

    Args:
        of_class: the class that high scores stand for.
    """
    known = np.array([is_label(x) for x in values], dtype=bool)
    own, clusters = scores[known], np.asarray(groups, dtype=str)[known]
    y = [x for x in values if is_label(x)]
    if fit == "logistic":
        return area(clusters, np.array([class_of(x) == of_class for x in y], bool), own).estimate()
    if any(isinstance(x, str) for x in y):
        return NOTHING
    return spearman(clusters, own, np.array(y, dtype=float), draws)[0]
