"""The Lyapunov bound of LC-CoSR: V(θ) ≥ V(θ₀) − ε after every step (SLRC, section 3.3).

V measures how far the answer depends on the written steps, on a fixed batch of chains. The paper
states neither V nor the projection. Here the step that the optimiser would take, Δ, is projected
onto the half-space in which V keeps its bound to first order, in the optimiser's own metric M
(Adam's √v̂ + ε over its rate): the closest step in that metric is Δ + λ M⁻¹g with g = ∇V. A
projection holds to first order only, so V is then measured, and the step is halved until the bound
holds: without a step it holds, since it held before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

HALVINGS = 12
"""Number of times that a step is halved before it is given up."""


@dataclass
class Bound:
    """The bound, and how often it took effect."""

    least: float
    """The value that V must keep: V(θ₀) − ε."""
    holds: bool = True
    """Whether steps are projected; if not, violations are only counted."""
    projections: int = 0
    """Number of steps that were projected."""
    halvings: int = 0
    """Number of times that a step was halved."""
    given_up: int = 0
    """Number of steps that were not taken, since even a small part of them broke the bound."""
    violations: int = 0
    """Number of steps after which V was below the bound."""


def displacement(optimizer: Optimizer) -> list[Tensor]:
    """The step Δ that the optimiser takes from here, per parameter; the parameters are put back.

    The optimiser's own state moves on, as it would with the step.
    """
    parameters = parameters_of(optimizer)
    before = [p.detach().clone() for p in parameters]
    optimizer.step()
    steps = [p.detach() - b for p, b in zip(parameters, before, strict=True)]
    move_to(parameters, before)
    return steps


def inverse_metric(optimizer: Optimizer) -> list[Tensor]:
    """The diagonal of M⁻¹ per parameter: rate / (√v̂ + ε) for Adam, else the rate."""
    diagonal = []
    for group in optimizer.param_groups:
        for p in group["params"]:
            state = optimizer.state.get(p, {})
            if "exp_avg_sq" not in state:
                diagonal.append(torch.full_like(p, group["lr"]))
                continue
            corrected = state["exp_avg_sq"] / (1 - group["betas"][1] ** float(state["step"]))
            diagonal.append(group["lr"] / (corrected.sqrt() + group["eps"]))
    return diagonal


def projected(
    steps: Sequence[Tensor],
    gradient: Sequence[Tensor],
    inverse: Sequence[Tensor],
    slack: float,
) -> tuple[list[Tensor], bool]:
    """The closest steps to `steps` with gradient · step ≥ −slack, and whether they were moved.

    Args:
        steps: Δ per parameter.
        gradient: g = ∇V per parameter.
        inverse: the diagonal of M⁻¹ per parameter; distances are Δᵀ M Δ.
        slack: V(θ) less the bound, which is not negative where the bound holds.
    """
    gain = float(sum((g * d).sum() for g, d in zip(gradient, steps, strict=True)))
    if gain >= -slack:
        return list(steps), False
    norm = float(sum((g * g * m).sum() for g, m in zip(gradient, inverse, strict=True)))
    if norm == 0:
        return list(steps), False
    by = (-slack - gain) / norm
    moved = [d + by * m * g for d, m, g in zip(steps, inverse, gradient, strict=True)]
    return moved, True


def step(
    optimizer: Optimizer,
    bound: Bound,
    value: Callable[[], float],
    gradient: Callable[[], tuple[float, list[Tensor]]],
) -> float:
    """Take the optimiser's step so that the bound holds after it; returns V after the step.

    Args:
        value: measures V at the present parameters.
        gradient: V and its gradient per parameter at the present parameters.
    """
    parameters = parameters_of(optimizer)
    if bound.holds:
        before = [p.detach().clone() for p in parameters]
        # first, since V's gradient takes the place of the loss's
        taken = displacement(optimizer)
        now, of_v = gradient()
        steps, moved = projected(taken, of_v, inverse_metric(optimizer), now - bound.least)
        bound.projections += moved
        for _ in range(HALVINGS):
            move_to(parameters, [b + d for b, d in zip(before, steps, strict=True)])
            if (after := value()) >= bound.least:
                return after
            bound.halvings += 1
            steps = [d / 2 for d in steps]
        bound.given_up += 1
        move_to(parameters, before)
    else:
        optimizer.step()
    after = value()
    bound.violations += after < bound.least
    return after


def parameters_of(optimizer: Optimizer) -> list[Tensor]:
    """All parameters of an optimiser, in order."""
    return [p for group in optimizer.param_groups for p in group["params"]]


@torch.no_grad()
def move_to(parameters: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Set parameters to given values."""
    for p, value in zip(parameters, values, strict=True):
        p.copy_(value)
