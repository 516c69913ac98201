"""Unlearning against a direct implementation on a copy of the model's weights."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from tiny_models import tiny
from torch.nn import CrossEntropyLoss
from torch.nn import functional as F

from faithscope.interp.model import Model
from faithscope.interp.unlearning import (
    NoSuchWeights,
    Target,
    Unlearning,
    by_itself,
    next_tokens,
    unlearned,
)

HOW = Unlearning(learning_rate=1e-3, updates=3, beta=0.1, kept=0.5, clip=1.0)


def texts(model: Model) -> tuple[Target, list[tuple[int, ...]]]:
    ids = tuple(model.encode("Well?\n\nSo 3 + 4 makes 7."))
    kept = [tuple(model.encode(text)) for text in ("It is yes.", "Now it is no, again.")]
    return Target(ids, (9, 10, 14)), kept


def directly(model: Model, target: Target, kept: list[tuple[int, ...]]) -> dict[str, torch.Tensor]:
    """Weights after the updates, with transformers' labels as BonaFide's code has them."""
    hf = copy.deepcopy(model.hf)
    original = copy.deepcopy(hf)
    chosen = [p for name, p in hf.named_parameters() if "down_proj" in name]
    for p in chosen:
        p.requires_grad_(True)
    ids = torch.tensor([target.ids])
    labels = torch.full_like(ids, -100)
    labels[0, list(target.forgotten)] = ids[0, list(target.forgotten)]

    def nll(of: torch.nn.Module) -> torch.Tensor:
        logits = of(ids).logits[:, :-1].transpose(-1, -2)
        return CrossEntropyLoss(ignore_index=-100, reduction="none")(logits, labels[:, 1:]).sum(-1)

    optimiser = torch.optim.AdamW(chosen, lr=HOW.learning_rate)
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda i: (3 - i) / 3)
    with torch.no_grad():
        before = nll(original)
    for i in range(3):
        stay = torch.tensor([kept[i % len(kept)]])
        with torch.no_grad():
            old = original(stay).logits.log_softmax(-1)
        loss = -F.logsigmoid(0.1 * (nll(hf) - before)).mean() * 2 / 0.1
        new = hf(stay).logits.log_softmax(-1)
        loss = loss + 0.5 * F.kl_div(new, old, reduction="batchmean", log_target=True)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(chosen, 1.0)
        optimiser.step()
        falling.step()
    fallen = 1 - torch.exp((before - nll(hf)) / 3)
    return dict(hf.state_dict()) | {"efficacy": fallen.detach()}


def test_weights_are_those_of_a_direct_implementation_and_come_back() -> None:
    model = tiny("llama")
    target, kept = texts(model)
    before = {name: p.clone() for name, p in model.hf.state_dict().items()}
    expected = directly(model, target, kept)
    with unlearned(model, target, kept, HOW) as efficacy:
        for name, p in model.hf.state_dict().items():
            assert torch.allclose(p.cpu(), expected[name].cpu(), atol=1e-6), name
            assert ("down_proj" in name) != torch.equal(p, before[name]), name
    assert efficacy == pytest.approx(float(expected["efficacy"]), abs=1e-4)
    assert efficacy > 0
    assert all(torch.equal(p, before[name]) for name, p in model.hf.state_dict().items())
    assert not any(p.requires_grad or p.grad is not None for p in model.hf.parameters())


def test_the_model_writes_with_the_weights_of_the_moment() -> None:
    model = tiny("llama")
    target, kept = texts(model)
    prompt = model.encode("Well?\n")
    strong = Unlearning(learning_rate=0.5, updates=2)
    (own,) = model.generate([prompt], 12)
    with unlearned(model, target, kept, strong):
        (other,) = model.generate([prompt], 12)
        ids = list(prompt)
        with torch.no_grad():
            for _ in range(12):
                ids.append(int(model.hf(torch.tensor([ids])).logits[0, -1].argmax()))
        assert list(other.ids) == ids[len(prompt) :]
    assert other.ids != own.ids
    assert model.generate([prompt], 12)[0].ids == own.ids
    assert next_tokens(model, [prompt]) == [own.ids[0]]


def test_weights_come_back_after_an_error_and_no_writer_stands_in() -> None:
    model = tiny("llama")
    target, kept = texts(model)
    before = {name: p.clone() for name, p in model.hf.state_dict().items()}
    model.writer = writer = object()  # pyright: ignore

    def fails() -> None:
        with unlearned(model, target, kept, HOW):
            assert model.writer is None
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert model.writer is writer
    with by_itself(model):
        assert model.writer is None
    model.writer = None
    assert all(torch.equal(p, before[name]) for name, p in model.hf.state_dict().items())


def test_weights_that_are_not_there_are_named() -> None:
    model = tiny("gpt2")
    target, kept = texts(model)
    named = pytest.raises(NoSuchWeights, match="none has 'down_proj' in its name")
    with named, unlearned(model, target, kept, HOW):
        pass
    with unlearned(model, target, kept, Unlearning("mlp.c_proj", 1e-3)) as efficacy:
        assert efficacy > 0


def test_a_loss_that_is_not_finite_is_an_error() -> None:
    model = tiny("llama")
    target, kept = texts(model)
    far = Unlearning(beta=math.nan)
    with pytest.raises(FloatingPointError, match="unlearning"), unlearned(model, target, kept, far):
        pass
    assert all(torch.isfinite(p).all() for p in model.hf.parameters())
