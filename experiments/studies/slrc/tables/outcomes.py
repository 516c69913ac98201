"""Readers of SLRC records: outcomes of every edit's branches, the definition of SLRC itself, and
the label mass of scored readings.

A record is flat JSON: one item in one framing and one reading, with lists that hold one
value per counted step, or per shuffle. `task` is the dataset of a record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import Boot, Count, Share, rows_known
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.measure import inclusion_of
from faithscope.experiments.analysis.stored_records import Record, place_of
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.engine.tallies.reasons import LOW_MASS
from faithscope.probes import PROBES
from faithscope.probes.framing import FRAMINGS, READINGS
from faithscope.probes.record import mean_of_steps
from faithscope.probes.slrc_edits import BY_NAME

Score = TypeVar("Score", float, np.ndarray)
EDITS = tuple(BY_NAME)
BASELINE = "baseline"
"""Name of the branch without an edit, in frames and tables of edits."""
NOT_OF_STEPS = tuple(name for name, edit in BY_NAME.items() if not edit.of_steps)
"""Edits of the whole reasoning, which have no place among the steps."""
ANSWERS = {name: edit.answers for name, edit in BY_NAME.items()}
"""Edit -> record field with the answer of each branch; the edit's other fields start with this
name."""


def is_variant(task: str) -> bool:
    """Whether a task is a prompt variant of another one, as `sst2:alternative` (SLRC, 2.6)."""
    return ":" in task


def answers(record: Record, edit: str) -> list[str | None]:
    """Answer of each branch of an edit; None where it did not parse, or was not run."""
    return list(record.get(ANSWERS[edit]) or [])


def flips(record: Record, edit: str) -> list[bool | None]:
    """Whether each branch of an edit changed the answer; None where there was no branch.

    One value per counted step, or per shuffle; a single one for `remove_all`. `keep_only` flips if
    the step alone does not give the same answer.
    """
    changed = list(record.get(BY_NAME[edit].flips) or [])
    if BY_NAME[edit].text == "corrupted" and changed:
        can = record.get("corruptible") or [True] * len(changed)
        changed = [flip if possible else None for flip, possible in zip(changed, can, strict=True)]
    if edit == "keep_only":
        changed = [None if same is None else not same for same in changed]
    return changed


def alone(record: Record) -> list[bool | None]:
    """Whether each step kept alone gives the same answer; None where there was no branch."""
    return list(record.get(BY_NAME["keep_only"].flips) or [])


def share_within_floor(rows: pd.DataFrame, kind: str) -> float:
    """Share of the flips in lists `{kind}flips` that are within their record's noise floor; NaN
    without flips of known margin.

    Args:
        rows: a row per record.
    """
    close: list[bool | None] = []
    drawn: list[float | None] = []
    for r in rows.to_dict("records"):
        flipped, margins, floor = r[f"{kind}flips"], r.get(f"{kind}margin"), r.get("noise_floor")
        if floor is None or math.isnan(floor) or not isinstance(margins, Sequence):
            continue
        pairs = zip(flipped, margins, strict=True)
        close += [m <= floor if flip and m is not None else None for flip, m in pairs]
        drawn += inclusion_of(r) or [None] * len(flipped)
    share = mean_of_steps(close, drawn)
    return math.nan if share is None else share


def graded(record: Record, edit: str, measure: str) -> list[float | None]:
    """Total variation (`tv`) or log-odds drop (`log_odds`) of each branch, for scored readings;
    None where `flips` is None."""
    flipped = flips(record, edit)
    values = record.get(f"{ANSWERS[edit]}_{measure}") or [None] * len(flipped)
    return [v if flip is not None else None for v, flip in zip(values, flipped, strict=True)]


def no_room(record: Record, edit: str) -> list[bool]:
    """Whether each step was left out of an edit because the model has no position left for it."""
    return [reason is not None for reason in record.get(f"{ANSWERS[edit]}_excluded") or []]


def measured(records: Iterable[Record]) -> list[Record]:
    """The SLRC records with a measurement, in an order that does not depend on the run's
    history."""
    return sorted(
        (r for r in records if r["probe"] == "slrc" and not r.get("excluded")),
        key=lambda r: (
            *(r["model"], r["task"]),
            *(FRAMINGS.index(r["framing"]), READINGS.index(r["reading"])),
            str(r["item"]),
        ),
    )


FRAMING = Column(
    "framing",
    meaning="Whether the edited reasoning stands where the model wrote it (prefix) or is quoted in "
    "a new prompt (reprompt).",
)


def slrc_of(necessity: float, sufficiency: float) -> float:
    """Step-Level Reasoning Capacity, necessity × (1 − sufficiency), of the aggregates.

    SLRC paper, §4.2, equation 8. The formula is missing from the paper's text; this one reproduces
    Table 1.
    """
    return necessity * (1 - sufficiency)


def ris(slrc: Score, sycophancy: Score) -> Score:
    """Reasoning Integrity Score, SLRC × (1 − sycophancy) (SLRC paper, §3.1, equation 1)."""
    return slrc * (1 - sycophancy)


def redundancy(necessity: float) -> float:
    """Number of independent routes to the answer that would explain a necessity this low.

    The redundancy bound of the SLRC paper, §3.3: with k routes, necessity ≤ 1/k, so
    k = 1 / necessity; infinite where no step was necessary.
    """
    if math.isnan(necessity):
        return math.nan
    return 1 / necessity if necessity > 0 else math.inf


SCORED = tuple(name for name, probe in PROBES.items() if probe.reads_labels)


_OF_MASSES = ("model", "task", "probe", "variant", "item")
_LEFT_OUT = Column(
    "left_out", meaning="True if excluded: label mass below report.least_label_mass."
)
LABEL_MASSES = computed_table(
    "label_mass",
    (
        *(SHARED[name] for name in _OF_MASSES),
        Column("label_mass", meaning="Share of the model's probability on all labels."),
        _LEFT_OUT,
    ),
)
"""One row per scored record with its label mass: after the unedited reasoning, or for `direct`
after its prompt. Items excluded for their label mass are included."""


def label_masses(records: Iterable[Record]) -> pd.DataFrame:
    """The table `LABEL_MASSES` of a run's records."""
    scored = [r for r in records if r["probe"] in SCORED and _mass(r) is not None]
    scored.sort(key=lambda r: (place_of(r), SCORED.index(r["probe"]), r["variant"]))
    # only the columns of the table, since a record of many steps has some forty other fields
    rows = [{name: r[name] for name in (*_OF_MASSES, "label_mass")} for r in scored]
    left_out = [r.get("excluded") == LOW_MASS for r in scored]
    return LABEL_MASSES.filled(pd.DataFrame(rows).assign(left_out=left_out) if rows else [])


LABEL_MASS = (
    Boot("label_mass", meaning="Share of the model's probability on all labels, mean over items."),
    Count("label_mass_n", rows_known("label_mass"), meaning="Items in the mean label mass."),
)
"""Mean `label_mass` of the scored items, and their number."""
FORCED_DIFFERS = (
    Share(
        "forced_differs",
        "forced_differs",
        rows_known("forced_differs"),
        "forced choice, another answer",
        "Items whose likeliest answer after the whole reasoning is another than they state.",
    ),
    Count(
        "n_stated",
        rows_known("forced_differs"),
        "items that state an answer",
        "Items whose answer could be read.",
    ),
)
"""Share of items whose forced choice differs from the stated answer, and the number of items that
state one (`probes.reference_answer`)."""


def _mass(record: Record) -> float | None:
    return record.get("label_mass")
