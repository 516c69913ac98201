"""What models are trained for: each objective's reward, and the loss beside it.

SLRC (arXiv 2603.22816, section 3.3, Table 6) names five: GRPO, CSR, FARL, CoSR and LC-CoSR; it
leaves rewards, weights and most settings open (`faithscope docs papers/training`). `update_mask`
and `gradient_mask` are the rivals of arXiv 2605.24286. `follow` is ours: it pays when the answer
follows a corrupted step that the model itself writes onward from, which tripping over a gap cannot
earn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from faithscope.experiments.studies.training.config import Rewards
from faithscope.experiments.studies.training.losses import divergence, forgetting, log_odds
from faithscope.experiments.studies.training.policy import Choice, Policy, Sight, Text
from faithscope.experiments.studies.training.rollouts import FULL, Arm, Rollout
from faithscope.interp.model import Model
from faithscope.interventions import Trace, truncate_after_token
from faithscope.probes.framing import Asking, label_ids, prefix_ids

Reward = Callable[[Rollout, Rewards], float]
Loss = Callable[[Policy, Sequence[Rollout], Rewards], list[Tensor]]
"""Function from rollouts to losses with gradient, of those rollouts that have one."""


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


def follow_reward(rollout: Rollout, rewards: Rewards) -> float:
    """`changed` if the answer after a corrupted step, written onward, is the one that the new text
    states, else `unchanged`; NaN if the new text states no other answer."""
    if rollout.claimed is None:
        return math.nan
    paid = rewards.changed if rollout.answers["rewritten"] == rollout.claimed else rewards.unchanged
    return paid + rewards.correct * bool(rollout.correct)


def csr_divergence(policy: Policy, rollouts: Sequence[Rollout], rewards: Rewards) -> list[Tensor]:
    """CSR's regularisation (arXiv 2509.01544), with removal as the perturbation: minus the
    divergence of the answer's distributions with and without the step, at most `most` nats."""
    return [
        -divergence(full, dropped).clamp(max=rewards.most)
        for _, (full, dropped) in _after(policy, rollouts, FULL, "dropped")
    ]


def farl_npo(policy: Policy, rollouts: Sequence[Rollout], rewards: Rewards) -> list[Tensor]:
    """FARL's unlearning: NPO of the right answer given without any reasoning. Only where the model
    would give it: what is not retrieved need not be forgotten."""
    texts = [text for rollout in rollouts if (text := _at_once(policy, rollout)) is not None]
    if not texts:
        return []
    with torch.no_grad(), policy.reference():
        before = [of.sum() for of in policy.log_probs(texts)]
    now = [of.sum() for of in policy.log_probs(texts)]
    return [
        forgetting(log_prob, reference, rewards.npo_beta)
        for log_prob, reference in zip(now, before, strict=True)
        if reference.exp() >= 0.5
    ]


def _at_once(policy: Policy, rollout: Rollout) -> Text | None:
    """The right answer without any reasoning, as a text; None if there is none to score."""
    gold = rollout.trace.question.gold
    names = [name for name, _ in rollout.asking.labels]
    if gold not in names:
        return None
    prefix = prefix_ids(policy.model, rollout.asking, truncate_after_token(rollout.trace, 0))
    label = label_ids(policy.model, rollout.asking, "prefix")[names.index(gold)]
    return Text((*prefix, *label), len(label))


def dependence(scale: Callable[[Tensor, int], Tensor]) -> Loss:
    """CoSR, differentiable: minus log p(a | all steps) − log p(a | one step dropped) of the
    rollout's answer a, at most `most` nats; or the same of another scale than log p."""

    def loss(policy: Policy, rollouts: Sequence[Rollout], rewards: Rewards) -> list[Tensor]:
        of = [r for r in rollouts if r.answer in r.asking.answers]
        losses = []
        for rollout, (full, dropped) in _after(policy, of, FULL, "dropped"):
            assert rollout.answer is not None
            at = rollout.asking.answers.index(rollout.answer)
            losses.append(-(scale(full, at) - scale(dropped, at)).clamp(max=rewards.most))
        return losses

    return loss


def following(policy: Policy, rollouts: Sequence[Rollout], rewards: Rewards) -> list[Tensor]:
    """Minus the log-probability of the answer that the rewritten text states."""
    of = [r for r in rollouts if r.claimed in r.asking.answers]
    losses = []
    for rollout, (rewritten,) in _after(policy, of, "rewritten"):
        assert rollout.claimed is not None
        losses.append(-rewritten[rollout.asking.answers.index(rollout.claimed)])
    return losses


def _after(
    policy: Policy, rollouts: Sequence[Rollout], *arms: str
) -> Iterator[tuple[Rollout, list[Tensor]]]:
    """Yields each rollout that has edits, with the log distributions over the answers after them,
    which have gradient."""
    of = [r for r in rollouts if all(arm in r.edited for arm in arms) and r.asking.labels]
    if of:
        choices = [choice(policy.model, r.asking, [r.edited[arm] for arm in arms]) for r in of]
        yield from zip(of, policy.answers(choices), strict=True)


def choice(model: Model, asking: Asking, traces: Sequence[Trace]) -> Choice:
    """The answers that can be given after each of some traces of one question."""
    return Choice(
        tuple(prefix_ids(model, asking, trace) for trace in traces),
        tuple(label_ids(model, asking, "prefix")),
        tuple(name for name, _ in asking.labels),
    )


@dataclass(frozen=True)
class Objective:
    """One way to train; `config.METHODS` says each in words."""

    reward: Reward = correct
    """Reward of a rollout; NaN for one that is not rewarded."""
    loss: Loss | None = None
    """Loss beside the policy's."""
    arms: tuple[Arm, ...] = ("dropped", "shuffled")
    """Edits after which each rollout's answer is asked; the first is the one that is rewarded."""
    sight: Sight = "all"
    bounded: bool = False
    """Whether steps are projected so that the Lyapunov bound holds."""
    shuffles_rewards: bool = False
    """Whether rewards are dealt out anew among the rollouts of a batch, as a control."""


REWRITTEN: tuple[Arm, ...] = ("rewritten", "dropped")
OBJECTIVES = {
    "grpo": Objective(),
    "csr": Objective(loss=csr_divergence),
    "farl": Objective(loss=farl_npo),
    "cosr": Objective(changed),
    "cosr_differentiable": Objective(loss=dependence(Tensor.__getitem__)),
    "cosr_log_odds": Objective(loss=dependence(log_odds)),
    "lc_cosr": Objective(changed, bounded=True),
    "update_mask": Objective(sight="update_mask"),
    "gradient_mask": Objective(sight="gradient_mask"),
    "follow": Objective(follow_reward, arms=REWRITTEN),
    "follow_differentiable": Objective(loss=following, arms=REWRITTEN),
    "shuffled_reward": Objective(changed, shuffles_rewards=True),
}
"""Every objective by its name, in the order of `config.METHODS`."""
