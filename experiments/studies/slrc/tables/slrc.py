"""Tables of SLRC per model, task, framing and reading, of agreement between these, and of steps.

Every share is pooled over the counted steps (or shuffles, or items) of a group, with the Wilson
interval of as many independent ones as tell as much (`stats.clustered_shares`). `task` is the
dataset of the records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import (
    Count,
    Mean,
    Number,
    Share,
    Total,
    all_of,
    every_row,
    rows_known,
)
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.record_frames import COUNTED, N_STEPS
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.stored_records import has_tokens
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import keep, mean, only, rows, with_columns
from faithscope.experiments.engine.traces.endings import came_to_no_end, is_cut, is_repeating
from faithscope.experiments.studies.slrc.tables.branch_frame import (
    CAPACITY,
    NECESSITY,
    REDUNDANCY_BOUND,
    SUFFICIENCY,
    UNEDITED,
    WAY,
    known_of,
)
from faithscope.experiments.studies.slrc.tables.edits import EDIT, FLIPS_WITHIN_FLOOR
from faithscope.experiments.studies.slrc.tables.outcomes import LABEL_MASS
from faithscope.probes.framing import FRAMINGS, READINGS

_OF_FLOOR = ("remove", "keep_only", "shuffle")
ASKED_AGAIN_DIFFERS = Share(
    "asked_again_differs",
    "flip",
    all_of(UNEDITED, rows_known("flip")),
    "asked again, another answer",
    "Items that answer otherwise than they state when asked again after their unedited "
    "reasoning: in the generated reading the greedy answer, in the scored one the forced choice. "
    "Edits are held against what they answer then.",
)
ORDER_SENSITIVITY = Share(
    "order_sensitivity",
    "flip",
    known_of("shuffle"),
    meaning="Share of the shuffles of the steps that change the answer (§4.1).",
    cluster="item",
)
OF_EDITS = (
    NECESSITY,
    SUFFICIENCY,
    ORDER_SENSITIVITY,
    CAPACITY,
    REDUNDANCY_BOUND,
    ASKED_AGAIN_DIFFERS,
)
ACCURACY = Share(
    "accuracy",
    "correct",
    all_of(UNEDITED, rows_known("correct")),
    "accuracy, asked again",
    "Items whose answer is right when it is asked for once more after the unedited "
    "reasoning: what edits are held against.",
)
N_ITEMS = replace(COUNTED, among=UNEDITED)
MEAN_STEPS = Mean(
    "mean_steps", "n_steps", UNEDITED, "steps per item", "Mean number of steps of an item."
)
_FLOOR_KNOWN = all_of(lambda b: b["edit"].isin(_OF_FLOOR).to_numpy(), rows_known("close"))


def _differing(branches: pd.DataFrame) -> pd.DataFrame:
    """Branches of generated readings, with another answer than the stated one in `flip`; a scored
    reading has no originally written answer."""
    known = rows_known("differs")(branches) & (branches["reading"] == "generated")
    return keep(branches, known).assign(flip=lambda b: b["differs"])


SLRC = Table(
    "slrc",
    "branches",
    WAY,
    (
        N_ITEMS,
        *OF_EDITS,
        ACCURACY,
        Share(
            "accuracy_written",
            "right",
            rows_known("right"),
            "accuracy, as written",
            "Items of which the answer that the model itself wrote is right, of those "
            "where it can be read.",
        ),
        replace(N_STEPS, among=UNEDITED),
        MEAN_STEPS,
        Total("n_unparsed", label="unparsed", meaning="Replies that no answer could be read from."),
        Total(
            "n_unparsed_written",
            "unread",
            label="unparsed, as written",
            meaning="Items with a right answer in whose own reply no answer could be read: in no "
            "accuracy.",
        ),
        Number(
            "execution",
            lambda branches: "+".join(sorted(branches["execution"].dropna().unique())),
            meaning="How branches were run: packed in one forward, or one by one in a loop.",
        ),
        Number(
            "n_packs",
            lambda branches: max(map(int, branches["n_packs"].dropna()), default=math.nan),
            "packs",
            "The most that one item's arms fell into.",
        ),
        Mean(
            "noise_floor",
            "",
            UNEDITED,
            unit="nats",
            meaning="Median over items; see `probes.floor`.",
            statistic="median",
        ),
        Count(
            "n_flips",
            _FLOOR_KNOWN,
            "flips",
            "Flips by removal, by keeping one step alone and by shuffling, of known margin.",
        ),
        replace(FLIPS_WITHIN_FLOOR, among=_FLOOR_KNOWN),
        *LABEL_MASS,
    ),
    caption="SLRC per model, task, framing and reading: shares of all steps together, with "
    "intervals of as many independent steps as tell as much",
)
"""Necessity, sufficiency, order sensitivity and SLRC (SLRC paper, §4.1-4.2)."""
SLRC_ORIGINAL = Table(
    "slrc_original",
    "branches",
    WAY,
    (N_ITEMS, *OF_EDITS),
    prepare=_differing,
    caption="SLRC against the answer that the model itself wrote",
    folded="Held against the answer as written, as in the paper",
)
"""SLRC with the model's originally written answer as the reference (SLRC paper, §4.1); beside table
`slrc` it shows the difference between the paper's protocol and ours on the same branches."""

_PAIRS = {
    **{f"generated~scored in {f}": ((f, "generated"), (f, "scored")) for f in FRAMINGS},
    **{f"prefix~reprompt in {r}": (("prefix", r), ("reprompt", r)) for r in READINGS},
}
"""Column `between` -> the two framings and readings that are compared."""


