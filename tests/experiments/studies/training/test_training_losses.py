"""Losses, advantages and the bound of training, against formulas worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from faithscope.experiments.studies.training.bound import (
    Bound,
    displacement,
    inverse_metric,
    projected,
    step,
)
from faithscope.experiments.studies.training.losses import (
    advantages,
    divergence,
    drift,
    forgetting,
    log_odds,
    token_weights,
    variation,
)

NAN = math.nan


def test_advantages_are_taken_within_the_group():
    rewards = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0, NAN])
    plain = advantages(rewards, [0, 0, 0, 1, 1, 1], scaled=False)
    assert plain.tolist() == pytest.approx([2 / 3, -1 / 3, -1 / 3, 0, 0, 0])
    scaled = advantages(rewards, [0, 0, 0, 1, 1, 1], scaled=True)
    spread = np.std([1.0, 0.0, 0.0])
    assert scaled.tolist() == pytest.approx([x / (spread + 1e-4) for x in plain.tolist()])


def test_one_rewarded_rollout_teaches_nothing():
    assert advantages(torch.tensor([1.0, NAN]), [0, 0], scaled=False).tolist() == [0, 0]


def test_tokens_of_a_long_rollout_weigh_less_per_rollout_and_the_same_per_token():
    advantage = torch.tensor([1.0, 1.0])
    assert token_weights([1, 3], advantage, "rollout") == [1 / 2, 1 / 6]
    assert token_weights([1, 3], advantage, "token") == [1 / 4, 1 / 4]


def test_drift_is_zero_at_the_reference_and_never_negative():
    own = torch.log(torch.tensor([0.2, 0.5, 0.9]))
    assert drift(own, own).item() == 0
    other = torch.log(torch.tensor([0.4, 0.1, 0.9]))
    ratio = torch.tensor([2.0, 0.2, 1.0])
    assert drift(own, other).item() == pytest.approx((ratio - ratio.log() - 1).sum().item())


def test_forgetting_falls_as_the_answer_gets_less_likely():
    reference = torch.log(torch.tensor(0.9))
    losses = [
        forgetting(torch.log(torch.tensor(p)), reference, 0.1).item() for p in (0.9, 0.5, 0.01)
    ]
    assert losses[0] == pytest.approx(2 / 0.1 * math.log(2))
    assert losses == sorted(losses, reverse=True)


def test_distances_of_distributions():
    one, other = torch.log(torch.tensor([0.9, 0.1])), torch.log(torch.tensor([0.5, 0.5]))
    assert variation(one, other).item() == pytest.approx(0.4)
    assert divergence(one, other).item() == pytest.approx(0.9 * math.log(1.8) + 0.1 * math.log(0.2))


def test_log_odds_keep_their_gradient_where_log_probabilities_lose_it():
    logits = torch.tensor([20.0, 0.0, 0.0], requires_grad=True)
    of = logits.log_softmax(0)
    assert log_odds(of, 0).item() == pytest.approx(20 - math.log(2), rel=1e-4)
    (by_odds,) = torch.autograd.grad(log_odds(of, 0), logits, retain_graph=True)
    (by_probability,) = torch.autograd.grad(of[0], logits)
    assert by_odds[0].item() == pytest.approx(1, abs=1e-3)
    assert abs(by_probability[0].item()) < 1e-6


class Bowl:
    """V(θ) = −θ₁² − 4 θ₂², which training wants to lower by moving θ₁ and θ₂ up."""

    def __init__(self) -> None:
        self.theta = torch.nn.Parameter(torch.tensor([0.5, 0.25]))

    def value(self) -> float:
        x, y = self.theta.detach()
        return float(-(x**2) - 4 * y**2)

    def gradient(self) -> tuple[float, list[Tensor]]:
        x, y = self.theta.detach()
        return self.value(), [torch.tensor([-2 * x, -8 * y])]


def test_the_projection_is_the_closest_step_in_the_metric():
    """Against the solution by Lagrange: Δ + λ M⁻¹g with λ = (−slack − g·Δ) / gᵀM⁻¹g."""
    wanted, gradient = torch.tensor([1.0, 0.5]), torch.tensor([-1.0, -2.0])
    inverse = torch.tensor([0.1, 0.4])
    (moved,), was = projected([wanted], [gradient], [inverse], slack=0.5)
    by = (-0.5 + 2.0) / (0.1 + 1.6)
    assert was
    assert moved.tolist() == pytest.approx([1 - by * 0.1, 0.5 - by * 0.8])
    assert float(gradient @ moved) == pytest.approx(-0.5)
    # every other step on the bound is further away: distances are Δᵀ M Δ
    along = torch.tensor([2.0, -1.0])
    distances = [
        float((((moved + t * along) - wanted) ** 2 / inverse).sum()) for t in (-0.1, 0, 0.1)
    ]
    assert min(distances) == distances[1]


def test_a_step_within_the_bound_is_left_alone():
    wanted, gradient = torch.tensor([0.1]), torch.tensor([-1.0])
    (same,), was = projected([wanted], [gradient], [torch.tensor([1.0])], slack=0.5)
    assert not was
    assert same is wanted


@pytest.mark.parametrize("rate", [0.01, 0.3, 10.0])
def test_the_bound_holds_after_every_step(rate):
    """Adam moves θ up at a rate that breaks the bound at once; V never falls below it."""
    bowl, rates = Bowl(), []
    optimizer = torch.optim.Adam([bowl.theta], lr=rate)
    bound = Bound(bowl.value() - 0.1)
    for _ in range(30):
        bowl.theta.grad = torch.tensor([-1.0, -1.0])
        rates.append(step(optimizer, bound, bowl.value, bowl.gradient))
    assert min(rates) >= bound.least
    assert bound.violations == 0
    assert bound.projections > 0


def test_without_the_bound_the_same_steps_break_it():
    bowl = Bowl()
    optimizer = torch.optim.Adam([bowl.theta], lr=0.3)
    bound = Bound(bowl.value() - 0.1, holds=False)
    for _ in range(10):
        bowl.theta.grad = torch.tensor([-1.0, -1.0])
        step(optimizer, bound, bowl.value, bowl.gradient)
    assert bound.violations > 0
    assert bound.projections == 0


def test_the_metric_is_that_of_adam():
    """Adam's first step is rate · gradient / (|gradient| + ε): Δ = −M⁻¹ · m̂."""
    theta = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    optimizer = torch.optim.Adam([theta], lr=0.1)
    theta.grad = torch.tensor([0.5, -4.0])
    (moved,) = displacement(optimizer)
    assert theta.tolist() == [1.0, 2.0]
    (inverse,) = inverse_metric(optimizer)
    assert moved.tolist() == pytest.approx((-inverse * theta.grad).tolist())
