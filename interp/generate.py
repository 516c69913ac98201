"""Batched continuation of prompts: token ids in, token ids out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from faithscope.interp import continuation, execute
from faithscope.interp.generation import Generation, check_penalty, each_of, seeds_of
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.penalty import Penalty
from faithscope.interp.read import choose_execution

Choose = Callable[[Tensor, list[int]], Tensor]
"""(B, V) logits and the indices of their prompts, to (B,) next tokens."""


def generate(
    model: LoadedModel,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int | Sequence[int] = 512,
    *,
    temperature: float = 0.0,
    top_p: float = 1.0,
    repetition_penalty: float = 1.0,
    seed: int | Sequence[int] = 0,
    end_ids: frozenset[int] | None = None,
    stop: Callable[[str], bool] | None = None,
    on_done: Callable[[int, Generation], None] | None = None,
) -> list[Generation]:
    """Continue every prompt: greedy, or sampled with a seed of each prompt's own.

    Prompts share the prefill of common prefixes and are decoded in lockstep; those that
    end leave the batch. `on_done(index, generation)` is called as each ends.

    Args:
        max_new_tokens: the most new tokens, of all prompts or of each.
        repetition_penalty: above 1 makes tokens of the prompt and of what was written less
            likely; see `interp.penalty`.
        seed: one for all, from which each prompt's seed follows by its place; or one per prompt, so
            that its draws do not depend on the other prompts of the call.
        end_ids: tokens that end a continuation; the model's own by default.
    """
    if not prompts:
        return []
    check_penalty(repetition_penalty)
    limits = each_of(max_new_tokens, len(prompts))
    how, _ = choose_execution(model, prompts, "auto", room=limits)
    choose = _sampler(len(prompts), temperature, top_p, seed) if temperature > 0 else None
    if repetition_penalty != 1:
        choose = Penalty(prompts, repetition_penalty).before(choose or _greedy)
    if how == "loop":
        return _one_by_one(model, prompts, limits, choose, end_ids, stop, on_done)
    began, done = time.perf_counter(), {}

    def finish(i: int, written: Generation) -> None:
        done[i] = replace(written, seconds=time.perf_counter() - began)
        if on_done:
            on_done(i, done[i])

    execute.decode(
        model,
        *execute.prefill_prompts(model, prompts),
        limits,
        choose=choose,
        stop=stop,
        group_tokens=model.token_budget,
        on_done=finish,
        end_ids=end_ids,
    )
    return [done[i] for i in range(len(prompts))]


def _one_by_one(
    model: LoadedModel,
    prompts: Sequence[Sequence[int]],
    limits: Sequence[int],
    choose: Choose | None,
    end_ids: frozenset[int] | None,
    stop: Callable[[str], bool] | None,
    on_done: Callable[[int, Generation], None] | None,
) -> list[Generation]:
    out = []
    for i, prompt in enumerate(prompts):
        pick = None if choose is None else (lambda x, i=i: choose(x, [i]))
        began = time.perf_counter()
        written = continuation.continue_one_by_one(
            model, prompt, limits[i], choose=pick, stop=stop, end_ids=end_ids
        )
        out.append(replace(written, seconds=time.perf_counter() - began))
        if on_done:
            on_done(i, out[-1])
    return out


def _greedy(logits: Tensor, rows: list[int]) -> Tensor:
    return execute.greedy(logits)


def _sampler(n: int, temperature: float, top_p: float, seed: int | Sequence[int]) -> Choose:
    """A sampler in which each prompt has a generator of its own, whatever shares its batch."""
    generators = [torch.Generator().manual_seed(s) for s in seeds_of(seed, n)]

    def choose(logits: Tensor, rows: list[int]) -> Tensor:
        p = torch.softmax(logits.float().cpu() / temperature, -1)
        if top_p < 1:
            ordered, index = p.sort(descending=True)
            ordered[ordered.cumsum(-1) - ordered > top_p] = 0
            p = torch.zeros_like(p).scatter_(-1, index, ordered)
        return torch.stack(
            [
                torch.multinomial(row, 1, generator=generators[i])[0]
                for row, i in zip(p, rows, strict=True)
            ]
        )

    return choose
