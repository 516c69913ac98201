"""`Answered`: what a model says at the end of one prefix."""

from __future__ import annotations

from dataclasses import dataclass

from faithscope.interp.generation import Generation
from faithscope.interp.leads import Lead


@dataclass(frozen=True)
class Answered:
    """What a model says at the end of one prefix."""

    log_probs: tuple[float, ...]
    """Per label, the sum of its tokens' log-probs in nats, its boundary's included if asked for."""
    label_lengths: tuple[int, ...]
    """Number of tokens per label, for length normalisation."""
    generated: Generation | None
    """The greedy continuation, if one was asked for."""
    pack: int = 0
    """Index of the pack that the prefix was computed in, from 0; its first pack, if repeated."""
    leads: tuple[Lead, ...] = ()
    """The leading next token after each of a repeated prefix's last tokens."""
    repeats: tuple[Answered, ...] = ()
    """The answers of a repeated prefix, one per pack, by the pack's index."""
    alone: Answered | None = None
    """The answer of a repeated prefix run once more without the other arms, in another batch shape:
    alone, or beside what other calls repeat. Nothing is generated in this run: `forced` tells what
    it would have written."""
    forced: tuple[Lead, ...] = ()
    """The leading token at each position of a continuation of another run, replayed here."""

    @property
    def written(self) -> tuple[Lead, ...]:
        """The tokens of the greedy continuation, the end token last, each with its lead in nats."""
        if self.generated is None:
            return self.forced
        return tuple(map(Lead, self.generated.tokens, self.generated.gaps))
