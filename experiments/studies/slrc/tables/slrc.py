"""Tables of SLRC per model, task, framing and reading, of agreement between these, and of steps.

Every share is pooled over the counted steps (or shuffles, or items) of a group, with its
Wilson interval. `task` is the dataset of the records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.aggregates import Number, Share
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.records import Record, Records, has_tokens, once
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.tables import Group, Groups
from faithscope.experiments.analysis.tidy import mean, mean_weighted, present
from faithscope.experiments.analysis.traces.endings import came_to_no_end, is_cut, is_repeating
from faithscope.experiments.studies.slrc.tables.branches import (
    CAPACITY,
    NECESSITY,
    REDUNDANCY_BOUND,
    SUFFICIENCY,
    both_known,
    close_of,
    differing,
    flips_of,
    keep_flips,
    outcomes_of,
    unlike,
    weights_of,
)
from faithscope.experiments.studies.slrc.tables.outcomes import EDITS, LABEL_MASS, WAYS
from faithscope.probes.framing import FRAMINGS, READINGS
from faithscope.probes.record import is_right

_OF_FLOOR = ("remove", "keep_only", "shuffle")


def _within_floor(same: Sequence[Record]) -> list[bool]:
    return [x for edit in _OF_FLOOR for x in outcomes_of(close_of(same, edit))]


def _share_within_floor(same: Sequence[Record]) -> float:
    close = [close_of(same, edit) for edit in _OF_FLOOR]
    weights = [weights_of(same, edit) for edit in _OF_FLOOR]
    known = [
        (np.ones(len(of)) if weight is None else weight)[~np.isnan(of)]
        for of, weight in zip(close, weights, strict=True)
    ]
    share = mean_weighted(_within_floor(same), unlike(np.concatenate(known)))
    return math.nan if share is None else share


def _noise_floor(same: Sequence[Record]) -> float:
    floors = present(r.get("noise_floor") for r in same)
    return float(np.median(floors)) if floors else math.nan


ASKED_AGAIN_DIFFERS = Share(
    "asked_again_differs",
    lambda same: [r["baseline"] != r["original"] for r in same if r.get("original") is not None],
    label="asked again, another answer",
    meaning="Items that answer otherwise than they state when asked again after their unedited "
    "reasoning: in the generated reading the greedy answer, in the scored one the forced choice. "
    "Edits are held against what they answer then.",
)
ORDER_SENSITIVITY = Share(
    "order_sensitivity",
    lambda same: outcomes_of(flips_of(same, "shuffle").values),
    meaning="Share of the shuffles of the steps that change the answer (§4.1).",
)
OF_EDITS = (
    ASKED_AGAIN_DIFFERS,
    NECESSITY,
    SUFFICIENCY,
    ORDER_SENSITIVITY,
    CAPACITY,
    REDUNDANCY_BOUND,
)
ACCURACY = Share(
    "accuracy",
    lambda same: present(r.get("correct") for r in same),
    label="accuracy, asked again",
    meaning="Items whose answer is right when it is asked for once more after the unedited "
    "reasoning: what edits are held against.",
)
MEAN_STEPS = Number(
    "mean_steps",
    lambda same: sum(r["n_steps"] for r in same) / len(same),
    "steps per item",
    "Mean number of steps of an item.",
)
FLIPS_WITHIN_FLOOR = Number(
    "flips_within_floor",
    _share_within_floor,
    meaning="Share of the flips that are decided by no more than the noise floor.",
)
SLRC = aggregates.item_table(
    "slrc",
    WAYS,
    aggregates.COUNTED,
    ACCURACY,
    Share(
        "accuracy_written",
        lambda same: present(is_right(r.get("original"), r.get("gold")) for r in same),
        label="accuracy, as written",
        meaning="Items of which the answer that the model itself wrote is right, of those "
        "where it can be read.",
    ),
    *OF_EDITS,
    aggregates.N_STEPS,
    MEAN_STEPS,
    Number(
        "n_unparsed",
        lambda same: sum(r.get("n_unparsed") or 0 for r in same),
        "unparsed",
        "Replies that no answer could be read from.",
    ),
    Number(
        "n_unparsed_written",
        lambda same: sum(r.get("gold") is not None and r.get("original") is None for r in same),
        "unparsed, as written",
        "Items with a right answer in whose own reply no answer could be read: in no accuracy.",
    ),
    Number(
        "execution",
        lambda same: "+".join(sorted({str(r["execution"]) for r in same})),
        meaning="How branches were run: packed in one forward, or one by one in a loop.",
    ),
    Number(
        "n_packs",
        lambda same: max(present(r.get("n_packs") for r in same), default=math.nan),
        "packs",
        "The most that one item's arms fell into.",
    ),
    Number(
        "noise_floor", _noise_floor, unit="nats", meaning="Median over items; see `probes.floor`."
    ),
    Number(
        "n_flips",
        lambda same: len(_within_floor(same)),
        "flips",
        "Flips by removal, by keeping one step alone and by shuffling, of known margin.",
    ),
    FLIPS_WITHIN_FLOOR,
    LABEL_MASS,
    caption="SLRC per model, task, framing and reading",
)
"""Necessity, sufficiency, order sensitivity and SLRC (SLRC paper, §4.1-4.2)."""


def _held_against_original(known: Sequence[Record]) -> Sequence[Record]:
    """Records whose flips are redefined as in the paper: an answer counts as changed if it differs
    from the one that the model wrote originally, not from the one it gives when asked again."""
    held = Records(known)
    for edit in ("remove", "keep_only", "shuffle"):
        keep_flips(held, edit, differing(known, edit))
    return held


def _of_original(records: Sequence[Record]) -> Iterator[Group]:
    """Groups of generated readings only, since a scored reading has no originally written
    answer."""
    for way, same in WAYS.of(records):
        known = [r for r in same if r.get("original") is not None]
        if way["reading"] == "generated" and known:
            yield way, _held_against_original(known)


SLRC_ORIGINAL = aggregates.item_table(
    "slrc_original",
    Groups(WAYS.by, _of_original),
    aggregates.COUNTED,
    *OF_EDITS,
    caption="SLRC against the answer that the model itself wrote",
    folded="Held against the answer as written, as in the paper",
)
"""SLRC with the model's originally written answer as the reference (SLRC paper, §4.1); beside table
`slrc` it shows the difference between the paper's protocol and ours on the same branches."""

