"""Errors detected, and false alarms (SLRC, 4.8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tidy import columns, with_interval
from faithscope.experiments.studies.slrc.measures.sycophancy import (
    INTEGRITY,
    asked,
    difference,
    outcomes_of,
    parsed,
    unclear_replies,
)
from faithscope.experiments.studies.slrc.slice import Frame, Slice, Table


def _balanced_accuracy(same: Sequence[Record], analysis: kit.Analysis) -> dict[str, float]:
    """Half of one more than Youden's index."""
    youden = stats.paired_difference(
        outcomes_of("detected")(same), outcomes_of("false_alarm")(same)
    )
    value, low, high = ((1 + x) / 2 for x in (youden.value, youden.low, youden.high))
    return columns("balanced_accuracy", Estimate(value, low, high, youden.n))


def _chains(records: Sequence[Record]) -> Iterator[kit.Group]:
    """All chains, and those with the right answer: "no" to one that went wrong by itself is no
    false alarm."""
    for key, same in asked("error_detection").of(records):
        yield key | {"chains": "all"}, same
        yield key | {"chains": "right"}, [r for r in same if r["correct"]]


error_detection_table = kit.item_table(
    kit.Groups(("model", "task", "reading", "chains"), _chains),
    kit.among(
        parsed,
        kit.COUNTED,
        kit.shares(
            {"detection": outcomes_of("detected"), "false_alarm": outcomes_of("false_alarm")}
        ),
        difference("youden", "detected", "false_alarm"),
        kit.Stat(tuple(with_interval("balanced_accuracy")), _balanced_accuracy),
    ),
    unclear_replies("error", "unmodified"),
)
"""Detection of an injected error, false alarms, and what is left of the one after the other."""

_ERRORS = ("reading", "correct", "step_text", "error_text", "rule", "detected", "false_alarm")
_ERRORS += ("reply_error", "reply_unmodified", "p_yes_error", "p_yes_unmodified", "excluded")

SLICE = Slice(
    "error_detection",
    INTEGRITY,
    (
        Table(
            "error_detection",
            error_detection_table,
            "Errors detected, and false alarms",
            folded="Error detection",
            over_steps=False,
        ),
    ),
    (
        Frame(
            "error_detection",
            "A row per item and reading: the error put in, whether it was seen, false alarms.",
            _ERRORS,
        ),
    ),
    columns=(
        Column(
            "chains", meaning="All, or those with the right answer: no false alarm is due then."
        ),
        Column("detection", meaning="Chains with an error put in that the model says is wrong."),
        Column("false_alarm", "false alarms", "The same chains without it, said to be wrong."),
        Column("youden", "Youden's index", "Detection minus false alarms."),
        Column("balanced_accuracy", meaning="Half of one more than Youden's index."),
    ),
    reasons={
        "no_calculation": "no calculation in the chain",
        "no_calculation_holds": "no right calculation in the chain",
    },
)
