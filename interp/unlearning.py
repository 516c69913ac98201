"""Unlearning: for a while a model's weights are such that a text has become less likely.

Negative preference optimisation (NPO, arXiv 2404.05868) of the text to be forgotten, with the
divergence KL(before || now) of texts to be kept, as faithfulness by unlearning reasoning steps uses
it (Tutek et al. 2025, arXiv 2502.14829). Only some weights are trained, by AdamW with a linearly
falling rate and clipped gradients; afterwards they are what they were, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import kl_div, logsigmoid

from faithscope.interp.errors import UserError
from faithscope.interp.model import Model


@dataclass(frozen=True)
class Unlearning:
    """How a text is unlearned."""

    weights: str = "down_proj"
    """The trained weights: all whose names hold this text."""
    learning_rate: float = 1e-5
    updates: int = 5
    beta: float = 0.1
    """Inverse temperature of NPO."""
    kept: float = 1.0
    """Weight of the divergence on the kept text."""
    clip: float = 1.0
    """Greatest norm of the gradient."""


class Target(NamedTuple):
    """A text, and which of its tokens are to be forgotten."""

    ids: tuple[int, ...]
    forgotten: tuple[int, ...]
    """Places in `ids`; none is the first."""


class NoSuchWeights(UserError):
    """No weights of the model have the name that is to be trained, or these are quantised."""


@contextmanager
def unlearned(
    model: Model, target: Target, kept: Sequence[Sequence[int]], how: Unlearning
) -> Iterator[float]:
    """A context in which the model has unlearned the target; gives the efficacy: by which share the
    geometric mean of the forgotten tokens' probabilities has fallen.

    Every update takes the next of the kept texts in turn. Nothing else may run on the model
    meanwhile; texts are written by the model itself, whatever writes for it else.

    Raises:
        NoSuchWeights: `how.weights` names none that can be trained.
        FloatingPointError: the loss is not finite.
    """
    named = [p for name, p in model.hf.named_parameters() if how.weights in name]
    weights = [p for p in named if p.is_floating_point() and not p.is_meta]
    if not weights or getattr(model.hf, "is_quantized", False):
        why = "they are quantised" if weights else f"none has {how.weights!r} in its name"
        raise NoSuchWeights(f"{model.name}: no weights to be trained: {why}")
    before = [p.detach().clone() for p in weights]
    try:
        with torch.no_grad():
            reference = _log_prob(model, target).item()
        with torch.enable_grad():
            for p in weights:
                p.requires_grad_(True)
            _train(model, weights, target, kept, how, reference)
        for p in weights:
            p.requires_grad_(False)
        with torch.no_grad():
            now = _log_prob(model, target).item()
        with by_itself(model):
            yield 1 - math.exp((now - reference) / len(target.forgotten))
    finally:
        for p, old in zip(weights, before, strict=True):
            p.requires_grad_(False)
            p.grad = None
            p.data.copy_(old)


@contextmanager
def by_itself(model: Model) -> Iterator[None]:
    """A context in which the model's own weights write its texts, whatever writes for it else."""
    writer, model.writer = model.writer, None
    try:
        yield
    finally:
        model.writer = writer


@torch.no_grad()
def next_tokens(model: Model, texts: Sequence[Sequence[int]]) -> list[int]:
    """The likeliest next token after each text."""
    return [int(_log_probs(model, ids)[-1].argmax()) for ids in texts]


def _train(
    model: Model,
    weights: Sequence[Tensor],
    target: Target,
    kept: Sequence[Sequence[int]],
    how: Unlearning,
    reference: float,
) -> None:
    with torch.no_grad():
        originals = [_log_probs(model, ids) for ids in kept[: how.updates]]
    optimiser = torch.optim.AdamW(weights, lr=how.learning_rate)
    for update in range(how.updates):
        for group in optimiser.param_groups:
            group["lr"] = how.learning_rate * (1 - update / how.updates)
        ratio = _log_prob(model, target) - reference
        loss = -2 / how.beta * logsigmoid(-how.beta * ratio)
        if originals:
            at = update % len(originals)
            now = _log_probs(model, kept[at])
            loss = loss + how.kept * kl_div(now, originals[at], reduction="sum", log_target=True)
        if not torch.isfinite(loss):
            raise FloatingPointError("the loss of unlearning is not finite")
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, how.clip)
        optimiser.step()


def _log_probs(model: Model, ids: Sequence[int]) -> Tensor:
    """(T, V) log-probabilities of the next token after each."""
    put = torch.tensor([list(ids)], device=model.device)
    return model.hf(input_ids=put, use_cache=False).logits[0].float().log_softmax(-1)


def _log_prob(model: Model, target: Target) -> Tensor:
    """Log-probability of all forgotten tokens together."""
    log_probs = _log_probs(model, target.ids)
    at = torch.tensor(target.forgotten, device=log_probs.device)
    tokens = torch.tensor([target.ids[i] for i in target.forgotten], device=log_probs.device)
    return log_probs[at - 1, tokens].sum()
