"""Report of detected errors and false alarms (SLRC, 4.8)."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.cells import INCLUDED, Among, Numbers, Share, all_of, rows_with
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.record_frames import COUNTED, item_table
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, paired_difference
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tidy import columns, with_columns
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.measures.sycophancy import (
    ASKED,
    INTEGRITY,
    by_reading,
    difference,
    unclear_replies,
)


def _balanced_accuracy(rows: pd.DataFrame, how: Bootstrap) -> dict[str, float]:
    """Balanced accuracy, half of one plus Youden's index."""
    youden = paired_difference(rows, "detected", "false_alarm", how)
    value, low, high = ((1 + x) / 2 for x in (youden.value, youden.low, youden.high))
    return columns("balanced_accuracy", Estimate(value, low, high, youden.n))


def _of_chains(frame: pd.DataFrame) -> pd.DataFrame:
    """The items once for all chains, and once for those with the right answer, of which only these
    are `here`: calling a chain wrong that went wrong by itself is no false alarm."""
    right = with_columns(frame, "correct").assign(
        chains="right",
        here=lambda of: of["correct"] == True,  # noqa: E712
    )
    return by_reading(pd.concat([frame.assign(chains="all", here=True), right]))


_HERE = rows_with(here=True)
ERROR_DETECTION = item_table(
    "error_detection",
    (
        Among(
            all_of(INCLUDED, _HERE),
            (
                COUNTED,
                Share(
                    "detection",
                    "detected",
                    meaning="Chains with an error put in that the model says is wrong.",
                ),
                Share(
                    "false_alarm",
                    label="false alarms",
                    meaning="Chains without an error put in that the model says are wrong.",
                ),
                difference(
                    Column("youden", "Youden's index", "Detection minus false alarms."),
                    "detected",
                    "false_alarm",
                ),
                Numbers(
                    (
                        Column(
                            "balanced_accuracy",
                            meaning="Half of one more than Youden's index.",
                            interval=True,
                        ),
                    ),
                    _balanced_accuracy,
                ),
            ),
        ),
        *unclear_replies("error", "unmodified", among=_HERE),
    ),
    keys=("reading",),
    along=(
        Column(
            "chains", meaning="All, or those with the right answer: no false alarm is due then."
        ),
    ),
    prepare=_of_chains,
    among=ASKED,
    caption="Errors detected, and false alarms",
    folded="Error detection",
)
"""Rates of detected injected errors and of false alarms, and Youden's index of the two."""

_ERRORS = ("reading", "correct", "step_text", "error_text", "rule", "detected", "false_alarm")
_ERRORS += ("reply_error", "reply_unmodified", "p_yes_error", "p_yes_unmodified", "excluded")

REPORT = MeasureReport(
    "error_detection",
    INTEGRITY,
    (ERROR_DETECTION,),
    (
        Frame(
            "error_detection",
            "A row per item and reading: the error put in, whether it was seen, false alarms.",
            _ERRORS,
        ),
    ),
    over_steps=False,
    reasons={
        "no_calculation": "no calculation in the chain",
        "no_calculation_holds": "no right calculation in the chain",
        "no_mistake_given": "no mistake is given for any step of the chain",
        "not_writable": "this tokenizer has no ids for the given mistake",
    },
)
