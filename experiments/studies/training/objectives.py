"""What models are trained for: each objective's reward, and the loss beside it.

SLRC (arXiv 2603.22816, section 3.3, Table 6) names five: GRPO, CSR, FARL, CoSR and LC-CoSR; it
leaves rewards, weights and most settings open (docs/deviations.md). `update_mask` and
`gradient_mask` are the rivals of arXiv 2605.24286. `follow` is ours: it pays when the answer
follows a corrupted step that the model itself writes onward from, which tripping over a gap cannot
earn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from faithscope.experiments.studies.training.config import Rewards
from faithscope.experiments.studies.training.losses import divergence, forgetting, log_odds
from faithscope.experiments.studies.training.policy import Policy, Sight, Text
from faithscope.experiments.studies.training.rollouts import FULL, Arm, Rollout
from faithscope.interventions import truncate_after_token
from faithscope.probes.framing import label_ids, prefix_ids

Reward = Callable[[Rollout, Rewards], float]
Loss = Callable[[Policy, Rollout, Rewards], Tensor | None]
"""Function from a rollout to a loss with gradient; None where it has none."""


@dataclass(frozen=True)
class Objective:
    """One way to train."""

    name: str
    summary: str
    """One line for the documentation and the page."""
    arms: tuple[Arm, ...]
    """Edits after which each rollout's answer is asked; the first is the one that is rewarded."""
    reward: Reward
    """Reward of a rollout; NaN for one that is not rewarded."""
    loss: Loss | None = None
    """Loss beside the policy's."""
    sight: Sight = "all"
    bounded: bool = False
    """Whether steps are projected so that the Lyapunov bound holds."""
    shuffles_rewards: bool = False
    """Whether rewards are dealt out anew among the rollouts of a batch, as a control."""


def correct(rollout: Rollout, rewards: Rewards) -> float:
    """1 for a right answer, else 0; NaN without a gold answer."""
    return math.nan if rollout.correct is None else float(rollout.correct)


def changed(rollout: Rollout, rewards: Rewards) -> float:
    """CoSR's reward: `changed` or `unchanged`, by the answer after a step is dropped. To it come
    `shuffled`, if another order of the steps changes the answer, and `correct` for a right answer.
    """
    dropped = rollout.changed("dropped")
    if dropped is None:
        return math.nan
    paid = rewards.changed if dropped else rewards.unchanged
    paid += rewards.shuffled * bool(rollout.changed("shuffled"))
    return paid + rewards.correct * bool(rollout.correct)


def followed(rollout: Rollout, rewards: Rewards) -> float:
    """`changed` if the answer after a corrupted step, written onward, is the one that the new text
    states, else `unchanged`; NaN if the new text states no other answer."""
    if rollout.claimed is None:
        return math.nan
    paid = rewards.changed if rollout.answers["rewritten"] == rollout.claimed else rewards.unchanged
    return paid + rewards.correct * bool(rollout.correct)


def apart(policy: Policy, rollout: Rollout, rewards: Rewards) -> Tensor | None:
    """CSR's regularisation (arXiv 2509.01544), with removal as the perturbation: minus the
    divergence of the answer's distributions with and without the step, at most `most` nats."""
    if "dropped" not in rollout.edited:
        return None
    full, dropped = _after(policy, rollout, FULL, "dropped")
    return -divergence(full, dropped).clamp(max=rewards.most)


def unforgotten(policy: Policy, rollout: Rollout, rewards: Rewards) -> Tensor | None:
    """FARL's unlearning: NPO of the right answer given without any reasoning. Only where the model
    would give it: what is not retrieved need not be forgotten."""
    gold = rollout.trace.question.gold
    names = [name for name, _ in rollout.asking.labels]
    if gold not in names:
        return None
    empty = truncate_after_token(rollout.trace, 0)
    prefix = prefix_ids(policy.model, rollout.asking, empty)
    label = label_ids(policy.model, rollout.asking, "prefix")[names.index(gold)]
    text = Text((*prefix, *label), len(label))
    with torch.no_grad(), policy.reference():
        reference = policy.log_probs([text])[0].sum()
    if reference.exp() < 0.5:
        return None
    return forgetting(policy.log_probs([text])[0].sum(), reference, rewards.npo_beta)


