"""Batched continuation of prompts: token ids in, token ids out."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from faithscope.interp import continuation, execute, lockstep, writer
from faithscope.interp.edit_checks import check
from faithscope.interp.edits import Edit
from faithscope.interp.errors import UserError
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
    edits: Sequence[Sequence[Edit] | None] | None = None,
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
        edits: per prompt, the edits of the model while it reads the prompt and writes on; None for
            none. Prompts under different edits are decoded in one lockstep. Edits that reach beyond
            the prompt (an end of None) hold for what is written. A call with edits is written here
            whole, also if the model has a writer elsewhere (vLLM).

    Raises:
        UserError: a prompt does not fit the model's positions, an edit is not possible in this
            model, or the model runs one by one and there are edits.
        ValueError: an edit names a position, layer, head or width that is not there.
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
        edits=edits,
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
    edits: Sequence[Sequence[Edit] | None] | None = None
    on_done: OnDone | None = None

    @cached_property
    def under(self) -> list[tuple[Edit, ...]]:
        """The edits of each prompt."""
        if self.edits is None:
            return [()] * len(self.prompts)
        if len(self.edits) != len(self.prompts):
            raise ValueError(
                f"{len(self.prompts)} prompts but edits for {len(self.edits)} of them; give None "
                "for a prompt without edits"
            )
        return [tuple(e or ()) for e in self.edits]


def generate_all(model: LoadedModel, requests: Sequence[GenerateRequest]) -> list[list[Generation]]:
    """The continuations of several calls of `generate`; calls with the same settings of sampling
    are decoded in lockstep, those with edits apart."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for i, r in enumerate(requests):
        check_penalty(r.repetition_penalty)
        if r.prompts:
            room = each_of(r.max_new_tokens, len(r.prompts))
            how, reason = choose_execution(model, r.prompts, "auto", room=room)
            edited = any(r.under)
            if edited:
                _check_edits(model, r, reason)
            elif model.writer is not None:
                how = "elsewhere"
            settings = (edited, r.temperature, r.top_p, r.repetition_penalty, r.end_ids)
            alike.setdefault((how, *settings), []).append(i)
    written: list[list[Generation]] = [[] for _ in requests]
    for (how, *_), at in alike.items():
        texts = iter(_generate(model, [requests[i] for i in at], how))
        for i in at:
            written[i] = list(itertools.islice(texts, len(requests[i].prompts)))
    return written


def _check_edits(model: LoadedModel, request: GenerateRequest, reason: str | None) -> None:
    """
    Args:
        reason: why the packed forest does not serve the request's prompts, if it does not.
    """
    for prompt, edits in zip(request.prompts, request.under, strict=True):
        check(model, edits, len(prompt), grows=True)
    if reason is not None:
        raise UserError(
            f"{model.name}: no text can be written under edits one by one ({reason}); read or "
            "score it under edits (run, ask), or take a shorter text or another model"
        )


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
        edits = [under for r in requests for under in r.under]
        lockstep.decode(
            model,
            *execute.prefill_prompts(model, prompts, edits),
            limits,
            choose=choose,
            stop=stops,
            group_tokens=model.token_budget,
            on_done=finish,
            edits=edits if any(edits) else None,
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
