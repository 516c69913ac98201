"""The measures of SLRC per model, task, framing and reading; agreement between them; steps; and
what each edit of a step did to the answer, over all steps and by place.

Every share is pooled over the counted steps (or shuffles, or items) of a group, with its
Wilson interval. `task` is the dataset of the records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.records import Record, has_tokens
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.tidy import columns, mean, present, with_interval
from faithscope.experiments.studies.slrc.tables.outcomes import (
    EDITS,
    LABEL_MASS,
    WAYS,
    WITH_BOUND,
    answers,
    flips,
    graded,
    margins,
    necessary,
    no_room,
    sufficient,
    within_floor,
)
from faithscope.probes.framing import FRAMINGS, READINGS


def _right(same: Sequence[Record]) -> list[bool]:
    return present(r.get("correct") for r in same)


def _right_as_written(same: Sequence[Record]) -> list[bool]:
    return [r.get("original") == r["gold"] for r in same if r.get("gold") is not None]


def _reordered(same: Sequence[Record]) -> list[bool]:
    return [flip for r in same for flip in present(flips(r, "shuffle"))]


def _within_floor(same: Sequence[Record]) -> list[bool]:
    return [
        x
        for r in same
        for edit in ("remove", "keep_only", "shuffle")
        for x in within_floor(r, flips(r, edit), margins(r, edit))
    ]


def _noise_floor(same: Sequence[Record]) -> float:
    floors = present(r.get("noise_floor") for r in same)
    return float(np.median(floors)) if floors else math.nan


slrc_table = kit.item_table(
    WAYS,
    kit.COUNTED,
    kit.shares({"accuracy": _right, "accuracy_written": _right_as_written}),
    kit.shares({"necessity": necessary, "sufficiency": sufficient}),
    kit.shares({"order_sensitivity": _reordered}),
    WITH_BOUND,
    kit.plain(
        n_steps=lambda same: sum(r["n_steps"] for r in same),
        mean_steps=lambda same: sum(r["n_steps"] for r in same) / len(same),
        n_unparsed=lambda same: sum(r.get("n_unparsed") or 0 for r in same),
        execution=lambda same: "+".join(sorted({str(r["execution"]) for r in same})),
        n_packs=lambda same: max(present(r.get("n_packs") for r in same), default=math.nan),
        noise_floor=_noise_floor,
        n_flips=lambda same: len(_within_floor(same)),
        flips_within_floor=lambda same: mean(_within_floor(same)),
    ),
    LABEL_MASS,
)
"""Necessity, sufficiency, order sensitivity, SLRC (SLRC paper, §4.1-4.2)."""


def _held_against_original(record: Record) -> Record:
    """What the record's answers say against the one that the model itself wrote, as in the paper;
    not against the one that it gives when it is asked again after its unedited reasoning."""
    original = record["original"]

    def changes(edit: str) -> list[bool | None]:
        """Whether each branch that was run answers otherwise."""
        pairs = zip(flips(record, edit), answers(record, edit), strict=True)
        return [None if flip is None else answer != original for flip, answer in pairs]

    alone_changes = changes("keep_only")
    return {
        **record,
        "necessary": changes("remove"),
        "sufficient": [None if x is None else not x for x in alone_changes],
        "reordered": changes("shuffle"),
    }


def _of_original(records: Sequence[Record]) -> Iterator[kit.Group]:
    """The generated answers alone: labels are scored of no answer as it was written."""
    for way, same in WAYS.of(records):
        known = [r for r in same if r.get("original") is not None]
        if way["reading"] == "generated" and known:
            yield way, [_held_against_original(r) for r in known]


slrc_original_table = kit.item_table(
    kit.Groups(WAYS.keys, _of_original),
    kit.COUNTED,
    kit.shares({"asked_again_differs": lambda rs: [r["baseline"] != r["original"] for r in rs]}),
    kit.shares({"necessity": necessary, "sufficiency": sufficient}),
    kit.shares({"order_sensitivity": _reordered}),
    WITH_BOUND,
)
"""The same with the model's own answer as what edits are held against (SLRC paper, §4.1): beside
`slrc_table` it says how far the paper's protocol is from ours on the same branches."""