def _compared(branches: pd.DataFrame) -> pd.DataFrame:
    """Both outcomes of every branch that two ways of measuring share: whether the answer changed,
    or of `baseline` the answer itself."""
    place = ["model", "task", "edit", "item", "step"]
    outcome = branches["flip"].astype(object).where(~UNEDITED(branches), branches["answer"])
    known = branches.assign(outcome=outcome)
    known = keep(known, UNEDITED(known) | rows_known("flip")(known))
    ways = {way: of for way, of in known.groupby(["framing", "reading"], observed=True)}
    none = keep(known, np.zeros(len(known), dtype=bool))
    parts = [
        ways.get(one, none)[[*place, "outcome"]]
        .merge(ways.get(other, none)[[*place, "outcome"]], on=place)
        .assign(between=between)
        for between, (one, other) in _PAIRS.items()
    ]
    whole = pd.concat(parts, ignore_index=True)
    whole["between"] = pd.Categorical(whole["between"], list(_PAIRS))
    return whole.sort_values(["model", "task", "item"], kind="stable", ignore_index=True)


AGREEMENT = Table(
    "agreement",
    "branches",
    ("model", "task"),
    (
        Count(
            "n",
            label="pairs",
            meaning="Pairs of outcomes of the two ways, of one branch each; of `baseline`, of one "
            "item.",
        ),
        Number(
            "agreement",
            lambda both: stats.agreement(both["outcome_x"].tolist(), both["outcome_y"].tolist()),
            meaning="Share of the pairs of outcomes that are the same.",
        ),
        Number(
            "kappa",
            lambda both: stats.kappa(both["outcome_x"].tolist(), both["outcome_y"].tolist()),
            meaning="Cohen's: agreement beyond what chance gives.",
        ),
    ),
    along=(
        EDIT,
        Column(
            "between",
            "compared",
            "The two ways of measuring that are compared: two readings in one framing, or two "
            "framings in one reading.",
        ),
    ),
    prepare=_compared,
    caption="Agreement between readings and framings",
    folded="Agreement and Cohen’s kappa for every edit",
)
"""Agreement of the two readings, and of the two framings, item by item and branch by branch."""


def _steps_of_traces(traces: pd.DataFrame) -> pd.DataFrame:
    """The traces with the number and lengths of their counted steps."""
    counted = [[s for s in steps if s["counted"]] for steps in traces["steps"]]
    ids = traces["reasoning_ids"].map(len)
    own = traces["model"].map(lambda model: has_tokens({"model": model}))
    ending = with_columns(traces, "finish", "pieces", "repeating")
    chains = rows(only(ending, ["finish", "pieces", "repeating", "steps"]).replace({np.nan: None}))
    return traces.assign(
        counted=counted,
        n_steps=[len(steps) for steps in counted],
        n_tokens=ids.where(own),
        cut=list(map(is_cut, chains)),
        repeating=list(map(is_repeating, chains)),
        without_end=list(map(came_to_no_end, chains)),
    )


_STEPS_THERE = lambda traces: (traces["n_steps"] > 0).to_numpy()  # noqa: E731


def _of_numbers(name: str, statistic: str, label: str, meaning: str) -> Mean:
    return Mean(name, "n_steps", _STEPS_THERE, label, meaning, statistic=statistic)


def _length(part: str, among: Callable[[pd.DataFrame], Any]) -> Callable[[pd.DataFrame], float]:
    """Makes a function for the mean length of a counted step, in characters or tokens."""

    def of(traces: pd.DataFrame) -> float:
        steps = [s for counted in keep(traces, among(traces))["counted"] for s in counted]
        return mean([s[part][1] - s[part][0] for s in steps])

    return of


STEPS = Table(
    "steps",
    "trace",
    ("model", "task"),
    (
        COUNTED,
        Share(
            "multi_step",
            lambda traces: traces["n_steps"] >= 2,
            label="two or more steps",
            meaning="Share of the items with two steps or more.",
        ),
        Mean("cut", label="cut off", meaning="Share of the chains that the limit of tokens ended."),
        Mean("repeating", meaning="Share of the chains that say their own steps again."),
        Mean(
            "without_end",
            label="came to no end",
            meaning="Share of the chains that were cut or repeat.",
        ),
        N_STEPS,
        replace(MEAN_STEPS, among=_STEPS_THERE),
        _of_numbers(
            "sd_steps", "std", "s.d.", "Standard deviation of the number of steps over items."
        ),
        _of_numbers("median_steps", "median", "median", "Median number of steps of an item."),
        _of_numbers("min_steps", "min", "min", "Least number of steps of an item."),
        _of_numbers("max_steps", "max", "max", "Greatest number of steps of an item."),
        Number(
            "mean_step_tokens",
            _length("tokens", rows_known("n_tokens")),
            "tokens per step",
            "Mean number of tokens of a step.",
        ),
        Number(
            "mean_step_chars",
            _length("chars", every_row),
            "characters per step",
            "Mean number of characters of a step.",
        ),
        Mean(
            "mean_reasoning_tokens",
            "n_tokens",
            label="tokens of reasoning",
            meaning="Mean number of tokens of an item's reasoning.",
        ),
    ),
    prepare=_steps_of_traces,
    caption="Counted steps per trace",
    folded="Steps per trace",
)
"""Counted steps per trace; the statistics are over traces with at least one (SLRC, Tables ED 4 and
6)."""
