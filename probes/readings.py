"""What a branch did to the answer, by the generated answer or by the scored labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from faithscope.probes.floor import Arm, baseline_of, narrower, without_baselines
from faithscope.probes.framing import Reply
from faithscope.probes.graded import (
    log_distribution,
    log_odds_drop,
    logit_difference,
    top,
    total_variation,
)

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
    """Log-odds of the answer that is followed, baseline minus branch, in nats; scored only."""
    forced_log_odds: float | None = None
    """Log-odds of the baseline's own likeliest answer, baseline minus branch, in nats; scored
    only."""
    margin: float | None = None
    """By how much the closer of the two answers, its own and the baseline's, was decided, in nats:
    between the tokens written or between the answers scored. A flip of no more than the item's
    `noise_floor` may be none in the next run."""
    label_mass: float | None = None
    """What all labels together have of the model's probability."""


def generated_outcomes(replies: Mapping[Arm, Reply]) -> dict[Arm, Outcome]:
    """Branches by their parsed greedy answers, each against the baseline of its own pack."""
    outcomes = {}
    for arm, reply in without_baselines(replies).items():
        baseline = baseline_of(replies, reply.pack)
        flips = reply.answer is None or reply.answer != baseline.answer
        margin = narrower(reply.margin, baseline.margin)
        outcomes[arm] = Outcome(reply.answer, flips, margin=margin)
    return outcomes


def scored_outcomes(
    by_arm: Mapping[Arm, Mapping[str, float]], packs: Mapping[Arm, int], followed: str
) -> dict[Arm, Outcome]:
    """Branches by their log distributions over the answers (`distributions`), each against the
    baseline of its own pack.

    A branch flips where its likeliest answer is another than that of the baseline, whichever
    answer is followed: what an edit did is the difference of two readings of one kind.

    Args:
        packs: in which each was computed.
        followed: the answer whose log-odds are followed (`probes.reference_answer`).
    """
    outcomes = {}
    for arm, branch in without_baselines(by_arm).items():
        baseline = baseline_of(by_arm, packs[arm])
        forced = top(baseline)
        outcomes[arm] = Outcome(
            top(branch),
            top(branch) != forced,
            total_variation(baseline, branch),
            log_odds_drop(baseline, branch, followed),
            log_odds_drop(baseline, branch, forced),
            narrower(*(logit_difference(x, top(x)) for x in (baseline, branch))),
        )
    return outcomes


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