_PAIRS = [
    *((f"generated~scored in {f}", (f, "generated"), (f, "scored")) for f in FRAMINGS),
    *((f"prefix~reprompt in {r}", ("prefix", r), ("reprompt", r)) for r in READINGS),
]


def _compared(records: Sequence[Record]) -> list[kit.Group]:
    """By model, task, edit and two ways of measuring: both outcomes of each branch they share."""
    ways: dict[tuple[str, str], dict[tuple[str, str], dict[str, Record]]] = {}
    for way, same in WAYS.of(records):
        of_way = {r["item"]: r for r in same}
        ways.setdefault((way["model"], way["task"]), {})[way["framing"], way["reading"]] = of_way
    groups = []
    for (model, task), of_ways in ways.items():
        for edit, (between, one, other) in itertools.product(("baseline", *EDITS), _PAIRS):
            left, right = of_ways.get(one, {}), of_ways.get(other, {})
            pairs: list[Record] = [
                {"one": a, "other": b}
                for item in left
                if item in right
                for a, b in _comparable(left[item], right[item], edit)
            ]
            if pairs:
                groups.append(
                    ({"model": model, "task": task, "edit": edit, "between": between}, pairs)
                )
    return groups


def _comparable(left: Record, right: Record, edit: str) -> list[tuple[Any, Any]]:
    """Whether the answer changed; of `baseline` the answer to the unedited reasoning itself."""
    if edit == "baseline":
        return [(left["baseline"], right["baseline"])]
    return _both(flips(left, edit), flips(right, edit))


def _both(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The pairs of which both are known."""
    pairs = zip(one, other, strict=False)
    return [(a, b) for a, b in pairs if a is not None and b is not None]


def _sides(pairs: Sequence[Record]) -> tuple[list[Any], list[Any]]:
    return [pair["one"] for pair in pairs], [pair["other"] for pair in pairs]


agreement_table = kit.item_table(
    kit.Groups(("model", "task", "edit", "between"), _compared),
    kit.plain(
        n=len,
        agreement=lambda pairs: stats.agreement(*_sides(pairs)),
        kappa=lambda pairs: stats.kappa(*_sides(pairs)),
    ),
)
"""Do the two readings, and the two framings, say the same, item by item and branch by branch?"""


def _counted(traces: Sequence[Record]) -> list[list[dict[str, Any]]]:
    return [[s for s in r["steps"] if s["counted"]] for r in traces]


def _numbers(traces: Sequence[Record]) -> np.ndarray:
    """Counted steps of the traces that have any."""
    return np.array([len(steps) for steps in _counted(traces) if steps], dtype=float)


def _of_numbers(statistic: Any, least: int = 1) -> Any:
    return lambda traces: (
        float(statistic(numbers)) if len(numbers := _numbers(traces)) >= least else math.nan
    )


def _length(part: str, traces: Sequence[Record]) -> float:
    return mean([s[part][1] - s[part][0] for steps in _counted(traces) for s in steps])


def _with_tokens(traces: Sequence[Record]) -> list[Record]:
    return [r for r in traces if has_tokens(r)]


steps_table = kit.item_table(
    kit.grouped("trace", counts=lambda r: True),
    kit.COUNTED,
    kit.shares({"multi_step": lambda traces: [len(steps) >= 2 for steps in _counted(traces)]}),
    kit.plain(
        n_steps=lambda traces: sum(map(len, _counted(traces))),
        mean_steps=_of_numbers(np.mean),
        sd_steps=_of_numbers(lambda x: x.std(ddof=1), least=2),
        median_steps=_of_numbers(np.median),
        min_steps=_of_numbers(np.min),
        max_steps=_of_numbers(np.max),
        mean_step_tokens=lambda traces: _length("tokens", _with_tokens(traces)),
        mean_step_chars=lambda traces: _length("chars", traces),
        mean_reasoning_tokens=lambda traces: mean(
            [len(r["reasoning_ids"]) for r in _with_tokens(traces)]
        ),
    ),
)
"""Counted steps per trace; the statistics are over traces with one (SLRC, Tables ED 4 and 6)."""

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
    # of each step, whether writing on from its corruption, and from itself, changed the answer
    against_control = _both(flips(record, "regenerate"), flips(record, "control"))
    return {
        "beyond": against_control if edit == "regenerate" else [],
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
