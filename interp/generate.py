"""Batched continuation of prompts: token ids in, token ids out."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from faithscope.interp import continuation, execute, lockstep, writer
from faithscope.interp.generation import Generation, Sampling, check_penalty, each_of, seeds_of
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.lockstep import Choose
from faithscope.interp.penalty import Penalty
from faithscope.interp.read import choose_execution


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
    request = GenerateRequest(
        prompts,
        max_new_tokens,
        temperature=temperature,
        top_p=top_p,
        repetition_penalty=repetition_penalty,
        seed=seed,
        end_ids=end_ids,
        stop=stop,
        on_done=on_done,
    )
    return generate_all(model, [request])[0]


OnDone = Callable[[int, Generation], None]


@dataclass(frozen=True)
class GenerateRequest:
    """The arguments of one call of `generate`, which documents them."""

    prompts: Sequence[Sequence[int]]
    max_new_tokens: int | Sequence[int] = 512
    _: KW_ONLY
    temperature: float = 0.0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int | Sequence[int] = 0
    end_ids: frozenset[int] | None = None
    stop: lockstep.Stop | None = None
    on_done: OnDone | None = None


def generate_all(model: LoadedModel, requests: Sequence[GenerateRequest]) -> list[list[Generation]]:
    """The continuations of several calls of `generate`; calls with the same settings of sampling
    are decoded in lockstep."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for i, r in enumerate(requests):
        check_penalty(r.repetition_penalty)
        if r.prompts:
            room = each_of(r.max_new_tokens, len(r.prompts))
            how, _ = choose_execution(model, r.prompts, "auto", room=room)
            how = "elsewhere" if model.writer is not None else how
            settings = (r.temperature, r.top_p, r.repetition_penalty, r.end_ids)
            alike.setdefault((how, *settings), []).append(i)
    written: list[list[Generation]] = [[] for _ in requests]
    for (how, *_), at in alike.items():
        texts = iter(_generate(model, [requests[i] for i in at], how))
        for i in at:
            written[i] = list(itertools.islice(texts, len(requests[i].prompts)))
    return written


def _generate(
    model: LoadedModel, requests: Sequence[GenerateRequest], how: str
) -> list[Generation]:
    """The continuations of all prompts of requests with the same settings of sampling."""
    one = requests[0]
    prompts = [prompt for r in requests for prompt in r.prompts]
    limits = [n for r in requests for n in each_of(r.max_new_tokens, len(r.prompts))]
    stops = [r.stop for r in requests for _ in r.prompts]
    dones = [(r.on_done, i) for r in requests for i in range(len(r.prompts))]
    choose = None
    if one.temperature > 0:
        seeds = [seed for r in requests for seed in seeds_of(r.seed, len(r.prompts))]
        choose = _sampler(seeds, one.temperature, one.top_p)
    if one.repetition_penalty != 1:
        choose = Penalty(prompts, one.repetition_penalty).before(choose or _greedy)
    began, done = time.perf_counter(), {}

    def finish(i: int, written: Generation) -> None:
        done[i] = replace(written, seconds=time.perf_counter() - began)
        on_done, own = dones[i]
        if on_done:
            on_done(own, done[i])

    if how == "elsewhere":
        for i, text in enumerate(writer.write(model, prompts, _sampling(model, requests), stops)):
            finish(i, text)
    elif how == "loop":
        for i, prompt in enumerate(prompts):
            pick = None if choose is None else (lambda x, i=i: choose(x, [i]))
            began = time.perf_counter()
            text = continuation.continue_one_by_one(
                model, prompt, limits[i], choose=pick, stop=stops[i], end_ids=one.end_ids
            )
            finish(i, text)
    else:
        lockstep.decode(
            model,
            *execute.prefill_prompts(model, prompts),
            limits,
            choose=choose,
            stop=stops,
            group_tokens=model.token_budget,
            on_done=finish,
            end_ids=one.end_ids,
        )
    return [done[i] for i in range(len(prompts))]


def _sampling(model: LoadedModel, requests: Sequence[GenerateRequest]) -> Sampling:
    """The settings of all prompts of requests with the same settings of sampling."""
    one = requests[0]
    limits = [n for r in requests for n in each_of(r.max_new_tokens, len(r.prompts))]
    return Sampling(
        tuple(model.end_ids if one.end_ids is None else one.end_ids),
        max(limits),
        temperature=one.temperature,
        top_p=one.top_p,
        repetition_penalty=one.repetition_penalty,
        seed=tuple(seed for r in requests for seed in seeds_of(r.seed, len(r.prompts))),
        limits=tuple(limits),
        leads=one.temperature == 0 and one.repetition_penalty == 1,
    )


def _greedy(logits: Tensor, rows: list[int]) -> Tensor:
    return lockstep.greedy(logits)


def _sampler(seeds: Sequence[int], temperature: float, top_p: float) -> Choose:
    """A sampler in which each prompt has a generator of its own, whatever shares its batch."""
    generators = [torch.Generator().manual_seed(s) for s in seeds]

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
