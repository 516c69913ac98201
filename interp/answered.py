"""`Answered`: what a model says at the end of one prefix."""

from __future__ import annotations

from dataclasses import dataclass

from faithscope.interp.generation import Generation
from faithscope.interp.leads import Lead


@dataclass(frozen=True)
class Answered:
    """What a model says at the end of one prefix."""

    log_probs: tuple[float, ...]
    """Per label, the sum of its tokens' log-probs, and of its boundary's if one is asked for."""
    label_lengths: tuple[int, ...]
    """Tokens per label, for length normalisation."""
    generated: Generation | None
    """The greedy continuation, if one was asked for."""
    pack: int = 0
    """Which pack it was computed in, from 0; the first, if it was repeated."""
    leads: tuple[Lead, ...] = ()
    """Which token leads after each of a repeated prefix's last tokens."""
    repeats: tuple[Answered, ...] = ()
    """What a repeated prefix answered in every pack, by the number of the pack."""
    alone: Answered | None = None
    """Of a repeated prefix: the same once more, in another shape, by itself. Nothing is
    generated: `forced` has what it would have written."""
    forced: tuple[Lead, ...] = ()
    """Who leads at each token that was written elsewhere and put before the model here."""

    @property
    def written(self) -> tuple[Lead, ...]:
        """The tokens of the greedy continuation, the end token last, and how far each led."""
        if self.generated is None:
            return self.forced
        return tuple(map(Lead, self.generated.tokens, self.generated.gaps))
