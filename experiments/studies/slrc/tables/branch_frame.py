"""The branches of all edits as one frame, a row each, and the scores of SLRC made of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from faithscope.experiments.analysis.cells import (
    Numbers,
    Share,
    all_of,
    one_row,
    rows_known,
    rows_with,
)
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import inclusion_of
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import (
    Estimate,
    over,
    percentiles,
    resampled_totals,
)
from faithscope.experiments.analysis.stored_records import Place, Record, place_of
from faithscope.experiments.analysis.tidy import columns, numbers
from faithscope.experiments.studies.slrc.tables.outcomes import (
    ANSWERS,
    BASELINE,
    EDITS,
    FRAMING,
    NOT_OF_STEPS,
    flips,
    measured,
    no_room,
    redundancy,
)
from faithscope.interventions import FUNCTIONS
from faithscope.probes.framing import FRAMINGS, READINGS
from faithscope.probes.record import is_right
from faithscope.probes.slrc_edits import BY_NAME

WAY = ("model", "task", FRAMING, "reading")
"""Keys of tables with a row per way of measuring a model on a task."""
KEYS = ("model", "task", "framing", "reading")
OF_UNEDITED: Mapping[str, Callable[[Record], Any]] = {
    "correct": lambda r: r.get("correct"),
    "right": lambda r: is_right(r.get("original"), r.get("gold")),
    "unread": lambda r: r.get("gold") is not None and r.get("original") is None,
    "n_unparsed": lambda r: r.get("n_unparsed") or 0,
    "n_packs": lambda r: r.get("n_packs"),
    "noise_floor": lambda r: r.get("noise_floor"),
    "label_mass": lambda r: r.get("label_mass"),
    "execution": lambda r: str(r["execution"]),
}
"""Column of the branches without an edit -> its value: `right`, whether the stated answer is right,
and `unread`, whether it could not be read, are of the model's own reply."""
_OF_BRANCH = ("flip", "control", "margin", "tv", "log_odds", "no_room", "inclusion")


def branch_frame(records: Sequence[Record]) -> pd.DataFrame:
    """A row per branch of each edit of each measured SLRC record, sorted by model, task, framing,
    reading, edit and item; NaN for what a branch has no value of.

    The answer to the unedited reasoning is a branch, too, of the edit `baseline`. Columns:

        step: place of the step among the counted ones, or number of the shuffle, from 1;
        flip: whether the answer is not the one to the unedited reasoning; of `baseline`, not the
            one that the model stated;
        differs: whether the answer is not the one that the model stated;
        control: of `regenerate`, whether `control` of the same step changed the answer;
        weight: inverse of the probability with which the step was drawn to be edited;
        tv, log_odds: total variation of the answers, and log-odds that the answer lost;
        close: whether a flip of known margin is within the noise floor of its record;
        no_room: whether the edit was left out since the model has no positions left for it;
        function: what the step does by its words (`interventions.FUNCTIONS`).

    Rows of `baseline` alone have what is measured once per record (`OF_UNEDITED`).

    Raises:
        ValueError: two lists of a record, with a value per branch, differ in length.
    """
    functions, included, edits = _functions(records), measured(records), (BASELINE, *EDITS)
    of_steps = [functions.get(place_of(r)) for r in included]
    codes: dict[str, int] = {}
    # one edit of one way at a time, since the lists of all of them take far more than the frame
    blocks = [_block(0, [], codes)]
    for _, of_way in itertools.groupby(enumerate(included), lambda x: [x[1][k] for k in KEYS]):
        way = list(of_way)
        for at, edit in enumerate(edits):
            found = ((i, _branches(r, edit, of_steps[i])) for i, r in way)
            if lists := [(i, branches) for i, branches in found if branches]:
                blocks.append(_block(at, lists, codes))
    # a column of the blocks is freed as soon as it is one array
    columns = {name: np.concatenate([of.pop(name) for of in blocks]) for name in [*blocks[0]]}
    record, edit, answer, function = (columns[n] for n in ("record", "edit", "answer", "function"))
    flip, control, margin, tv, log_odds, no_room, inclusion = (columns[n] for n in _OF_BRANCH)

    def of_record(name: str, categories: Sequence[str] | None = None) -> pd.Categorical:
        return pd.Categorical([str(r[name]) for r in included], categories)[record]

    originals = [_code(codes, r.get("original")) for r in included]
    original = np.array(originals, dtype=int)[record]
    stated = (original >= 0) & ~np.isnan(flip) & (answer != _NO_LIST)
    of_floor = np.array([r.get("noise_floor") for r in included], dtype=float)[record]
    known = (flip == 1) & ~np.isnan(margin + of_floor)
    frame = pd.DataFrame(
        {
            **{name: of_record(name) for name in ("model", "task", "item")},
            **{
                "framing": of_record("framing", FRAMINGS),
                "reading": of_record("reading", READINGS),
            },
            "edit": pd.Categorical.from_codes(edit, edits),
            "step": columns["step"].astype(np.int32),
            "n_steps": np.array([r["n_steps"] for r in included], dtype=np.int32)[record],
            "function": pd.Categorical.from_codes(function, FUNCTIONS),
            "answer": pd.Categorical.from_codes(
                np.maximum(answer, -1), np.array(list(codes), dtype=object)
            ),
            **{"flip": flip, "control": control, "tv": tv, "log_odds": log_odds},
            "differs": np.where(stated, answer != original, np.nan),
            "close": np.where(known, margin <= of_floor, np.nan),
            "weight": 1 / np.where(np.isnan(inclusion), 1, inclusion),
            "no_room": no_room == 1,
        },
        copy=False,  # each column stays an array of its own, so some are taken without a copy
    )
    for name, value in OF_UNEDITED.items():
        once = pd.Series([value(r) for r in included], index=np.flatnonzero(edit == 0))
        frame[name] = once.reindex(frame.index)
    return frame


