"""Continuations written in this process, against transformers' own `generate`."""

from __future__ import annotations

import pytest
import torch
from tiny_models import tiny
from transformers import GenerationConfig

from faithscope.interp.backends.here import Here
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Generation, Sampling
from faithscope.interp.model import Model

PROMPTS = [[5, 6, 7, 8, 9], [9, 10, 9], [200, 3, 77, 12, 5, 6], [41]]


def by_transformers(model: Model, prompt: list[int], new: int, penalty: float) -> list[int]:
    """What transformers' own greedy `generate` writes."""
    config = GenerationConfig(
        max_new_tokens=new, do_sample=False, repetition_penalty=penalty, pad_token_id=0
    )
    out = model.hf.generate(torch.tensor([prompt]), generation_config=config)  # pyright: ignore
    return out[0, len(prompt) :].tolist()


@pytest.mark.in_time(3)
@pytest.mark.parametrize("family", ["llama", "gpt2", "falcon"])
@pytest.mark.parametrize("penalty", [1.0, 1.2, 0.8])
def test_penalised_tokens_are_those_of_transformers(family: str, penalty: float):
    # weights scaled up make sharp logits, which no penalty of 1.2 would overrule
    model = tiny(family)
    for parameter in model.hf.parameters():
        if parameter.dim() > 1:
            parameter.data.div_(4)
    found = Here(model).generate(
        PROMPTS, Sampling((), max_new_tokens=40, repetition_penalty=penalty)
    )
    expected = [by_transformers(model, prompt, 40, penalty) for prompt in PROMPTS]
    assert [list(g.ids) for g in found] == expected
    if penalty > 1:
        free = Here(model).generate(PROMPTS, Sampling((), max_new_tokens=40))
        assert any(f.ids != g.ids for f, g in zip(free, found, strict=True))


def test_the_prompt_counts_as_seen():
    model = tiny("llama")
    first = model.generate([PROMPTS[0]], 1)[0].ids[0]
    prompt = [first, *PROMPTS[0]]
    here = Here(model)
    free = here.generate([prompt], Sampling((), max_new_tokens=1))[0]
    huge = here.generate([prompt], Sampling((), max_new_tokens=1, repetition_penalty=1e6))[0]
    assert huge.ids[0] not in prompt
    assert free.n_tokens == huge.n_tokens == 1


def test_small_groups_penalise_each_prompt_by_what_it_has_seen():
    model = tiny("llama")
    sampling = Sampling((), max_new_tokens=20, repetition_penalty=1.5)
    together = Here(model).generate(PROMPTS, sampling)
    model.token_budget = 30
    assert Here(model).generate(PROMPTS, sampling) == together
    assert Here(model, batch_size=1).generate(PROMPTS, sampling) == together


def test_sampled_tokens_hang_on_the_seed_and_not_on_the_batch():
    model = tiny("llama")
    sampling = Sampling(
        (), max_new_tokens=12, temperature=1.0, top_p=0.9, repetition_penalty=1.2, seed=3
    )
    together = Here(model).generate(PROMPTS, sampling)
    assert Here(model, batch_size=3).generate(PROMPTS, sampling) == together
    own = Sampling(
        (), 12, temperature=1.0, top_p=0.9, repetition_penalty=1.2, seed=tuple(sampling.seeds(4))
    )
    assert Here(model).generate(PROMPTS, own) == together
    with pytest.raises(ValueError, match="4 prompts but 2 seeds"):
        Here(model).generate(PROMPTS, Sampling((), 12, seed=(1, 2)))


@pytest.mark.parametrize("family", ["llama", pytest.param("falcon", marks=pytest.mark.slow)])
def test_stop_ids_alone_end_a_continuation(family: str):
    model = tiny(family)
    free = Here(model).generate(PROMPTS, Sampling((), max_new_tokens=20))
    end, last = free[0].ids[4], free[0].ids[-1]
    model.end_ids = frozenset({last})
    done: dict[int, Generation] = {}
    found = Here(model, batch_size=3).generate(
        PROMPTS, Sampling((end,), max_new_tokens=20), done.__setitem__
    )
    assert [done[i] for i in range(len(PROMPTS))] == found
    assert found[0].end_id == end
    for before, after in zip(free, found, strict=True):
        cut = before.ids.index(end) if end in before.ids else None
        assert after.ids == before.ids[:cut]
        assert after.n_tokens == len(after.ids) + (cut is not None)
        assert (after.finish, after.end_id) == (("length", None) if cut is None else ("stop", end))
        assert after.seconds is not None
        assert after.seconds > 0


@pytest.mark.parametrize("family", ["llama", "falcon"])
def test_each_prompt_may_have_a_limit_of_its_own(family: str):
    model = tiny(family)
    whole = Here(model).generate(PROMPTS, Sampling((), 20))
    limits = [3, 20, 1, 7]
    found = Here(model, batch_size=3).generate(PROMPTS, Sampling((), 20, limits=tuple(limits)))
    assert [g.ids for g in found] == [g.ids[:n] for g, n in zip(whole, limits, strict=True)]
    assert {g.finish for g in found} == {"length"}
    # the longest prompt has the room that is left, whatever others may write
    long = [[1] * 500, [1, 2]]
    made = Here(model).generate(long, Sampling((), 100, limits=(12, 100)))
    assert [g.n_tokens for g in made] == [12, 100]
    if model.max_positions == 512:
        with pytest.raises(UserError, match=r"prompt 0 has 500 tokens; with max_new_tokens 13"):
            Here(model).generate(long, Sampling((), 100, limits=(13, 100)))
    with pytest.raises(ValueError, match="2 prompts but 1 limits"):
        Here(model).generate(long, Sampling((), 100, limits=(12,)))


def test_settings_that_mean_nothing_are_refused():
    for wrong in (
        {"repetition_penalty": 0},
        {"repetition_penalty": float("nan")},
        {"temperature": -1},
        {"top_p": 0},
        {"max_new_tokens": 0},
        {"max_new_tokens": 4, "limits": (4, 5)},
        {"max_new_tokens": 4, "limits": (4, 0)},
    ):
        with pytest.raises(UserError, match=next(iter(wrong))):
            Sampling((), **wrong)
    here = Here(tiny("llama"))
    with pytest.raises(UserError, match=r"prompt 1 has 500 tokens.*the 512 positions"):
        here.generate([[1], [1] * 500], Sampling((), max_new_tokens=20))
    with pytest.raises(UserError, match="prompt 0 for tiny:llama is empty"):
        here.generate([[]], Sampling(()))
