"""Continuations that a backend wrote, and the settings of sampling: no torch, no model.

Text is made from token ids for reading only, and never turned back into ids.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from faithscope.interp.errors import UserError


@dataclass(frozen=True)
class Generation:
    """A continuation: its token ids without the end token, and why it ended."""

    ids: tuple[int, ...]
    finish: Literal["stop", "length"]
    end_id: int | None = None
    """The end token that ended the text; None if its length or a stop rule did."""
    seconds: float | None = field(default=None, compare=False)
    """Wall time in seconds from the request until the end. Prompts in flight together overlap, so
    these times do not add up to the time of a batch."""
    gaps: tuple[float, ...] = field(default=(), compare=False)
    """Per token of a greedy continuation (the end token's last): its logit minus that of its best
    rival, in nats; empty for sampled ones, and where a backend was not asked (`Sampling.leads`)."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The token ids written, the end token included."""
        return self.ids if self.end_id is None else (*self.ids, self.end_id)

    @property
    def n_tokens(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class Sampling:
    """Settings of sampling, with the same meaning for every backend.

    RFEval, appendix C.1: temperature 0, 32,768 new tokens, a repetition penalty of 1.2 but for
    the Qwen family's 1.0.
    """

    stop_ids: tuple[int, ...]
    """Tokens that end a continuation, and the only ones that do (`Model.end_ids` has the model's
    own); none of them appears in the result."""
    max_new_tokens: int = 512
    temperature: float = 0.0
    """Sampling temperature; 0 is greedy."""
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    """Logits of tokens that stand in the prompt or in what was written are divided by it where
    positive and multiplied where negative, before the temperature (arXiv 1909.05858, and
    transformers' `RepetitionPenaltyLogitsProcessor`, which count the prompt in too)."""
    seed: int | tuple[int, ...] = 0
    """One seed for all, from which each prompt's follows by its place; or one per prompt, so that
    its draws do not depend on the other prompts of the call. What a seed draws differs between
    backends."""
    limits: tuple[int, ...] | None = None
    """Most new tokens of each prompt, at most `max_new_tokens` each; None if that holds for all."""
    leads: bool = False
    """Whether vLLM gives the `Generation.gaps` of a greedy text; `interp` always does."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop_ids", tuple(sorted({int(i) for i in self.stop_ids})))
        if not isinstance(self.seed, int):
            object.__setattr__(self, "seed", tuple(self.seed))
        if self.limits is not None:
            object.__setattr__(self, "limits", tuple(self.limits))
        for limit in (self.max_new_tokens, *(self.limits or ())):
            if limit < 1:
                raise UserError(f"max_new_tokens is {limit}; it must be at least 1")
        if self.limits and (most := max(self.limits)) > self.max_new_tokens:
            raise UserError(f"a limit is {most}, above max_new_tokens ({self.max_new_tokens})")
        if not 0 <= self.temperature < math.inf:
            raise UserError(f"temperature is {self.temperature}; it must be 0 (greedy) or more")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p is {self.top_p}; it must be above 0 and at most 1")
        check_penalty(self.repetition_penalty)

    def limits_of(self, n: int) -> list[int]:
        """The most new tokens of each of `n` prompts.

        Raises:
            ValueError: the numbers of limits and of prompts differ.
        """
        return each_of(self.max_new_tokens if self.limits is None else self.limits, n)

    def seeds(self, n: int) -> list[int]:
        """The seed of each of `n` prompts."""
        return seeds_of(self.seed, n)


def room_for(asked: int, n_prompt: int, positions: int | None) -> int:
    """Number of new tokens for a prompt: `asked`, or fewer if the model's positions end before
    that.

    RFEval (C.1) asks for 32,768 new tokens, while some models (MiMo-7B) have no more positions than
    that for prompt and text together. vLLM by itself ends a text at the last position, and the text
    counts as truncated; our backends refuse to ask for more than there is room for.

    Args:
        positions: most tokens of prompt and continuation together; None if there is no limit.

    Raises:
        UserError: the prompt alone fills all positions.
    """
    if positions is None:
        return asked
    if (room := positions - n_prompt) < 1:
        raise UserError(
            f"a prompt of {n_prompt} tokens leaves no room for a text: the model has {positions} "
            "positions; leave the item out, or take a model with more"
        )
    return min(asked, room)


def check_penalty(penalty: float) -> None:
    """Check that `penalty` is a repetition penalty; raises `UserError` if not."""
    if not 0 < penalty < math.inf:
        raise UserError(f"repetition_penalty is {penalty}; it must be above 0 (1 is none)")


def each_of(limit: int | Sequence[int], n: int) -> list[int]:
    """The limit of each of `n` prompts, from one for all or one for each.

    Raises:
        ValueError: the numbers of limits and of prompts differ.
    """
    limits = [limit] * n if isinstance(limit, int) else list(limit)
    if len(limits) != n:
        raise ValueError(f"{n} prompts but {len(limits)} limits; give one, or one per prompt")
    return limits


def seeds_of(seed: int | Sequence[int], n: int) -> list[int]:
    """The seed of each of `n` prompts: derived from `seed` and its place, or as given.

    Raises:
        ValueError: the numbers of seeds and of prompts differ.
    """
    seeds = [seed * 1_000_003 + i for i in range(n)] if isinstance(seed, int) else list(seed)
    if len(seeds) != n:
        raise ValueError(f"{n} prompts but {len(seeds)} seeds; give one seed, or one per prompt")
    return seeds
