"""Steps pooled over traces of all lengths by their relative place: step i of T at (i - 1/2) / T."""

from __future__ import annotations

BINS = 5
"""Equal parts of the reasoning."""


def steps_in(n_steps: int, part: int) -> list[int]:
    """The steps, from 0, that stand in one part of a reasoning of so many."""
    return [i for i in range(n_steps) if int((i + 0.5) / n_steps * BINS) == part]


def middle(part: int) -> float:
    """Where a part is drawn, in [0, 1]: the column `position`."""
    return (part + 0.5) / BINS
