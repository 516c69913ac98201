"""Endings of chains: ended by the model, cut at the token limit, or repeating itself.

A measurement on a chain that came to no end says as much about the token limit as about the model.
"""

from __future__ import annotations

from faithscope.experiments.analysis.stored_records import Record

REPEATING = "repeating"
REPEATED = 1 / 3
"""Share of counted steps that repeat an earlier step word for word, from which a chain counts as
repeating. The threshold is ours; ordinary prose repeats a step now and then."""
TURNS, LONGEST = 3, 120
"""A chain also counts as repeating if it ends in `TURNS` copies of a string of at most `LONGEST`
characters, since a loop need not end its sentences."""
SHORTEST = 8
"""Minimum length in characters of such a repeated string."""


def is_cut(trace: Record) -> bool:
    """Whether the token limit ended the response."""
    return trace.get("finish") == "length"


def is_repeating(trace: Record) -> bool:
    """Whether a third of the counted steps repeat earlier ones, or the text ends in a loop.

    A record without its texts must hold the answer in the field `repeating`.
    """
    if (known := trace.get(REPEATING)) is not None:
        return known
    steps = [" ".join(s["text"].split()).casefold() for s in trace["steps"] if s["counted"]]
    if steps and len(steps) - len(set(steps)) >= REPEATED * len(steps):
        return True
    end = "".join(trace["pieces"]).rstrip()[-TURNS * LONGEST :]
    return any(end.endswith(end[-n:] * TURNS) for n in range(SHORTEST, len(end) // TURNS + 1))


def came_to_no_end(trace: Record) -> bool:
    """Whether a chain was cut at the token limit or repeats itself."""
    return is_cut(trace) or is_repeating(trace)
