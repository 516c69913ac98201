"""What each edit of a step did to the answer, as tables: over all steps, and by place."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import columns, mean, present, with_interval
from faithscope.experiments.studies.slrc.tables.outcomes import (
    EDITS,
    GROUP,
    flips,
    graded,
    groups,
    margins,
    no_room,
    within_floor,
)

OF_STEPS = tuple(edit for edit in EDITS if edit != "shuffle")
_EDIT_COLUMNS = [
    "n_items",
    "n_edits",
    "n_no_room",
    *with_interval("flip_rate"),
    "flips_within_floor",
    "total_variation",
    "log_odds_drop",
]


def edits_table(
    records: Iterable[Record], *, seed: int = 0, resamples: int = stats.RESAMPLES
) -> pd.DataFrame:
    """How often each edit changes the answer, and how far it moves the distribution.

    `flips_within_floor`: the share of the flips that were decided by no more than the noise floor
    of their item; NaN where none is known.

    `beyond_control`, for `regenerate` alone: its flip rate minus that of `control` on the same
    steps, with a bootstrap interval over items. What a model changes merely because it was
    made to go on anew is in both. `n_no_room` counts the steps that were not edited because the
    model has too few positions to write on from them: they are the last ones of the longest chains.
    """
    rows = [
        dict(zip(GROUP, key, strict=True)) | {"edit": edit} | row | beyond
        for key, of_group in groups(records)
        for edit in EDITS
        if (row := _edit_row((r, edit, None) for r in of_group))
        for beyond in [_beyond_control(of_group, edit, seed, resamples)]
    ]
    return pd.DataFrame(
        rows, columns=[*GROUP, "edit", *_EDIT_COLUMNS, *with_interval("beyond_control")]
    )


def edits_by_step_table(records: Iterable[Record]) -> pd.DataFrame:
    """As `edits_table`, by the number of counted steps and the place (from 1) of the edited one."""
    rows = []
    for key, of_group in groups(records):
        for n_steps in sorted({r["n_steps"] for r in of_group}):
            same = [r for r in of_group if r["n_steps"] == n_steps]
            for edit, at in itertools.product(OF_STEPS, range(n_steps)):
                row = _edit_row((r, edit, at) for r in same)
                if row:
                    place = {"edit": edit, "n_steps": n_steps, "step": at + 1}
                    rows.append(dict(zip(GROUP, key, strict=True)) | place | row)
    return pd.DataFrame(rows, columns=[*GROUP, "edit", "n_steps", "step", *_EDIT_COLUMNS])


def _edit_row(branches: Iterable[tuple[Record, str, int | None]]) -> dict[str, Any] | None:
    """One row over some records' branches of one edit: all of them, or the one at a step."""
    outcomes: list[bool] = []
    variations: list[float] = []
    drops: list[float] = []
    close: list[bool] = []
    n_items = n_no_room = 0
    for record, edit, at in branches:
        here = slice(None) if at is None else slice(at, at + 1)
        made = present(flips(record, edit)[here])
        n_items += bool(made)
        n_no_room += no_room(record, edit)[here].count(True)
        outcomes += made
        close += within_floor(record, flips(record, edit)[here], margins(record, edit)[here])
        variations += present(graded(record, edit, "tv")[here])
        drops += present(graded(record, edit, "log_odds")[here])
    if not outcomes:
        return None
    return {
        "n_items": n_items,
        "n_edits": len(outcomes),
        "n_no_room": n_no_room,
        **columns("flip_rate", stats.share(outcomes)),
        "flips_within_floor": mean(close),
        "total_variation": mean(variations),
        "log_odds_drop": mean(drops),
    }


def _beyond_control(
    of_group: Sequence[Record], edit: str, seed: int, resamples: int
) -> dict[str, float]:
    if edit != "regenerate":
        return columns("beyond_control", stats.NOTHING)
    pairs = [
        [
            (a, b)
            for a, b in zip(flips(r, edit), flips(r, "control"), strict=False)
            if a is not None and b is not None
        ]
        for r in of_group
    ]
    counts = [(sum(a for a, _ in p), sum(b for _, b in p), len(p)) for p in pairs if p]
    return columns(
        "beyond_control",
        stats.clustered_difference(np.array(counts).reshape(-1, 3), seed=seed, resamples=resamples),
    )
