"""Continuations that another backend writes in a model's place, from the model's own token ids.

What a probe measures is computed here; a text that it needs (an answer after a forced prefix, a
regenerated chain) is any backend's to write. vLLM keeps what prefixes of an item share, and adds
tokens of many texts in one recorded step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from faithscope.interp.detokenise import GrowingText
from faithscope.interp.generation import Generation, Sampling
from faithscope.interp.loaded import LoadedModel

FIRST = 32
"""Tokens that a text with a rule to stop is first asked for, twice as many each time it goes on: a
backend knows no such rules, and would write on to the limit."""
Stop = Callable[[str], bool]


def write(
    model: LoadedModel,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    stops: Sequence[Stop | None],
) -> list[Generation]:
    """The continuations that `sampling` asks for, each ended where its rule to stop says so.

    Raises:
        BackendLost: the backend is gone.
        BackendError: a text was not continued as asked.
    """
    assert model.writer is not None
    limits = sampling.limits_of(len(prompts))
    done = [Generation((), "length") for _ in prompts]
    # a drawn text is one request: in parts, its seed would begin anew with each
    most = math.inf if sampling.temperature > 0 else FIRST
    going = list(range(len(prompts)))
    while going:
        room = [limits[i] - len(done[i].ids) for i in going]
        room = [n if stops[i] is None else min(n, most) for i, n in zip(going, room, strict=True)]
        seeds = sampling.seeds(len(prompts))
        asked = replace(
            sampling,
            limits=tuple(map(int, room)),
            max_new_tokens=int(max(room)),
            seed=tuple(seeds[i] for i in going),
        )
        parts = model.writer.generate([[*prompts[i], *done[i].ids] for i in going], asked)
        for i, part in zip(going, parts, strict=True):
            whole = replace(
                part, ids=done[i].ids + part.ids, gaps=done[i].gaps + part.gaps, seconds=None
            )
            done[i] = _stopped(model, whole, stops[i])
        going = [i for i in going if done[i].finish == "length" and len(done[i].ids) < limits[i]]
        most *= 2
    return done


def _stopped(model: LoadedModel, text: Generation, stop: Stop | None) -> Generation:
    """Truncates a text at the first token where its stop rule, if it has one, fires."""
    if stop is None:
        return text
    growing = GrowingText(model.tokenizer)
    for n, token in enumerate(text.ids, 1):
        if stop(growing.add(token)):
            return Generation(text.ids[:n], "stop", gaps=text.gaps[:n])
    return text


def greedy(model: LoadedModel, limits: Sequence[int]) -> Sampling:
    """Settings of greedy texts that end at the model's own end tokens, with their leads."""
    return Sampling(tuple(model.end_ids), max(limits), limits=tuple(limits), leads=True)
