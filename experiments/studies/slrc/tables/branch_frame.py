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
OF_RECORD = ("model", "task", "item", "framing", "reading", "n_steps", "correct")
OF_BRANCH = ("answer", "flip", "differs", "control", "margin", "tv", "log_odds", "floor", "no_room")


OF_UNEDITED: Mapping[str, Callable[[Record], Any]] = {
    "label_mass": lambda r: r.get("label_mass"),
    "n_unparsed": lambda r: r.get("n_unparsed") or 0,
    "n_packs": lambda r: r.get("n_packs"),
    "execution": lambda r: str(r["execution"]),
    "right": lambda r: is_right(r.get("original"), r.get("gold")),
    "unread": lambda r: r.get("gold") is not None and r.get("original") is None,
}
"""Column of the branches without an edit -> its value: `right`, whether the stated answer is right,
and `unread`, whether it could not be read, are of the model's own reply."""


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
        margin, tv, log_odds: how a scored answer was decided and moved (`SlrcSettings`);
        floor: the record's noise floor; close: whether a flip of known margin is within it;
        no_room: whether the edit was left out since the model has no positions left for it;
        function: what the step does by its words (`interventions.FUNCTIONS`).

    Rows of `baseline` alone have what is measured once per record (`OF_UNEDITED`).
    """
    functions, included = _functions(records), measured(records)
    parts: dict[str, list[Any]] = {n: [] for n in (*OF_RECORD, *OF_BRANCH)}
    parts |= {"edit": [], "step": [], "inclusion": [], "function": []}
    for record in included:
        for edit in (BASELINE, *EDITS):
            branches = _branches(record, edit, functions.get(place_of(record)))
            n = len(branches["flip"])
            for name in OF_RECORD:
                parts[name].append(itertools.repeat(record.get(name), n))
            parts["edit"].append(itertools.repeat(edit, n))
            for name, values in branches.items():
                parts[name].append(values)
    flat = {name: list(itertools.chain.from_iterable(lists)) for name, lists in parts.items()}
    orders = {"framing": FRAMINGS, "reading": READINGS, "edit": (BASELINE, *EDITS)}
    orders |= {"function": FUNCTIONS}
    frame = pd.DataFrame(
        {n: pd.Categorical(flat.pop(n), categories) for n, categories in orders.items()}
        | {n: pd.Categorical(flat.pop(n)) for n in ("model", "task", "answer")}
        | {"item": pd.Series(flat.pop("item"), dtype=str)}
        | {n: np.array(values, dtype=float) for n, values in flat.items()}
    )
    unedited = np.flatnonzero(frame["edit"] == BASELINE)
    for name, value in OF_UNEDITED.items():
        frame[name] = pd.Series([value(r) for r in included], index=unedited).reindex(frame.index)
    known = (frame["flip"] == 1) & frame["margin"].notna() & frame["floor"].notna()
    close = (frame["margin"] <= frame["floor"]).astype(float).where(known)
    return frame.assign(
        close=close.where(frame["edit"] != BASELINE),
        weight=1 / frame.pop("inclusion").fillna(1),
        no_room=frame["no_room"] == 1,
        **{n: frame[n].astype(int) for n in ("n_steps", "step")},
    ).sort_values([*KEYS, "edit"], kind="stable", ignore_index=True)


def _branches(
    record: Record, edit: str, functions: Sequence[str] | None
) -> Mapping[str, Sequence[Any]]:
    """One value per branch of an edit of a record, for each column that branches have."""
    original = record.get("original")
    if edit == BASELINE:
        said, moved = [record.get("baseline")], [None]
        flipped = [None if original is None else said[0] != original]
        of: dict[str, Any] = {"answer": said, "flip": flipped, "differs": flipped, "step": [0]}
        of["floor"] = [record.get("noise_floor")]
        return {**dict.fromkeys((*OF_BRANCH, "inclusion", "function"), moved), **of}
    flipped, left_out = flips(record, edit), no_room(record, edit)
    # a record without room for any of its edits has no flips, but reasons
    n = max(len(flipped), len(left_out))
    if not n:
        return dict.fromkeys((*OF_BRANCH, "step", "inclusion", "function"), ())
    flipped = flipped or [None] * n
    said, of_steps = answers(record, edit), edit not in NOT_OF_STEPS
    differs = None
    if original is not None and said:
        pairs = zip(said, flipped, strict=True)
        differs = [None if flip is None else answer != original for answer, flip in pairs]
    control = flips(record, "control")[:n] if edit == "regenerate" else []
    values = {
        "answer": said,
        "differs": differs,
        "control": [*control, *[None] * (n - len(control))],
        "no_room": left_out,
        "inclusion": inclusion_of(record) if of_steps else None,
        "function": functions if of_steps else None,
        "floor": [record.get("noise_floor")] * n,
        **{name: record.get(f"{ANSWERS[edit]}_{name}") for name in ("margin", "tv", "log_odds")},
    }
    if wrong := [name for name, x in values.items() if x and len(x) != n]:
        raise ValueError(f"{edit} of {place_of(record)}: {wrong[0]!r} has not one value per branch")
    filled = {name: x or [None] * n for name, x in values.items()}
    return filled | {"flip": flipped, "step": range(1, n + 1)}


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
)
SUFFICIENCY = Share(
    "sufficiency",
    _alone_same,
    known_of("keep_only"),
    meaning="Share of the steps that, kept alone, lead to the same answer (§4.1).",
    weights="weight",
)


def step_counts(branches: pd.DataFrame) -> pd.DataFrame:
    """Counts per item, in the order of their ids: removals that changed the answer, removals, steps
    that alone gave the same answer, and steps kept alone; estimates of these counts where a sample
    of the steps is edited.

    Args:
        branches: rows of a `branch_frame` of one model, task, framing and reading.
    """
    items, codes = np.unique(branches["item"].to_numpy(dtype=str), return_inverse=True)
    flip, weight = (branches[n].to_numpy() for n in ("flip", "weight"))
    counts = []
    for edit, outcome in (("remove", flip), ("keep_only", 1 - flip)):
        known = known_of(edit)(branches)
        for values in (outcome[known] * weight[known], weight[known]):
            counts.append(np.bincount(codes[known], weights=values, minlength=len(items)))
    return pd.DataFrame(np.stack(counts, axis=1), index=items)


def slrc_of_counts(totals: Float[np.ndarray, "draws 4"]) -> np.ndarray:
    """SLRC of each row of `step_counts`; NaN where necessity or sufficiency is undefined."""
    return over(totals[:, 0], totals[:, 1]) * (1 - over(totals[:, 2], totals[:, 3]))


def _capacity(branches: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    counts = step_counts(branches).to_numpy()
    total = counts.sum(axis=0, keepdims=True)
    value, low, high = float(slrc_of_counts(total)[0]), math.nan, math.nan
    if not math.isnan(value):
        # A bootstrap draw without any removal, or without any step kept alone, gives NaN.
        rng = np.random.default_rng(how.seed)
        draws = slrc_of_counts(resampled_totals(counts, rng, how.resamples))
        low, high = percentiles(draws)
    return columns("slrc", Estimate(value, low, high, len(counts)))


SLRC = Column(
    "slrc", "SLRC", "Necessity × (1 − sufficiency), of these aggregates (§4.2).", interval=True
)
CAPACITY = Numbers((SLRC,), _capacity)
"""SLRC of the aggregates, with a percentile interval from resampling items."""


def _routes(branches: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    removed = branches[known_of("remove")(branches)]
    share = np.average(removed["flip"], weights=removed["weight"]) if len(removed) else math.nan
    return {"redundancy_bound": redundancy(float(share))}


REDUNDANCY_BOUND = Numbers(
    (Column("redundancy_bound", "routes implied", "1 / necessity (§3.3)."),), _routes
)
