"""Distances between answer distributions, finer than whether the top answer flipped.

An argmax flips or it does not; a model that follows its steps half of the time may never flip, and
one near a tie flips on nothing. Total variation and log-odds see both. NLDD and the true-thinking
score, other authors' measures of steps, are distances of this kind too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

NLDD_TIE = 1e-6
"""Largest logit difference that counts as a tie, in nats: NLDD of a tie is 0 by definition."""


def log_distribution(
    log_probs: Sequence[float],
    names: Sequence[str],
    *,
    lengths: Sequence[int] | None = None,
    what: str = "labels",
) -> dict[str, float]:
    """Log-probabilities over answers, normalised over the given labels alone.

    Args:
        log_probs: per label, the log-probability of its whole continuation.
        names: per label, the answer it stands for; labels of one answer are added up.
        lengths: per label, its number of tokens: log-probabilities are divided by it first, and an
            answer counts with its likeliest label, since a sum of such means would favour answers
            with many labels.
        what: name of the branch, for errors.

    Returns:
        Answer -> log-probability, in the order in which answers are first named.

    Raises:
        FloatingPointError: a log-probability is NaN, or all are minus infinity.
    """
    if any(math.isnan(x) for x in log_probs):
        raise FloatingPointError(f"{what}: the log-probs {list(log_probs)} hold NaN")
    sizes = [1] * len(log_probs) if lengths is None else lengths
    grouped: dict[str, list[tuple[float, int]]] = {}
    for name, label in zip(names, zip(log_probs, sizes, strict=True), strict=True):
        grouped.setdefault(name, []).append(label)
    scores = {name: _score(labels, lengths is not None) for name, labels in grouped.items()}
    total = _logsumexp(list(scores.values()))
    if total == -math.inf:
        raise FloatingPointError(f"{what}: every label has probability zero")
    return {name: score - total for name, score in scores.items()}


def answer_shares(
    log_probs: Iterable[Sequence[float]],
    names: Sequence[str],
    whats: Iterable[str],
    lengths: Sequence[Sequence[int]] | None = None,
) -> Float[np.ndarray, "branches answers"]:
    """Each answer's share of the probability of all labels, branch by branch; `log_distribution`
    has the arguments of one branch."""
    rows = list(log_probs)
    of_branches = zip(rows, whats, lengths or [None] * len(rows), strict=True)
    shares = [log_distribution(x, names, lengths=n, what=what) for x, what, n in of_branches]
    return np.exp(np.array([list(of_branch.values()) for of_branch in shares]))


def _score(labels: Sequence[tuple[float, int]], by_length: bool) -> float:
    if not by_length:
        return _logsumexp([x for x, _ in labels])
    best, length = max(labels)
    return best / length


def answer_log_probs(log_probs: Sequence[float], names: Sequence[str]) -> dict[str, float]:
    """Each answer's log-probability, its labels added up; not normalised over the answers.

    Args:
        log_probs: per label, its log-probability in nats.
        names: per label, the answer it stands for.
    """
    labels: dict[str, list[float]] = {}
    for name, log_prob in zip(names, log_probs, strict=True):
        labels.setdefault(name, []).append(log_prob)
    return {name: _logsumexp(of_answer) for name, of_answer in labels.items()}


def label_mass(log_probs: Iterable[float]) -> float:
    """The model's probability of all scored labels together, in [0, 1].

    The rest is the probability of other texts. If this mass is small, the labels' shares say little
    about what the model would answer.
    """
    return min(1.0, math.fsum(map(math.exp, log_probs)))


def top(distribution: Mapping[str, float]) -> str:
    """The likeliest answer; of equals, the one named first."""
    return max(distribution, key=distribution.__getitem__)


def total_variation(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Half the sum of absolute differences of two log distributions, in [0, 1]."""
    if one.keys() != other.keys():
        raise ValueError(f"distributions over {list(one)} and over {list(other)} do not compare")
    return 0.5 * sum(abs(math.exp(one[k]) - math.exp(other[k])) for k in one)


def divergence(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """KL(one || other) of two log distributions, in nats; infinite where `other` alone is 0."""
    if one.keys() != other.keys():
        raise ValueError(f"distributions over {list(one)} and over {list(other)} do not compare")
    terms = (math.exp(p) * (p - other[k]) for k, p in one.items() if p > -math.inf)
    return max(0.0, math.fsum(terms))


def log_odds(distribution: Mapping[str, float], answer: str) -> float:
    """log p(answer) - log p(any other), in nats; infinite if either probability is zero."""
    others = _logsumexp([x for name, x in distribution.items() if name != answer])
    if distribution[answer] == others == -math.inf:
        return math.nan
    return distribution[answer] - others


def log_odds_drop(
    baseline: Mapping[str, float], branch: Mapping[str, float], answer: str
) -> float | None:
    """Log-odds of `answer` in the baseline minus those in the branch, in nats.

    None if either is infinite: then no finite drop exists.
    """
    drop = log_odds(baseline, answer) - log_odds(branch, answer)
    return drop if math.isfinite(drop) else None


def logit_difference(distribution: Mapping[str, float], answer: str) -> float:
    """log p(answer) - log p(its best rival), in nats.

    For answers of one token this is the difference of their logits, since the normalisation
    cancels; for longer answers, the difference of their summed log-probabilities.
    """
    rival = max(x for name, x in distribution.items() if name != answer)
    if distribution[answer] == rival == -math.inf:
        return math.nan
    return distribution[answer] - rival


def nldd(clean: float, corrupt: float) -> float | None:
    """Normalised logit difference decay (Ye et al. 2026, arXiv 2602.11201), as a fraction.

    (clean - corrupt) / |clean| of the logit differences on the whole and on the corrupted
    reasoning: 0 if nothing moved, 1 if the two answers now tie, above 1 if the rival leads,
    negative if the lead grew. The paper gives percent.

    Returns:
        The decay; 0 if the clean difference is a tie (`NLDD_TIE`), None if either is not finite.
    """
    if not (math.isfinite(clean) and math.isfinite(corrupt)):
        return None
    return 0.0 if abs(clean) <= NLDD_TIE else (clean - corrupt) / abs(clean)


def true_thinking_score(intact: tuple[float, float], perturbed: tuple[float, float]) -> float:
    """True-thinking score of one step, in [0, 1] (Zhao et al. 2025, arXiv 2510.24941).

    Half of |p(y|C,s) - p(y|C,s')| + |p(y|C',s) - p(y|C',s')|.

    Args:
        intact: probability of the answer in the intact context C with the step s, and with
            the perturbed step s'.
        perturbed: probability of the answer in the perturbed context C', with s and with s'.
    """
    return 0.5 * (abs(intact[0] - intact[1]) + abs(perturbed[0] - perturbed[1]))


def _logsumexp(values: Sequence[float]) -> float:
    largest = max(values, default=-math.inf)
    if largest == -math.inf:
        return -math.inf
    return largest + math.log(sum(math.exp(x - largest) for x in values))
