"""Tables of how each edit of the reasoning changes the answer: over all steps, and by place."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from faithscope.experiments.analysis.cells import (
    Count,
    Distinct,
    Mean,
    Numbers,
    ShareOfItems,
    all_of,
    one_row,
    rows_known,
    rows_with,
    rows_without,
)
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import columns, keep, only
from faithscope.experiments.studies.slrc.tables.branch_frame import KEYS, OF_UNEDITED, WAY
from faithscope.experiments.studies.slrc.tables.outcomes import BASELINE, NOT_OF_STEPS

EDIT = Column(
    "edit", meaning="What was done to the reasoning: a step removed, kept alone, and so on."
)
FLIPS_WITHIN_FLOOR = Mean(
    "flips_within_floor",
    "close",
    meaning="Share of the flips that are decided by no more than the noise floor.",
    weights="weight",
)
IS_EDIT = rows_without(edit=BASELINE)
OF_STEPS = rows_without(edit=(BASELINE, *NOT_OF_STEPS))
_KNOWN = rows_known("flip")


def _with_outcome(*keys: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The branches of the groups in which at least one outcome is known."""

    def prepare(branches: pd.DataFrame) -> pd.DataFrame:
        chosen = IS_EDIT(branches)
        edited = keep(only(branches, [*keys, "flip"]), chosen)
        known = edited["flip"].notna().groupby([edited[k] for k in keys], observed=True)
        chosen[chosen] = known.transform("any").to_numpy(dtype=bool)
        return keep(branches.drop(columns=[*OF_UNEDITED]), chosen)

    return prepare


OUTCOMES = (
    Distinct("n_items", "item", _KNOWN, "items", "Items in the row."),
    Count("n_edits", _KNOWN, "edits", "Edited branches in the row."),
    Count(
        "n_no_room",
        rows_with(no_room=True),
        "edits without room",
        "Edits that were left out: no positions left to write on from the step.",
    ),
    Mean(
        "flip_rate",
        "flip",
        _KNOWN,
        "answer changed, of all edits",
        "Share of the edits after which the answer is another, of all edits together, as the SLRC "
        "paper counts. The interval is that of `item_rate`, since steps of an item are not "
        "independent.",
        weights="weight",
    ),
    ShareOfItems(
        "item_rate",
        "flip",
        _KNOWN,
        "answer changed, mean over items",
        "Mean over items of the share of an item's edits after which the answer is another: every "
        "item counts once, however many steps it has. Verdicts and figures rest on it; the "
        "interval is Wilson's where each share is 0 or 1, and shorter where shares vary less; "
        "items of a group count as one.",
        weights="weight",
        cluster="item",
    ),
    FLIPS_WITHIN_FLOOR,
    Mean(
        "total_variation",
        "tv",
        meaning="How far the distribution over the answers moves.",
        weights="weight",
    ),
    Mean(
        "log_odds_drop",
        "log_odds",
        label="log-odds drop",
        meaning="Log-odds that the answer loses by the edit.",
        unit="nats",
        weights="weight",
    ),
)
_BOTH = all_of(rows_with(edit="regenerate"), rows_known("flip", "control"))


_SIDES = tuple(
    ShareOfItems(name, name, weights="weight", cluster="item") for name in ("flip", "control")
)


def _beyond_control(both: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    """Rate of `regenerate` minus that of `control` on the same steps, mean over items."""
    row, n = one_row(_SIDES, both, how), len(set(both["item"]))
    flip, control = (
        Estimate(row[side.name], row[f"{side.name}_low"], row[f"{side.name}_high"], n)
        for side in _SIDES
    )
    return columns("beyond_control", stats.difference(flip, control))


EDITS_TABLE = Table(
    "edits",
    "branches",
    WAY,
    (
        *OUTCOMES,
        Numbers(
            (
                Column(
                    "beyond_control",
                    meaning="How much more often writing on from a corruption changes the answer "
                    "than writing on from the step itself: on the same steps, mean over items.",
                    interval=True,
                ),
            ),
            _beyond_control,
            _BOTH,
        ),
    ),
    along=(EDIT,),
    prepare=_with_outcome(*KEYS, "edit"),
    caption="How often each edit changed the answer",
    folded="Every edit, framing and reading",
)
"""How often each edit changes the answer, and how far it moves the distribution."""
EDITS_BY_STEP = Table(
    "edits_by_step",
    "branches",
    (*WAY, EDIT, Column("n_steps", "steps", "Number of steps of the items in the row.")),
    OUTCOMES,
    along=(Column("step", meaning="Place of the step among those that edits may touch, from 1."),),
    prepare=lambda branches: _with_outcome(*KEYS, "edit", "n_steps", "step")(branches).sort_values(
        [*KEYS, "n_steps", "edit"], kind="stable"
    ),
    among=OF_STEPS,
    caption="How often each edit changed the answer, by place of the step",
    folded="By place of the step",
)
EDITS_BY_FUNCTION = Table(
    "edits_by_function",
    "branches",
    WAY,
    OUTCOMES,
    along=(
        EDIT,
        Column(
            "function",
            "what the step does",
            "By its words: it takes back what was said, checks, states the answer, says what "
            "the question says, computes, says what is to be done, or none of these "
            "(`interventions.function_of`).",
        ),
    ),
    prepare=_with_outcome(*KEYS, "edit", "function"),
    among=all_of(OF_STEPS, rows_known("function")),
    caption="How often each edit changed the answer, by what the step does",
    folded="By what the step does",
)
