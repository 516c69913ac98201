"""Losses and advantages of the training objectives, as functions of tensors alone.

Log-probabilities are in nats; `(N,)` is one number per rollout, `(L,)` one per answer label.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from faithscope.experiments.studies.training.config import Per


def advantages(rewards: Tensor, groups: Sequence[int], *, scaled: bool) -> Tensor:
    """Advantage of each rollout in its group: its reward less the group's mean (GRPO).

    Args:
        rewards: (N,) rewards; a rollout with NaN is not rewarded: it counts in no mean and has the
            advantage 0.
        groups: per rollout, the number of its question.
        scaled: also divide by the group's standard deviation, as in GRPO; a group in which all
            rewards are equal has the advantage 0 either way.

    Returns:
        (N,) advantages.
    """
    out = torch.zeros_like(rewards)
    group_of = torch.tensor(groups)
    for group in group_of.unique():
        of = (group_of == group) & ~rewards.isnan()
        if of.sum() < 2:
            continue
        centred = rewards[of] - rewards[of].mean()
        spread = rewards[of].std(correction=0)
        out[of] = centred / (spread + 1e-4) if scaled else centred
    return out


def token_weights(lengths: Sequence[int], advantage: Tensor, per: Per) -> list[float]:
    """What each token of each rollout weighs in the policy's loss, which is −Σ weight · log p.

    Rollouts are sampled from the policy that is updated, once each: the ratio of new to old
    probability is 1, and no clipping takes effect.

    Args:
        lengths: per rollout, its number of tokens.
        advantage: (N,) advantages.
        per: what the loss is a mean of.

    Returns:
        One weight per rollout, which holds for each of its tokens.
    """
    total = max(sum(lengths), 1)
    return [
        float(a) / (total if per == "token" else len(lengths) * max(n, 1))
        for a, n in zip(advantage, lengths, strict=True)
    ]


def drift(log_probs: Tensor, reference: Tensor) -> Tensor:
    """Estimate of the divergence KL(policy ‖ reference), summed over tokens: the estimator
    r − log r − 1 with r = reference / policy, as in GRPO.

    Args:
        log_probs: (T,) log-probabilities of the tokens, with gradient.
        reference: (T,) the same under the reference.
    """
    gap = reference - log_probs
    return (gap.exp() - gap - 1).sum()


def forgetting(log_prob: Tensor, reference: Tensor, beta: float) -> Tensor:
    """Negative preference optimisation (NPO, arXiv 2404.05868) of an answer to be forgotten.

    The loss is −2/β · log σ(−β · (log p − log p_reference)): it falls as the answer gets less
    likely than under the reference, and flattens out.

    Args:
        log_prob: log-probability of the whole answer, with gradient.
        reference: the same under the reference.
        beta: the inverse temperature β.
    """
    return -2 / beta * logsigmoid(-beta * (log_prob - reference))


def divergence(of: Tensor, other: Tensor) -> Tensor:
    """KL(of ‖ other) of two (L,) log distributions over the same labels, in nats."""
    return (of.exp() * (of - other)).sum()


def variation(of: Tensor, other: Tensor) -> Tensor:
    """Total variation of two (L,) log distributions over the same labels, in [0, 1]."""
    return 0.5 * (of.exp() - other.exp()).abs().sum()


def log_odds(of: Tensor, at: int) -> Tensor:
    """Log-odds of one of the (L,) labels of a log distribution against all others together."""
    others = torch.cat([of[:at], of[at + 1 :]])
    return of[at] - others.logsumexp(0)
