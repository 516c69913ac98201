"""What a branch did to the answer, by the generated answer or by the scored labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from probes.framing import Reply
from probes.graded import log_distribution, log_odds_drop, top, total_variation

Key = TypeVar("Key")


@dataclass(frozen=True)
class Outcome:
    """One branch against the baseline of its pack."""

    answer: str | None
    """Canonical; None where the generated answer did not parse."""
    flips: bool
    """Whether it differs from the baseline's; an unparsed answer differs from every one."""
    tv: float | None = None
    """Total variation of the answer distributions; scored reading only."""
    log_odds: float | None = None
    """Log-odds of the baseline's answer, baseline minus branch, in nats; scored only."""


def generated_outcomes(baseline: Reply, branches: Mapping[Key, Reply]) -> dict[Key, Outcome]:
    """Branches by their parsed greedy answers."""
    return {
        key: Outcome(reply.answer, reply.answer is None or reply.answer != baseline.answer)
        for key, reply in branches.items()
    }


def scored_outcomes(
    baseline: Mapping[str, float], branches: Mapping[Key, Mapping[str, float]]
) -> dict[Key, Outcome]:
    """Branches by their log distributions over the answers (`distributions`)."""
    answer = top(baseline)
    return {
        key: Outcome(
            top(branch),
            top(branch) != answer,
            total_variation(baseline, branch),
            log_odds_drop(baseline, branch, answer),
        )
        for key, branch in branches.items()
    }


def distributions(
    replies: Mapping[Key, Reply],
    names: Sequence[str],
    *,
    length_normalise: bool,
    item: str,
) -> dict[Key, dict[str, float]]:
    """The log distribution over answers of every reply.

    Args:
        names: per label, the answer it stands for.

    Raises:
        FloatingPointError: naming `item` and the branch, where log-probabilities are NaN.
    """
    return {
        key: log_distribution(
            reply.log_probs,
            names,
            lengths=reply.lengths if length_normalise else None,
            what=f"item {item!r}, branch {key}",
        )
        for key, reply in replies.items()
    }