_PAIRS = [
    *((f"generated~scored in {f}", (f, "generated"), (f, "scored")) for f in FRAMINGS),
    *((f"prefix~reprompt in {r}", ("prefix", r), ("reprompt", r)) for r in READINGS),
]


def _compared(records: Sequence[Record]) -> Iterator[Group]:
    """Groups by model, task, edit and pair of ways of measuring: both outcomes of every shared
    branch."""
    ways: dict[tuple[str, str], dict[tuple[str, str], Sequence[Record]]] = {}
    for way, same in WAYS.of(records):
        ways.setdefault((way["model"], way["task"]), {})[way["framing"], way["reading"]] = same
    for (model, task), of_ways in ways.items():
        for edit, (between, one, other) in itertools.product(("baseline", *EDITS), _PAIRS):
            left, right = _comparable(of_ways.get(one, ()), of_ways.get(other, ()), edit)
            if left:
                key = {"model": model, "task": task, "edit": edit, "between": between}
                yield key, [{"one": left, "other": right}]


def _comparable(
    one: Sequence[Record], other: Sequence[Record], edit: str
) -> tuple[list[Any], list[Any]]:
    """Outcomes of an edit's shared branches in two ways: whether the answer changed, or for
    `baseline` the answer itself."""
    place = {r["item"]: i for i, r in enumerate(other)}
    last = {r["item"]: i for i, r in enumerate(one)}
    shared = [item for item in last if item in place]
    left, right = ([at[item] for item in shared] for at in (last, place))
    if edit == "baseline":
        return [one[i]["baseline"] for i in left], [other[i]["baseline"] for i in right]
    of_both = (
        flips_of(records, edit).take(np.array(rows, dtype=np.int64))
        for records, rows in ((one, left), (other, right))
    )
    a, b, _ = both_known(*of_both)
    return a.tolist(), b.tolist()


