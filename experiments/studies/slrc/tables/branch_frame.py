"""The branches of all edits as one frame, a row each, and the scores of SLRC made of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
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
    answers,
    flips,
    measured,
    no_room,
    redundancy,
)
from faithscope.interventions import FUNCTIONS
from faithscope.probes.framing import FRAMINGS, READINGS
from faithscope.probes.record import is_right

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
    ways = itertools.groupby(enumerate(included), key=lambda x: [x[1][key] for key in KEYS])
    lists = [
        (at, i, branches)
        for _, way in ways
        for at, edit, (i, r) in sorted(
            ((at, edit, x) for x in way for at, edit in enumerate(edits)), key=lambda x: x[0]
        )
        if (branches := _branches(r, edit, functions.get(place_of(r))))
    ]
    n = np.array([len(of["flip"]) for *_, of in lists], dtype=int)
    edit, record = (np.repeat(np.array([x[k] for x in lists], dtype=int), n) for k in (0, 1))

    def present(name: str) -> np.ndarray:
        return np.repeat(np.array([bool(of.get(name)) for *_, of in lists], dtype=bool), n)

    def column(name: str, dtype: Any = float) -> np.ndarray:
        """The values of all lists; None or NaN where a record has no list."""
        values = np.full(len(record), None if dtype is object else np.nan, dtype=dtype)
        flat = itertools.chain.from_iterable(of.get(name) or () for *_, of in lists)
        values[present(name)] = np.array(list(flat), dtype=dtype)
        return values

    def of_record(name: str, categories: Sequence[str] | None = None) -> pd.Categorical:
        return pd.Categorical([str(r[name]) for r in included], categories)[record]

    flip, control, margin, tv, log_odds, no_room, inclusion = map(column, _OF_BRANCH)
    originals = [r.get("original") for r in included]
    codes, names = pd.factorize(np.array([*column("answer", object), *originals], dtype=object))
    answer, original = codes[: len(record)], codes[len(record) :][record]
    stated = (original >= 0) & ~np.isnan(flip) & present("answer")
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
            "step": np.arange(len(record)) - np.repeat(np.cumsum(n) - n, n) + (edit > 0),
            "n_steps": np.array([r["n_steps"] for r in included], dtype=int)[record],
            "function": pd.Categorical(column("function", object), FUNCTIONS),
            "answer": pd.Categorical.from_codes(answer, names),
            **{"flip": flip, "control": control, "tv": tv, "log_odds": log_odds},
            "differs": np.where(stated, answer != original, np.nan),
            "close": np.where(known, margin <= of_floor, np.nan),
            "weight": 1 / np.where(np.isnan(inclusion), 1, inclusion),
            "no_room": no_room == 1,
        }
    )
    for name, value in OF_UNEDITED.items():
        once = pd.Series([value(r) for r in included], index=np.flatnonzero(edit == 0))
        frame[name] = once.reindex(frame.index)
    return frame


def _branches(record: Record, edit: str, functions: Sequence[str] | None) -> Mapping[str, Any]:
    """Column -> a value per branch of an edit of a record, or None; empty without branches."""
    if edit == BASELINE:
        answer, original = record.get("baseline"), record.get("original")
        return {"answer": [answer], "flip": [None if original is None else answer != original]}
    flipped, left_out = flips(record, edit), no_room(record, edit)
    # a record without room for any of its edits has no flips, but reasons
    n = max(len(flipped), len(left_out))
    if not n:
        return {}
    of_steps = edit not in NOT_OF_STEPS
    control = flips(record, "control")[:n] if edit == "regenerate" else []
    values = {
        "flip": flipped or [None] * n,
        "answer": answers(record, edit),
        "control": control and [*control, *[None] * (n - len(control))],
        "no_room": left_out,
        "inclusion": inclusion_of(record) if of_steps else None,
        "function": functions if of_steps else None,
        **{name: record.get(f"{ANSWERS[edit]}_{name}") for name in ("margin", "tv", "log_odds")},
    }
    if wrong := [name for name, x in values.items() if x and len(x) != n]:
        raise ValueError(f"{edit} of {place_of(record)}: {wrong[0]!r} has not one value per branch")
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
