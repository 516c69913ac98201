"""What each edit of a step did to the answer, as tables: over all steps, and by place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.tidy import columns, mean, present, with_interval
from faithscope.experiments.studies.slrc.tables.outcomes import (
    EDITS,
    WAYS,
    flips,
    graded,
    margins,
    no_room,
    within_floor,
)

OF_STEPS = tuple(edit for edit in EDITS if edit != "shuffle")


def _of_edits(records: Sequence[Record]) -> Iterator[kit.Group]:
    for way, same in WAYS.of(records):
        for edit in EDITS:
            branches = [_branches(r, edit) for r in same]
            if any(b["flips"] for b in branches):
                yield way | {"edit": edit}, branches


def _of_places(records: Sequence[Record]) -> Iterator[kit.Group]:
    """By the number of counted steps, too, and the place (from 1) of the edited one."""
    for way, same in WAYS.of(records):
        for n_steps in sorted({r["n_steps"] for r in same}):
            of_length = [r for r in same if r["n_steps"] == n_steps]
            for edit, at in itertools.product(OF_STEPS, range(n_steps)):
                branches = [_branches(r, edit, slice(at, at + 1)) for r in of_length]
                if any(b["flips"] for b in branches):
                    yield way | {"edit": edit, "n_steps": n_steps, "step": at + 1}, branches


def _branches(record: Record, edit: str, at: slice = slice(None)) -> Record:
    """What one item's branches of an edit did."""
    flipped = flips(record, edit)[at]
    return {
        "beyond": _against_control(record) if edit == "regenerate" else [],
        "flips": present(flipped),
        "no_room": no_room(record, edit)[at].count(True),
        "close": within_floor(record, flipped, margins(record, edit)[at]),
        "tv": present(graded(record, edit, "tv")[at]),
        "log_odds": present(graded(record, edit, "log_odds")[at]),
    }


def _all(field: str) -> Callable[[Sequence[Record]], list[Any]]:
    return lambda branches: [x for b in branches for x in b[field]]


_OUTCOMES = (
    kit.plain(
        n_items=lambda branches: sum(bool(b["flips"]) for b in branches),
        n_edits=lambda branches: len(_all("flips")(branches)),
        n_no_room=lambda branches: sum(b["no_room"] for b in branches),
    ),
    kit.shares({"flip_rate": _all("flips")}),
    kit.plain(
        flips_within_floor=lambda branches: mean(_all("close")(branches)),
        total_variation=lambda branches: mean(_all("tv")(branches)),
        log_odds_drop=lambda branches: mean(_all("log_odds")(branches)),
    ),
)


def _against_control(record: Record) -> list[tuple[bool, bool]]:
    """Of each step, whether writing on from its corruption, and from itself, changed the answer."""
    pairs = zip(flips(record, "regenerate"), flips(record, "control"), strict=False)
    return [(a, b) for a, b in pairs if a is not None and b is not None]


def _beyond(branches: Sequence[Record], analysis: kit.Analysis) -> dict[str, float]:
    """`regenerate` minus `control` on the same steps; of nothing where no control was run."""
    pairs = [b["beyond"] for b in branches if b["beyond"]]
    counts = [(sum(a for a, _ in p), sum(b for _, b in p), len(p)) for p in pairs]
    difference = stats.clustered_difference(
        np.array(counts).reshape(-1, 3), seed=analysis.seed, resamples=analysis.resamples
    )
    return columns("beyond_control", difference)


WAY = (*WAYS.keys, "edit")
edits_table = kit.item_table(
    kit.Groups(WAY, _of_edits),
    *_OUTCOMES,
    kit.Stat(tuple(with_interval("beyond_control")), _beyond),
)
"""How often each edit changes the answer, and how far it moves the distribution."""
edits_by_step_table = kit.item_table(kit.Groups((*WAY, "n_steps", "step"), _of_places), *_OUTCOMES)
