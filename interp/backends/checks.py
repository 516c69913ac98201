"""Checks that every backend makes of prompts and of the continuations that come back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from faithscope.interp.backends import BackendError
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Generation

LEADS = 2
"""Number of log-probs that tell a lead: of the likeliest token and of its best rival."""


def gap_of(log_probs: Iterable[float]) -> float:
    """The greatest minus the second greatest of a place's log-probs, in nats."""
    best, second = sorted(log_probs, reverse=True)[:2]
    return best - second


def check_room(
    name: str, prompts: Sequence[Sequence[int]], limits: Sequence[int], max_positions: int | None
) -> None:
    """Check before the first request that every prompt fits, so that no night ends at its longest.

    Raises:
        UserError: a prompt is empty, or with as many new tokens as it may have passes the model's
            positions.
    """
    for i, (prompt, new) in enumerate(zip(prompts, limits, strict=True)):
        if not prompt:
            raise UserError(f"prompt {i} for {name} is empty; give at least one token")
        if max_positions is not None and len(prompt) + new > max_positions:
            raise UserError(
                f"prompt {i} has {len(prompt)} tokens; with max_new_tokens {new} that passes the "
                f"{max_positions} positions of {name}; lower max_new_tokens, or serve it with more"
            )


def written(
    index: int,
    who: str,
    ids: Sequence[int],
    finish: str | None,
    stop_ids: Collection[int],
    most: int,
    seconds: float,
    gaps: Sequence[float] = (),
) -> Generation:
    """A `Generation` of what vLLM wrote, its end token taken off, checked against the request.

    Raises:
        BackendError: the text ended for another reason than an end token or `most` tokens, or has
            leads of some of its tokens only.
    """
    ids, ends, gaps = tuple(ids), set(stop_ids), tuple(gaps)
    if gaps and len(gaps) != len(ids):
        raise BackendError(
            f"prompt {index}: {who} gave the leads of {len(gaps)} of {len(ids)} tokens"
        )
    if finish == "stop" and ids and ids[-1] in ends and not ends & set(ids[:-1]):
        return Generation(ids[:-1], "stop", ids[-1], seconds, gaps)
    if finish == "length" and len(ids) == most and not ends & set(ids):
        return Generation(ids, "length", None, seconds, gaps)
    last = ids[-1] if ids else None
    raise BackendError(
        f"prompt {index}: {who} ended with {finish!r} after {len(ids)} of {most} tokens, the last "
        f"{last}, where only an end token ({sorted(ends)}) or the limit may end it; does the "
        "server set limits or stops of its own?"
    )
