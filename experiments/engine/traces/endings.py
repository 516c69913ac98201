"""Faults of chains: cut at the token limit, repeating, without an answer, or without words.

A measurement on a chain with such a fault says as much about the token limit, or about a model that
has lost its thread, as about how the model uses its reasoning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from faithscope.experiments.engine.tallies.chain_faults import (
    ANSWERLESS,
    CUT,
    DEGENERATE,
    REPEATING,
)

Record = Mapping[str, Any]
REPEATED = 1 / 3
"""Share of counted steps that repeat an earlier step word for word, from which a chain counts as
repeating. The threshold is ours; ordinary prose repeats a step now and then."""
TURNS, LONGEST = 3, 120
"""A chain also counts as repeating if it ends in `TURNS` copies of a string of at most `LONGEST`
characters, since a loop need not end its sentences."""
SHORTEST = 8
"""Minimum length in characters of such a repeated string."""
LEGIBLE = 1 / 3
"""Share of letters and digits among the visible characters of a chain, below which it counts as
degenerate. The threshold is ours; formulas in LaTeX lie above it."""


def is_cut(trace: Record) -> bool:
    """Whether the token limit ended the response."""
    return trace.get("finish") == "length"


def is_repeating(trace: Record) -> bool:
    """Whether a third of the counted steps repeat earlier ones, or the text ends in a loop.

    A record without its texts must hold the answer in the field `repeating`.
    """
    if (known := trace.get(REPEATING)) is not None:
        return known
    return repeats("".join(trace["pieces"]), (s["text"] for s in trace["steps"] if s["counted"]))


def repeats(text: str, steps: Iterable[str] = ()) -> bool:
    """Whether a third of the steps repeat earlier ones, or the text ends in a loop."""
    plain = [" ".join(step.split()).casefold() for step in steps]
    if plain and len(plain) - len(set(plain)) >= REPEATED * len(plain):
        return True
    end = text.rstrip()[-TURNS * LONGEST :]
    return any(
        end[-n - 1] == end[-1] and end.endswith(end[-n:] * TURNS)
        for n in range(SHORTEST, len(end) // TURNS + 1)
    )


def is_degenerate(text: str) -> bool:
    """Whether a chain holds no text, or hardly any letters and digits."""
    visible = "".join(text.split())
    return sum(map(str.isalnum, visible)) < LEGIBLE * len(visible) or not visible


def came_to_no_end(trace: Record) -> bool:
    """Whether a chain was cut at the token limit or repeats itself."""
    return is_cut(trace) or is_repeating(trace)


def faults_of_trace(trace: Record) -> frozenset[str]:
    """Faults of a stored trace, by their names in `tallies.chain_faults`.

    The answer of a given chain is unknown, not missing, where nobody says of which kind answers
    are.
    """
    given = trace["origin"].get("given")
    asked = given is None or given.get("kind") is not None
    found = {
        CUT: is_cut(trace),
        REPEATING: is_repeating(trace),
        ANSWERLESS: asked and trace.get("answer") is None,
        DEGENERATE: is_degenerate("".join(trace["pieces"])),
    }
    return frozenset(name for name, has in found.items() if has)
