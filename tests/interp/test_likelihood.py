"""Log-probs and entropies of tokens: against whole logits, and against transformers' loss."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from tiny_models import NO_TREE, tiny

from faithscope.interp import likelihood as module
from faithscope.interp.model import Model


def texts(n: int = 3, length: int = 40) -> list[list[int]]:
    draw = random.Random(5)
    trunk = draw.choices(range(256), k=12)
    return [trunk[: 4 * i] + draw.choices(range(256), k=length) for i in range(n)]


def naive(model: Model, ids: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """From the full logits of a plain forward, in doubles."""
    with torch.inference_mode():
        logits = (
            model.hf(torch.tensor([ids], device=model.device), use_cache=False)
            .logits[0, :-1]
            .double()
            .cpu()
        )
    log_p = torch.log_softmax(logits, -1)
    said = log_p.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    return said.numpy(), -(log_p.exp() * log_p).sum(-1).numpy()


def test_every_execution_gives_what_the_whole_logits_give(tree_model: Model) -> None:
    sequences, starts = texts(), [0, 7, 20]
    for execution in ("packed", "dense", "loop"):
        ran = tree_model.likelihood(sequences, starts, odds=True, execution=execution)
        assert ran.execution == execution
        for ids, start, found in zip(sequences, starts, ran.sequences, strict=True):
            log_probs, entropies = naive(tree_model, ids)
            skip = max(start, 1) - 1
            assert np.isnan(found.log_probs[: start == 0]).all()
            assert found.log_probs[start == 0 :] == pytest.approx(log_probs[skip:], abs=2e-4)
            assert found.entropies[start == 0 :] == pytest.approx(entropies[skip:], abs=2e-4)
            assert len(found.log_probs) == len(ids) - start
            odds = log_probs - np.log(-np.expm1(log_probs))
            assert found.log_odds is not None
            assert found.log_odds[start == 0 :] == pytest.approx(odds[skip:], abs=3e-4)


def test_the_mean_is_the_loss_that_transformers_takes() -> None:
    model = tiny("llama")
    (ids, *_) = texts()
    (found,) = model.likelihood([ids], [1]).sequences
    with torch.inference_mode():
        loss = model.hf(
            torch.tensor([ids], device=model.device),
            labels=torch.tensor([ids], device=model.device),
        ).loss
    assert -found.log_probs.mean() == pytest.approx(float(loss), abs=1e-5)


@pytest.mark.in_time(4)
@pytest.mark.parametrize("family", sorted(NO_TREE))
def test_models_that_no_tree_serves_go_by_the_loop(family: str) -> None:
    model = tiny(family)
    (ids, *_) = texts()
    ran = model.likelihood([ids], [5])
    assert ran.execution == "loop"
    log_probs, _ = naive(model, ids)
    assert ran.sequences[0].log_probs == pytest.approx(log_probs[4:], abs=2e-4)


def test_few_positions_at_a_time_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, sequences = tiny("llama"), texts()
    widest = 0
    real = module._Scores.take

    def watched(self, model, nodes, logits):
        nonlocal widest
        widest = max(widest, len(logits))
        real(self, model, nodes, logits)

    monkeypatch.setattr(module._Scores, "take", watched)
    whole = model.likelihood(sequences, [3, 3, 3])
    monkeypatch.setattr(module, "POSITIONS", 7)
    monkeypatch.setattr(module, "_ROWS", 2)
    for execution in ("packed", "loop"):
        widest = 0
        split = model.likelihood(sequences, [3, 3, 3], execution=execution)
        assert widest == 7
        for a, b in zip(whole.sequences, split.sequences, strict=True):
            assert a.log_probs == pytest.approx(b.log_probs, abs=1e-4)
            assert a.entropies == pytest.approx(b.entropies, abs=1e-4)


def test_a_token_ruled_out_adds_nothing_to_the_entropy() -> None:
    model = tiny("llama")
    (ids, *_) = texts()
    ruled = next(i for i in range(256) if i not in ids)
    hook = model.hf.get_output_embeddings().register_forward_hook(  # pyright: ignore
        lambda _, __, out: out.index_fill(-1, torch.tensor([ruled]), -torch.inf)
    )
    try:
        (found,) = model.likelihood([ids], [1]).sequences
    finally:
        hook.remove()
    assert np.isfinite(found.entropies).all()


def test_odds_of_a_token_that_is_sure_are_finite() -> None:
    model = tiny("llama")
    (ids, *_) = texts()
    hook = model.hf.get_output_embeddings().register_forward_hook(  # pyright: ignore
        lambda _, __, out: out.index_fill(-1, torch.tensor([ids[1]]), 60.0)
    )
    try:
        (found,) = model.likelihood([ids[:2]], [1], odds=True).sequences
    finally:
        hook.remove()
    assert found.log_probs[0] == 0
    assert found.log_odds is not None
    assert 40 < found.log_odds[0] < 60


def test_nothing_is_wanted_and_what_lies_outside_is_refused() -> None:
    model = tiny("llama")
    (ids, *_) = texts()
    assert model.likelihood([ids], [len(ids)]).sequences[0].log_probs.shape == (0,)
    with pytest.raises(ValueError, match="start 41 lies outside a sequence of 40 tokens"):
        model.likelihood([ids], [41])


def test_logits_that_are_no_numbers_are_an_error() -> None:
    model = tiny("llama")
    model.hf.get_output_embeddings().weight.data[3] = torch.nan  # pyright: ignore
    (ids, *_) = texts()
    with pytest.raises(FloatingPointError, match="NaN logits"):
        model.likelihood([ids], [1])
