"""How a chain ended: by itself, cut at the limit of tokens, or going round in circles.

What is measured of a chain that came to no end is a fact of the limit as much as of the model.
"""

from __future__ import annotations

from faithscope.experiments.analysis.records import Record

REPEATING = "repeating"
REPEATED = 1 / 3
"""Share of a chain's counted steps that say an earlier one again, word for word, from which the
chain counts as repeating. A choice of ours: prose repeats a step now and then."""
TURNS, LONGEST = 3, 120
"""A chain repeats, too, where it ends in so many copies of a stretch of at most so many
characters: a loop need not end its sentences."""
SHORTEST = 8


def is_cut(trace: Record) -> bool:
    """Whether the limit of tokens ended the response."""
    return trace.get("finish") == "length"


def is_repeating(trace: Record) -> bool:
    """Whether a third of the counted steps say earlier ones again, or the text ends in a loop.

    A record that has lost its texts has the answer as `repeating`.
    """
    if (known := trace.get(REPEATING)) is not None:
        return known
    steps = [" ".join(s["text"].split()).casefold() for s in trace["steps"] if s["counted"]]
    if steps and len(steps) - len(set(steps)) >= REPEATED * len(steps):
        return True
    end = "".join(trace["pieces"]).rstrip()[-TURNS * LONGEST :]
    return any(end.endswith(end[-n:] * TURNS) for n in range(SHORTEST, len(end) // TURNS + 1))


def came_to_no_end(trace: Record) -> bool:
    """Whether a chain was cut, or repeats itself."""
    return is_cut(trace) or is_repeating(trace)
