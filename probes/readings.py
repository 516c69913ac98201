"""Outcomes of branches: their effect on the answer, by the generated or the scored reading."""

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
    """Effect of one branch on the answer, compared with the baseline of its pack."""

    answer: str | None
    """The branch's answer in canonical form; None if the generated answer did not parse."""
    flips: bool
    """Whether the branch's answer differs from the baseline's; an unparsed answer differs from
    all."""
    tv: float | None = None
    """Total variation between answer distributions of branch and baseline; scored reading only."""
    log_odds: float | None = None
    """Log-odds of the followed answer, baseline minus branch, in nats; scored reading only."""
    forced_log_odds: float | None = None
    """Log-odds of the baseline's own likeliest answer, baseline minus branch, in nats; scored
    reading only."""
    margin: float | None = None
    """Margin in nats of the closer of the two decisions, the branch's and the baseline's: between
    the tokens written or between the answers scored. A flip by no more than the item's
    `noise_floor` may not recur in the next run."""
    label_mass: float | None = None
    """The model's probability of all labels together."""


def generated_outcomes(replies: Mapping[Arm, Reply]) -> dict[Arm, Outcome]:
    """Outcomes of branches by parsed greedy answers, each against the baseline of its own pack."""
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
    """Outcomes of branches by their log distributions over the answers (`distributions`), each
    against the baseline of its own pack.

    A branch flips if its likeliest answer differs from the baseline's, whichever answer is
    followed: an edit's effect is the difference of two readings of one kind.

    Args:
        packs: index of the pack in which each arm was computed.
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
        FloatingPointError: log-probabilities are NaN; the message names `item` and the branch.
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