_NO_LIST = -2
"""Code of an answer where a record has no list of answers; that of an unknown answer is -1."""


def _code(codes: dict[str, int], answer: str | None) -> int:
    return -1 if answer is None else codes.setdefault(answer, len(codes))


def _block(
    edit: int, lists: Sequence[tuple[int, Mapping[str, Any]]], codes: dict[str, int]
) -> dict[str, np.ndarray]:
    """Column -> a value per branch, for the branches of one edit.

    Args:
        lists: number of each record, and its `_branches`.
        codes: answer -> code; takes those that are new.
    """
    n = np.array([len(of["flip"]) for _, of in lists], dtype=int)
    record = np.repeat(np.array([i for i, _ in lists], dtype=int), n)

    def column(name: str, default: float = np.nan, code: Callable[[Any], Any] | None = None) -> Any:
        """The values of all lists; the default where a record has no list."""
        found = [of.get(name) for _, of in lists]
        if not any(found):
            return np.full(len(record), default)
        there = np.repeat(np.array(list(map(bool, found)), dtype=bool), n)
        values = np.full(len(record), default)
        flat = itertools.chain.from_iterable(filter(None, found))
        values[there] = np.array(list(map(code, flat) if code else flat), dtype=values.dtype)
        return values

    return {
        "record": record,
        "edit": np.full(len(record), edit),
        "step": np.arange(len(record)) - np.repeat(np.cumsum(n) - n, n) + (edit > 0),
        "answer": column("answer", _NO_LIST, partial(_code, codes)),
        "function": column("function", -1, lambda name: _OF_FUNCTIONS.get(name, -1)),
        **{name: column(name) for name in _OF_BRANCH},
    }


_OF_FUNCTIONS = {name: code for code, name in enumerate(FUNCTIONS)}
_EXCLUDED = {edit: f"{ANSWERS[edit]}_excluded" for edit in EDITS}
_GRADED = {e: [(x, f"{ANSWERS[e]}_{x}") for x in ("margin", "tv", "log_odds")] for e in EDITS}


def _branches(record: Record, edit: str, functions: Sequence[str] | None) -> Mapping[str, Any]:
    """Column -> a value per branch of an edit of a record, or None; empty without branches."""
    if edit == BASELINE:
        answer, original = record.get("baseline"), record.get("original")
        return {"answer": [answer], "flip": [None if original is None else answer != original]}
    there, reasons = record.get(BY_NAME[edit].flips), record.get(_EXCLUDED[edit])
    if not there and not reasons:
        return {}
    flipped = flips(record, edit) if there else []
    left_out = no_room(record, edit) if reasons else []
    # a record without room for any of its edits has no flips, but reasons
    n = max(len(flipped), len(left_out))
    if not n:
        return {}
    of_steps = edit not in NOT_OF_STEPS
    control = flips(record, "control")[:n] if edit == "regenerate" else []
    values = {
        "flip": flipped or [None] * n,
        "answer": record.get(ANSWERS[edit]),
        "control": control and [*control, *[None] * (n - len(control))],
        "no_room": left_out if any(left_out) else None,
        "inclusion": inclusion_of(record) if of_steps else None,
        "function": functions if of_steps else None,
        **{name: record.get(place) for name, place in _GRADED[edit]},
    }
    for name, x in values.items():
        if x and len(x) != n:
            raise ValueError(f"{edit} of {place_of(record)}: {name!r} has not one value per branch")
    return values