EDIT = Column(
    "edit", meaning="What was done to the reasoning: a step removed, kept alone, and so on."
)
AGREEMENT = aggregates.item_table(
    "agreement",
    Groups(
        (
            "model",
            "task",
            EDIT,
            Column(
                "between",
                "compared",
                "The two ways of measuring that are compared: two readings in one framing, or two "
                "framings in one reading.",
            ),
        ),
        _compared,
    ),
    Number(
        "n",
        lambda both: len(both[0]["one"]),
        "pairs",
        "Pairs of outcomes of the two ways, of one branch each; of `baseline`, of one item.",
    ),
    Number(
        "agreement",
        lambda both: stats.agreement(both[0]["one"], both[0]["other"]),
        meaning="Share of the pairs of outcomes that are the same.",
    ),
    Number(
        "kappa",
        lambda both: stats.kappa(both[0]["one"], both[0]["other"]),
        meaning="Cohen's: agreement beyond what chance gives.",
    ),
    caption="Agreement between readings and framings",
    folded="Agreement and Cohen’s kappa for every edit",
)
"""Agreement of the two readings, and of the two framings, item by item and branch by branch."""


def _counted(traces: Sequence[Record]) -> list[list[dict[str, Any]]]:
    make = lambda: [[s for s in r["steps"] if s["counted"]] for r in traces]  # noqa: E731
    return once(traces, "counted steps", make)


def _numbers(traces: Sequence[Record]) -> np.ndarray:
    """Numbers of counted steps, of the traces that have any."""
    return np.array([len(steps) for steps in _counted(traces) if steps], dtype=float)


def _of_numbers(statistic: Any, least: int = 1) -> Any:
    return lambda traces: (
        float(statistic(numbers)) if len(numbers := _numbers(traces)) >= least else math.nan
    )


def _length(part: str, traces: Sequence[Record]) -> float:
    return mean([s[part][1] - s[part][0] for steps in _counted(traces) for s in steps])


def _with_tokens(traces: Sequence[Record]) -> list[Record]:
    return [r for r in traces if has_tokens(r)]


STEPS = aggregates.item_table(
    "steps",
    aggregates.grouped("trace", counts=lambda r: True),
    aggregates.COUNTED,
    Share(
        "multi_step",
        lambda traces: [len(steps) >= 2 for steps in _counted(traces)],
        label="two or more steps",
        meaning="Share of the items with two steps or more.",
    ),
    Number(
        "cut",
        lambda traces: mean([is_cut(r) for r in traces]),
        "cut off",
        "Share of the chains that the limit of tokens ended.",
    ),
    Number(
        "repeating",
        lambda traces: mean([is_repeating(r) for r in traces]),
        meaning="Share of the chains that say their own steps again.",
    ),
    Number(
        "without_end",
        lambda traces: mean([came_to_no_end(r) for r in traces]),
        "came to no end",
        "Share of the chains that were cut or repeat.",
    ),
    replace(aggregates.N_STEPS, compute=lambda traces: sum(map(len, _counted(traces)))),
    replace(MEAN_STEPS, compute=_of_numbers(np.mean)),
    Number(
        "sd_steps",
        _of_numbers(lambda x: x.std(ddof=1), least=2),
        "s.d.",
        "Standard deviation of the number of steps over items.",
    ),
    Number("median_steps", _of_numbers(np.median), "median", "Median number of steps of an item."),
    Number("min_steps", _of_numbers(np.min), "min", "Least number of steps of an item."),
    Number("max_steps", _of_numbers(np.max), "max", "Greatest number of steps of an item."),
    Number(
        "mean_step_tokens",
        lambda traces: _length("tokens", _with_tokens(traces)),
        "tokens per step",
        "Mean number of tokens of a step.",
    ),
    Number(
        "mean_step_chars",
        lambda traces: _length("chars", traces),
        "characters per step",
        "Mean number of characters of a step.",
    ),
    Number(
        "mean_reasoning_tokens",
        lambda traces: mean([len(r["reasoning_ids"]) for r in _with_tokens(traces)]),
        "tokens of reasoning",
        "Mean number of tokens of an item's reasoning.",
    ),
    caption="Counted steps per trace",
    folded="Steps per trace",
)
"""Counted steps per trace; the statistics are over traces with at least one (SLRC, Tables ED 4 and
6)."""
