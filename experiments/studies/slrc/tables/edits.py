"""Tables of how each edit of the reasoning changes the answer: over all steps, and by place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.aggregates import Number, Numbers, Share
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.records import Place, Record, once, place_of
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.tables import Group, Groups
from faithscope.experiments.analysis.tidy import columns, mean_weighted
from faithscope.experiments.studies.slrc.tables.branches import (
    Ragged,
    both_known,
    close_of,
    flips_of,
    measure_of,
    numbers_of,
    outcomes_of,
    per_record,
    unlike,
    weights_of,
)
from faithscope.experiments.studies.slrc.tables.outcomes import EDITS, NOT_OF_STEPS, WAYS, no_room
from faithscope.experiments.studies.slrc.tables.slrc import EDIT, FLIPS_WITHIN_FLOOR
from faithscope.interventions import FUNCTIONS

OF_STEPS = tuple(edit for edit in EDITS if edit not in NOT_OF_STEPS)


def _of_edits(records: Sequence[Record]) -> Iterator[Group]:
    for way, same in WAYS.of(records):
        for edit in EDITS:
            branches = _branches(same, edit)
            if outcomes_of(branches["flips"]):
                yield way | {"edit": edit}, [{**branches, "beyond": _beyond_control(same, edit)}]


def _of_places(records: Sequence[Record]) -> Iterator[Group]:
    """Groups of branches by way of measuring, edit, number of counted steps, and place of the step
    (from 1)."""
    for way, same in WAYS.of(records):
        n_steps = np.array([r["n_steps"] for r in same], dtype=np.int64)
        by_place = lambda record, at, n=n_steps: np.stack([n[record], at], axis=1)  # noqa: E731
        of_edits = {edit: _split(_branches(same, edit), by_place) for edit in OF_STEPS}
        for n in np.unique(n_steps).tolist():
            for edit, at in itertools.product(OF_STEPS, range(n)):
                branches = of_edits[edit].get((n, at))
                if branches and outcomes_of(branches["flips"]):
                    yield way | {"edit": edit, "n_steps": n, "step": at + 1}, [branches]


def _of_functions(records: Sequence[Record]) -> Iterator[Group]:
    """Groups of branches by way of measuring, edit, and function of the step."""
    functions = once(records, "functions of steps", lambda: _functions(records))
    for way, same in WAYS.of(records):
        of_steps = Ragged.of([functions.get(place_of(r), [math.nan] * r["n_steps"]) for r in same])
        starts = np.cumsum(of_steps.lengths) - of_steps.lengths
        by_function = lambda record, at, of=of_steps.values, start=starts: (  # noqa: E731
            of[start[record] + at][:, None]
        )
        of_edits = {edit: _split(_branches(same, edit), by_function) for edit in OF_STEPS}
        for edit, i in itertools.product(OF_STEPS, range(len(FUNCTIONS))):
            branches = of_edits[edit].get((i,))
            if branches and outcomes_of(branches["flips"]):
                yield way | {"edit": edit, "function": FUNCTIONS[i]}, [branches]


def _functions(records: Sequence[Record]) -> dict[Place, list[int]]:
    """Place of a trace -> number of the function of each of its counted steps."""
    return {
        place_of(r): [FUNCTIONS.index(s["function"]) for s in r["steps"] if s["counted"]]
        for r in records
        if r["probe"] == "trace" and all("function" in s for s in r["steps"])
    }


def _branches(same: Sequence[Record], edit: str) -> dict[str, np.ndarray]:
    """Outcomes of an edit's branches, one array per quantity; NaN where a branch is missing."""
    flipped, weights = flips_of(same, edit), weights_of(same, edit)
    # A record without room for any of its edits has no flips, but reasons.
    lacking = Ragged.of([no_room(r, edit) for r in same])
    return {
        "record": flipped.record,
        "at": flipped.at,
        "flips": flipped.values,
        "weight": np.ones(len(flipped.values)) if weights is None else weights,
        "close": close_of(same, edit),
        "tv": measure_of(same, edit, "tv"),
        "log_odds": measure_of(same, edit, "log_odds"),
        "no_room_record": lacking.record[lacking.values == 1],
        "no_room_at": lacking.at[lacking.values == 1],
    }