def _functions(records: Sequence[Record]) -> dict[Place, list[str]]:
    """Place of a trace -> the function of each of its counted steps."""
    return {
        place_of(r): [s["function"] for s in r["steps"] if s["counted"]]
        for r in records
        if r["probe"] == "trace" and all("function" in s for s in r["steps"])
    }


UNEDITED = rows_with(edit=BASELINE)
"""Mask of the branches without an edit, one per record."""


def known_of(edit: str) -> Any:
    """Mask of an edit's branches of known outcome."""
    return all_of(rows_with(edit=edit), rows_known("flip"))


def _alone_same(branches: pd.DataFrame) -> np.ndarray:
    return 1 - numbers(branches["flip"])


NECESSITY = Share(
    "necessity",
    "flip",
    known_of("remove"),
    meaning="Share of the steps whose removal changes the answer (§4.1).",
    weights="weight",
    cluster="item",
)
SUFFICIENCY = Share(
    "sufficiency",
    _alone_same,
    known_of("keep_only"),
    meaning="Share of the steps that, kept alone, lead to the same answer (§4.1).",
    weights="weight",
    cluster="item",
)


def step_counts(branches: pd.DataFrame) -> pd.DataFrame:
    """Counts per item, in the order of their ids: removals that changed the answer, removals, steps
    that alone gave the same answer, and steps kept alone; estimates of these counts where a sample
    of the steps is edited.

    Args:
        branches: rows of a `branch_frame` of one model, task, framing and reading.
    """
    codes, items = pd.factorize(branches["item"], sort=True)
    flip, weight = (branches[n].to_numpy() for n in ("flip", "weight"))
    counts = []
    for edit, outcome in (("remove", flip), ("keep_only", 1 - flip)):
        known = known_of(edit)(branches)
        for values in (outcome[known] * weight[known], weight[known]):
            counts.append(np.bincount(codes[known], weights=values, minlength=len(items)))
    return pd.DataFrame(np.stack(counts, axis=1), index=pd.Index(items.astype(str), name="item"))


def of_units(counts: pd.DataFrame, how: Bootstrap) -> np.ndarray:
    """Counts per unit of the bootstrap, from counts per item (`step_counts`)."""
    codes, units = pd.factorize(how.units(counts.reset_index()))
    sums = [np.bincount(codes, of, len(units)) for of in counts.to_numpy(dtype=float).T]
    return np.stack(sums, axis=1)


def slrc_of_counts(totals: Float[np.ndarray, "draws 4"]) -> np.ndarray:
    """SLRC of each row of `step_counts`; NaN where necessity or sufficiency is undefined."""
    return over(totals[:, 0], totals[:, 1]) * (1 - over(totals[:, 2], totals[:, 3]))


def _capacity(branches: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    of_items = step_counts(branches)
    counts = of_units(of_items, how)
    total = counts.sum(axis=0, keepdims=True)
    value, low, high = float(slrc_of_counts(total)[0]), math.nan, math.nan
    if not math.isnan(value):
        # A bootstrap draw without any removal, or without any step kept alone, gives NaN.
        rng = np.random.default_rng(how.seed)
        draws = slrc_of_counts(resampled_totals(counts, rng, how.resamples))
        low, high = percentiles(draws, len(counts))
    if math.isnan(low) and not math.isnan(value):
        of = one_row((NECESSITY, SUFFICIENCY), branches, how)
        low = of["necessity_low"] * (1 - of["sufficiency_high"])
        high = of["necessity_high"] * (1 - of["sufficiency_low"])
    return columns("slrc", Estimate(value, low, high, len(of_items)))


SLRC = Column(
    "slrc", "SLRC", "Necessity × (1 − sufficiency), of these aggregates (§4.2).", interval=True
)
CAPACITY = Numbers((SLRC,), _capacity)
"""SLRC of the aggregates, with a percentile interval from resampling items. Where there are too few
items, or all agree, its ends are those of the intervals of necessity and sufficiency."""


def _routes(branches: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    removed = branches[known_of("remove")(branches)]
    share = np.average(removed["flip"], weights=removed["weight"]) if len(removed) else math.nan
    return {"redundancy_bound": redundancy(float(share))}


REDUNDANCY_BOUND = Numbers(
    (Column("redundancy_bound", "routes implied", "1 / necessity (§3.3)."),), _routes
)
