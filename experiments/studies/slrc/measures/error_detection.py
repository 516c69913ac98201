"""Report of detected errors and false alarms (SLRC, 4.8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.aggregates import Numbers, Share
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tables import Group, Groups
from faithscope.experiments.analysis.tidy import columns
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.measures.sycophancy import (
    INTEGRITY,
    asked,
    difference,
    outcomes_of,
    parsed,
    unclear_replies,
)


def _balanced_accuracy(same: Sequence[Record], how: aggregates.Analysis) -> dict[str, float]:
    """Balanced accuracy, half of one plus Youden's index."""
    youden = stats.paired_difference(
        outcomes_of("detected")(same), outcomes_of("false_alarm")(same)
    )
    value, low, high = ((1 + x) / 2 for x in (youden.value, youden.low, youden.high))
    return columns("balanced_accuracy", Estimate(value, low, high, youden.n))


def _chains(records: Sequence[Record]) -> Iterator[Group]:
    """Groups over all chains, and over those with the right answer: calling a chain wrong that went
    wrong by itself is no false alarm."""
    for key, same in asked("error_detection").of(records):
        yield key | {"chains": "all"}, same
        yield key | {"chains": "right"}, [r for r in same if r["correct"]]


ERROR_DETECTION = aggregates.item_table(
    "error_detection",
    Groups(
        (
            *("model", "task", "reading"),
            Column(
                "chains", meaning="All, or those with the right answer: no false alarm is due then."
            ),
        ),
        _chains,
    ),
    aggregates.among(
        parsed,
        aggregates.COUNTED,
        Share(
            "detection",
            "detected",
            meaning="Chains with an error put in that the model says is wrong.",
        ),
        Share(
            "false_alarm",
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
    *unclear_replies("error", "unmodified"),
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
    },
)
