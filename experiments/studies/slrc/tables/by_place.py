"""Steps pooled over traces of all lengths by their relative place: step i of T at (i - 1/2) / T."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import item_means, mean_present, with_interval

BINS = 5
"""Equal parts of the reasoning."""


def steps_in(n_steps: int, part: int) -> list[int]:
    """The steps, from 0, that stand in one part of a reasoning of so many."""
    return [i for i in range(n_steps) if int((i + 0.5) / n_steps * BINS) == part]


def middle(part: int) -> float:
    """Where a part is drawn, in [0, 1]: the column `position`."""
    return (part + 0.5) / BINS


def by_place_table(
    groups: Iterable[tuple[dict[str, Any], Sequence[Record]]],
    key: Sequence[str],
    fields: Mapping[str, str],
    seed: int,
    resamples: int,
) -> pd.DataFrame:
    """Means over items of what their steps in each fifth of the reasoning have.

    An item counts once in a fifth, with the mean of its steps there: `n` items with `n_steps`.

    Args:
        groups: the columns of `key`, and the records that they are of.
        fields: column -> a list of the record with a value per step, None where it has none.
    """
    made = []
    for place, same in groups:
        for part in range(BINS):
            here = [(r, steps) for r in same if (steps := steps_in(r["n_steps"], part))]
            if not here:
                continue
            row = place | {"position": middle(part), "n": len(here)}
            row["n_steps"] = sum(len(steps) for _, steps in here)
            of_items = {
                name: [mean_present(r[field][i] for i in steps) for r, steps in here]
                for name, field in fields.items()
            }
            made.append(row | item_means(of_items, seed=seed, resamples=resamples))
    return pd.DataFrame(made, columns=[*key, "position", "n", "n_steps", *with_interval(*fields)])
