"""The middle region of a chain of steps, and deletion of a share of it (C2-Faith, section 3).

The paper counts steps from 1, `I = {i | ceil(0.3 N) <= i <= floor(0.9 N)}` over s_1 … s_N. Every
step index here counts from 0, so that the same region is ceil(0.3 N) - 1 … floor(0.9 N) - 1.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Deletion:
    """A chain some of whose middle steps were left out."""

    steps: tuple[str, ...]
    """The remaining steps, in the chain's order."""
    removed: tuple[int, ...]
    """Indices of the deleted steps in the whole chain, from 0, ascending."""
    n_middle: int
    """|I|, the number of steps that could have been deleted."""


def middle_region(n: int, low: float = 0.3, high: float = 0.9) -> range:
    """Indices from 0 of the steps of a chain of `n` that may be perturbed (C2-Faith, section 3).

    The bounds are taken as the decimals they are written as: 0.3 of 10 steps is 3, not the 2.9999…
    or 3.0000…4 of binary floats. The range is empty if no step lies between them.

    Raises:
        ValueError: `n` is negative, or the bounds are not 0 <= low <= high <= 1.
    """
    if n < 0 or not 0 <= low <= high <= 1:
        raise ValueError(
            f"middle region of {n} steps from {low} to {high}: give n >= 0 and "
            "0 <= low <= high <= 1"
        )
    first = max(math.ceil(_exact(low) * n), 1)
    last = math.floor(_exact(high) * n)
    return range(first - 1, max(last, first - 1))


def coverage_deletion(
    steps: Sequence[str], share: float, seed: int | str, low: float = 0.3, high: float = 0.9
) -> Deletion:
    """The chain without `ceil(share * |I|)` steps of its middle region, drawn uniformly.

    Args:
        share: the paper's deletion level d, in [0, 1]; read as the decimal it is written as.
        seed: seed of the draw; the same seed, steps, share and bounds give the same deletion.

    Raises:
        ValueError: `share` is outside [0, 1], or the bounds are no region.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"coverage deletion of {share}: give a share from 0 to 1")
    region = middle_region(len(steps), low, high)
    count = math.ceil(_exact(share) * len(region))
    rng = random.Random(f"coverage-{seed}-{share}")
    removed = tuple(sorted(rng.sample(region, count)))
    remaining = tuple(s for i, s in enumerate(steps) if i not in removed)
    return Deletion(remaining, removed, len(region))


def _exact(share: float) -> Fraction:
    return Fraction(str(share))
