"""The noise floor: how far the numbers of one text move when it is run in another batch shape.

A kernel adds in another order when other rows stand beside a text, and in half precision each such
sum is rounded to 8 or 11 bits: the same text has other logits in another pack, chunk or batch. A
difference between two arms is an effect only where it exceeds this floor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from faithscope.interp.answered import Answered
from faithscope.interp.leads import Lead


@dataclass(frozen=True)
class Floor:
    """Differences between the repeats of one prefix, which was run in every pack and once alone."""

    packs: int
    lead: float
    """The furthest that any lead moved, in nats: of the tokens before the answer, of those written
    and of the labels. A decision by no more than this could have gone otherwise."""
    log_prob: float | None
    """The largest |Δ log-prob| of a label; None where none were scored."""
    decision_moved: bool
    """Whether any repeat would have written another token or put another label first."""


def floor(repeated: Answered) -> Floor:
    """The noise floor of a prefix that was asked with `repeat` (`interp.answer.ask`).

    Raises:
        ValueError: the prefix was not repeated.
    """
    alone, (first, *others) = repeated.alone, repeated.repeats or (None,)
    if alone is None or first is None:
        raise ValueError("the noise floor needs an answer that was asked with `repeat`")
    pairs = [(first, other) for other in (*others, alone)]
    moves = [m for a, b in pairs for m in _moves(a, b)]
    decided = [m for a, b in pairs for m in _decisions(a, b)]
    shifts = [abs(x - y) for a, b in pairs for x, y in zip(a.log_probs, b.log_probs, strict=True)]
    return Floor(
        packs=len(repeated.repeats),
        lead=max(x.moved(y) for x, y in [*moves, *decided]),
        log_prob=max(shifts, default=None),
        decision_moved=any(x.candidate != y.candidate for x, y in decided),
    )


def _moves(a: Answered, b: Answered) -> Iterable[tuple[Lead, Lead]]:
    return zip(a.leads, b.leads, strict=True)


def _decisions(a: Answered, b: Answered) -> Iterable[tuple[Lead, Lead]]:
    """Pairs of leads: of the labels, and of the written tokens up to the first that differs."""
    if len(a.log_probs) > 1:
        yield Lead.of(a.log_probs), Lead.of(b.log_probs)
    for x, y in zip(a.written, b.written, strict=False):
        yield x, y
        if x.candidate != y.candidate:
            return
