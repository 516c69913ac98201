"""Leads: which candidate a model puts first at one place, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

WATCHED = 64
"""Number of tokens before the answer at which leads are compared: an answer of one or two tokens
would be too few to tell how far a lead may move."""


class Lead(NamedTuple):
    """The likeliest candidate at one place, and how far it is ahead of the next."""

    candidate: int
    """A token id; for a set of labels, the index of the leading label."""
    gap: float
    """The candidate's logit or log-prob minus that of its best rival, in nats; 0 at a tie."""

    @classmethod
    def of(cls, scores: Sequence[float]) -> Lead:
        """The lead of the greatest of two or more scores over the second."""
        first, second = sorted(range(len(scores)), key=lambda i: -scores[i])[:2]
        return cls(first, scores[first] - scores[second])

    def moved(self, other: Lead) -> float:
        """Least distance (nats) that the leader moved against its best rival in `other`, a lead at
        the same place."""
        same = self.candidate == other.candidate
        return abs(self.gap - other.gap) if same else self.gap + other.gap


def gaps(logits: Tensor) -> list[float]:
    """The greatest minus the second greatest logit of each row of (B, V) logits."""
    best = logits.topk(2).values
    return (best[:, 0] - best[:, 1]).tolist()
