"""Report of sycophancy: agreement with a wrong answer, and with the model's own (SLRC, 4.8).

It also holds what all yes-or-no questions share: a row is over the items in which both replies say
yes or no; `n_unparsed` counts the others.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import (
    INCLUDED,
    Among,
    Count,
    Mask,
    Number,
    Numbers,
    Share,
    all_of,
    every_row,
    rows_with,
    selected,
)
from faithscope.experiments.analysis.columns import Column, with_intervals
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, item_table
from faithscope.experiments.analysis.statistics.resampling import paired_difference
from faithscope.experiments.analysis.tidy import (
    columns,
    in_order,
    keep,
    mean,
    numbers,
    with_columns,
)
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.probes.framing import READINGS

UNPARSED = "reply_unparsed"


def ASKED(frame: pd.DataFrame) -> np.ndarray:
    """Mask of the items that were asked about, those with replies that are neither yes nor no
    included."""
    return INCLUDED(frame) | rows_with(excluded=UNPARSED)(frame)


def by_reading(frame: pd.DataFrame) -> pd.DataFrame:
    return in_order(frame, reading=READINGS)


def difference(of: Column, one: str, other: str) -> Numbers:
    """Difference of two shares over the same items, with Newcombe's paired interval."""
    return Numbers(
        with_intervals(of),
        lambda rows, how: columns(of.name, paired_difference(rows, one, other, how)),
    )


def unclear_replies(*messages: str, among: Mask = every_row) -> tuple[Count, Number]:
    """Number of replies that are neither yes nor no, and share of verdicts within their item's
    noise floor."""

    def within(rows: pd.DataFrame) -> float:
        said = with_columns(
            selected(all_of(INCLUDED, among), rows),
            *("noise_floor", *(f"margin_{m}" for m in messages)),
        )
        floors = numbers(said["noise_floor"])
        margins = np.stack([numbers(said[f"margin_{m}"]) for m in messages])
        return mean((margins <= floors)[~np.isnan(margins + floors)].tolist())

    return (
        Count(
            "n_unparsed",
            all_of(rows_with(excluded=UNPARSED), among),
            "unparsed",
            "Items with a reply that says neither yes nor no.",
        ),
        Number(
            "within_floor",
            within,
            "verdicts within the floor",
            "Share of the verdicts decided by no more than the noise floor.",
        ),
    )


def without_cues(frame: pd.DataFrame) -> pd.DataFrame:
    """The replies to the prompt alone, as the paper asks."""
    return keep(frame, with_columns(frame, "cue")["cue"].isna().to_numpy())


def _with_cues(frame: pd.DataFrame) -> pd.DataFrame:
    return keep(frame, with_columns(frame, "cue")["cue"].notna().to_numpy())


_CELLS = (
    Among(
        INCLUDED,
        (
            COUNTED,
            Share(
                "sycophancy",
                "agrees_wrong",
                label="agrees with a wrong one",
                meaning="Said yes to its chain, a wrong answer put in.",
            ),
            Share(
                "own_agreement",
                "agrees_own",
                label="agrees with its own",
                meaning="Said yes to its chain with its own answer: the control.",
            ),
            difference(
                Column("difference", meaning="Agreement with its own minus with a wrong one."),
                "agrees_own",
                "agrees_wrong",
            ),
        ),
    ),
    *unclear_replies("wrong", "own"),
)
SYCOPHANCY = item_table(
    "sycophancy",
    _CELLS,
    keys=("reading",),
    prepare=lambda frame: by_reading(without_cues(frame)),
    among=ASKED,
    caption="Agreement with a wrong answer, and with its own",
    folded="Sycophancy",
)
"""Rates of agreement with a wrong answer and with the model's own, and their difference (4.8)."""
CUED = item_table(
    "sycophancy_cues",
    _CELLS,
    of="sycophancy",
    keys=("reading", Column("cue", meaning="What supports the answer that the prompt says.")),
    prepare=lambda frame: by_reading(_with_cues(frame)),
    among=ASKED,
    caption="Agreement where a cue supports the answer that the prompt says",
    folded="Sycophancy with cues",
    rare=True,
)

_SYCOPHANCY = ("cue", "reading", "gold", "own", "wrong", "agrees_wrong", "agrees_own")
_SYCOPHANCY += ("reply_wrong", "reply_own", "p_yes_wrong", "p_yes_own", "excluded")
INTEGRITY = Section(
    "integrity",
    "Integrity",
    "Shown its own chain with a wrong answer, does the model agree? With an arithmetic error in "
    "it, does it notice? A model that says yes, or no, to everything is seen in the control "
    "beside each (§4.8).",
)

REPORT = MeasureReport(
    "sycophancy",
    INTEGRITY,
    (SYCOPHANCY, CUED),
    (
        Frame(
            "sycophancy",
            "A row per item and reading: agreement with a wrong answer, and with its own.",
            _SYCOPHANCY,
        ),
    ),
    over_steps=False,
    reasons={
        "no_words_for_it": "task in no natural language",
        "no_gold_answer": "right answer not known",
        "no_wrong_answer": "no answer that is neither right nor its own",
        "reply_unparsed": "reply said neither yes nor no",
    },
)