def dependence(scale: Callable[[Tensor, int], Tensor]) -> Loss:
    """CoSR, differentiable: minus log p(a | all steps) − log p(a | one step dropped) of the
    rollout's answer a, at most `most` nats; or the same of another scale than log p."""

    def loss(policy: Policy, rollout: Rollout, rewards: Rewards) -> Tensor | None:
        names = rollout.asking.answers
        if "dropped" not in rollout.edited or rollout.answer not in names:
            return None
        at = names.index(rollout.answer)
        full, dropped = (scale(of, at) for of in _after(policy, rollout, FULL, "dropped"))
        return -(full - dropped).clamp(max=rewards.most)

    return loss


def following(policy: Policy, rollout: Rollout, rewards: Rewards) -> Tensor | None:
    """Minus the log-probability of the answer that the rewritten text states."""
    names = rollout.asking.answers
    if rollout.claimed is None or rollout.claimed not in names:
        return None
    (rewritten,) = _after(policy, rollout, "rewritten")
    return -rewritten[names.index(rollout.claimed)]


def _after(policy: Policy, rollout: Rollout, *arms: str) -> list[Tensor]:
    """Log distributions over the answers after edits of a rollout, with gradient."""
    prefixes = [prefix_ids(policy.model, rollout.asking, rollout.edited[arm]) for arm in arms]
    labels = label_ids(policy.model, rollout.asking, "prefix")
    return policy.answers(prefixes, labels, [name for name, _ in rollout.asking.labels])


OBJECTIVES = {
    objective.name: objective
    for objective in (
        Objective(
            "grpo",
            "GRPO: pays for a right answer alone",
            ("dropped", "shuffled"),
            correct,
        ),
        Objective(
            "csr",
            "CSR: pays for a right answer, and parts the answer's distributions with and without a "
            "step",
            ("dropped", "shuffled"),
            correct,
            apart,
        ),
        Objective(
            "farl",
            "FARL: pays for a right answer, and unlearns right answers without reasoning",
            ("dropped", "shuffled"),
            correct,
            unforgotten,
        ),
        Objective(
            "cosr",
            "CoSR: pays if the answer changes when a step is dropped",
            ("dropped", "shuffled"),
            changed,
        ),
        Objective(
            "cosr_differentiable",
            "CoSR through gradients: the answer's log-probability with all steps less that without "
            "one",
            ("dropped", "shuffled"),
            correct,
            dependence(Tensor.__getitem__),
        ),
        Objective(
            "cosr_log_odds",
            "CoSR through gradients of log-odds, which an answer that is certain keeps as well",
            ("dropped", "shuffled"),
            correct,
            dependence(log_odds),
        ),
        Objective(
            "lc_cosr",
            "LC-CoSR: CoSR under the Lyapunov bound",
            ("dropped", "shuffled"),
            changed,
            bounded=True,
        ),
        Objective(
            "update_mask",
            "update mask: pays for a right answer; in updates the answer does not see the question",
            ("dropped", "shuffled"),
            correct,
            sight="update_mask",
        ),
        Objective(
            "gradient_mask",
            "gradient mask: pays for a right answer; no gradient flows from it to the question",
            ("dropped", "shuffled"),
            correct,
            sight="gradient_mask",
        ),
        Objective(
            "follow",
            "ours: pays if the answer follows a corrupted step that the model writes onward from",
            ("rewritten", "dropped"),
            followed,
        ),
        Objective(
            "follow_differentiable",
            "ours through gradients: the log-probability of the answer that the rewritten steps "
            "state",
            ("rewritten", "dropped"),
            correct,
            following,
        ),
        Objective(
            "shuffled_reward",
            "control: CoSR's rewards, dealt out anew among the rollouts of a batch",
            ("dropped", "shuffled"),
            changed,
            shuffles_rewards=True,
        ),
    )
}
"""Every objective by its name, in the order of the documentation."""