def _split(
    branches: dict[str, np.ndarray], key: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> dict[tuple[float, ...], dict[str, np.ndarray]]:
    """Splits branches by a key.

    Args:
        key: function from the records of branches and their places in them to (branches, K) keys.
    """
    parts: dict[tuple[float, ...], dict[str, np.ndarray]] = {}
    for prefix in ("", "no_room_"):
        record, at = branches[f"{prefix}record"], branches[f"{prefix}at"]
        own = {k: v for k, v in branches.items() if k.startswith("no_room_") == bool(prefix)}
        keys, of_key = np.unique(key(record, at), axis=0, return_inverse=True)
        order = np.argsort(of_key, kind="stable")
        bounds = np.searchsorted(of_key[order], np.arange(1, len(keys)))
        split = {name: np.split(values[order], bounds) for name, values in own.items()}
        for i, own_key in enumerate(map(tuple, keys.tolist())):
            part = parts.setdefault(own_key, {k: v[:0] for k, v in branches.items()})
            part |= {name: values[i] for name, values in split.items()}
    return parts


def _weights(branches: Sequence[Record], of: str) -> np.ndarray | None:
    """Weights of the branches with a value; None if all count alike."""
    return unlike(branches[0]["weight"][~np.isnan(branches[0][of])])


def _mean(branches: Sequence[Record], of: str) -> float:
    value = mean_weighted(numbers_of(branches[0][of]), _weights(branches, of))
    return math.nan if value is None else value


_OUTCOMES = (
    Number(
        "n_items",
        lambda b: len(np.unique(b[0]["record"][~np.isnan(b[0]["flips"])])),
        "items",
        "Items in the row.",
    ),
    Number(
        "n_edits",
        lambda b: len(outcomes_of(b[0]["flips"])),
        "edits",
        "Edited branches in the row.",
    ),
    Number(
        "n_no_room",
        lambda b: len(b[0]["no_room_at"]),
        "edits without room",
        "Edits that were left out: no positions left to write on from the step.",
    ),
    Share(
        "flip_rate",
        lambda b: outcomes_of(b[0]["flips"]),
        label="answer changed",
        meaning="Share of the edits after which the answer is another.",
        weights=lambda b: _weights(b, "flips"),
    ),
    replace(FLIPS_WITHIN_FLOOR, compute=lambda b: _mean(b, "close")),
    Number(
        "total_variation",
        lambda b: _mean(b, "tv"),
        meaning="How far the distribution over the answers moves.",
    ),
    Number(
        "log_odds_drop",
        lambda b: _mean(b, "log_odds"),
        "log-odds drop",
        "Log-odds that the answer loses by the edit.",
        "nats",
    ),
)


def _beyond(branches: Sequence[Record], how: aggregates.Analysis) -> dict[str, float]:
    """Flip rate of `regenerate` minus that of `control` on the same steps; NaN without a
    control."""
    difference = stats.clustered_difference(
        branches[0]["beyond"], seed=how.seed, resamples=how.resamples
    )
    return columns("beyond_control", difference)


def _beyond_control(same: Sequence[Record], edit: str) -> np.ndarray:
    """Counts (records, 3) over steps with both edits: flips when continuing from the corruption,
    flips when continuing from the step itself, and steps."""
    if edit != "regenerate":
        return np.zeros((0, 3), dtype=np.int64)
    flipped, weights = flips_of(same, edit), weights_of(same, edit)
    one, other, at = both_known(flipped, flips_of(same, "control"))
    of = flipped.record[at], len(same), None if weights is None else weights[at]
    changed, n = per_record(one, *of)
    return np.stack([changed, per_record(other, *of)[0], n], axis=1)


EDITS_TABLE = aggregates.item_table(
    "edits",
    Groups((*WAYS.by, EDIT), _of_edits),
    *_OUTCOMES,
    Numbers(
        (
            Column(
                "beyond_control",
                meaning="How much more often writing on from a corruption changes the answer than "
                "writing on from the step itself.",
                interval=True,
            ),
        ),
        _beyond,
    ),
    caption="How often each edit changed the answer",
    folded="Every edit, framing and reading",
)
"""How often each edit changes the answer, and how far it moves the distribution."""
EDITS_BY_STEP = aggregates.item_table(
    "edits_by_step",
    Groups(
        (
            *WAYS.by,
            EDIT,
            Column("n_steps", "steps", "Number of steps of the items in the row."),
            Column("step", meaning="Place of the step among those that edits may touch, from 1."),
        ),
        _of_places,
    ),
    *_OUTCOMES,
    caption="How often each edit changed the answer, by place of the step",
    folded="By place of the step",
)
EDITS_BY_FUNCTION = aggregates.item_table(
    "edits_by_function",
    Groups(
        (
            *WAYS.by,
            EDIT,
            Column(
                "function",
                "what the step does",
                "By its words: it takes back what was said, checks, states the answer, says what "
                "the question says, computes, says what is to be done, or none of these "
                "(`interventions.function_of`).",
            ),
        ),
        _of_functions,
    ),
    *_OUTCOMES,
    caption="How often each edit changed the answer, by what the step does",
    folded="By what the step does",
)
